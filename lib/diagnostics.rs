//! Warnings: one line each, the first few of a kind in full, then their number. And, on a terminal, how far the work is.

use std::io::{IsTerminal as _, Write};
use std::time::{Duration, Instant};

use clap::builder::styling::Style;

use crate::Error;

/// How many malformed lines are shown one by one before only their number is.
const SHOWN: u64 = 10;

/// How long work lasts before it says how far it is, and how often it says that then.
const PATIENCE: Duration = Duration::from_secs(1);
const RHYTHM: Duration = Duration::from_millis(100);

/// Where a tool's warnings go, and what they add up to.
pub struct Diagnostics {
    tool: &'static str,
    verbosity: i8,
    strict: bool,
    skipped: u64,
    /// What failed first.
    failure: Option<String>,
    bold: bool,
    progress: Option<Progress>,
    sink: Box<dyn Write + Send>,
}

/// A line on the terminal that is written over again and again. Blanks clear it and not an escape sequence, so that
/// any terminal, and NO_COLOR, are fine with it.
struct Progress {
    due: Instant,
    shown: usize,
}

impl Diagnostics {
    /// Warnings of `tool` to standard error. `verbosity` is -1 for quiet, 0 as usual, 1 and up for more.
    pub fn to_stderr(tool: &'static str, verbosity: i8) -> Self {
        let stderr = std::io::stderr();
        let bold = anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never;
        let shown = verbosity >= 0 && stderr.is_terminal();
        let progress = shown.then(|| Progress { due: Instant::now() + PATIENCE, shown: 0 });
        let sink: Box<dyn Write + Send> = if bold { Box::new(anstream::stderr()) } else { Box::new(stderr) };
        Self { bold, progress, ..Self::new(tool, verbosity, sink) }
    }

    fn new(tool: &'static str, verbosity: i8, sink: Box<dyn Write + Send>) -> Self {
        Self { tool, verbosity, strict: false, skipped: 0, failure: None, bold: false, progress: None, sink }
    }

    /// Warnings that nobody sees, for tests and for callers who only want the counts.
    pub fn silent() -> Self {
        Self::new("", -1, Box::new(std::io::sink()))
    }

    /// Makes the first malformed line an error.
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    /// Whether the first malformed line is an error.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// How much is to be said: -1 only errors, 0 warnings too, 1 and up also what was done.
    pub fn verbosity(&self) -> i8 {
        self.verbosity
    }

    /// How many malformed lines were skipped.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether something failed although the work went on.
    pub fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// What failed, in the words of the first failure that was said; of the error itself if there was none.
    pub fn told(&self, error: &Error) -> String {
        self.failure.clone().unwrap_or_else(|| error.to_string())
    }

    /// A line that is not of the format's form: said, counted, left out.
    ///
    /// # Errors
    /// [`Error::Malformed`] if lines must all be well-formed.
    pub fn malformed(&mut self, name: &str, line: u64, what: &str) -> Result<(), Error> {
        if self.strict {
            return Err(Error::Malformed { name: name.to_owned(), line, what: what.to_owned() });
        }
        self.skipped += 1;
        if self.skipped <= SHOWN {
            self.warn(&format!("{name}:{line}: {what}"));
        }
        Ok(())
    }

    /// A warning.
    pub fn warn(&mut self, message: &str) {
        if self.verbosity >= 0 {
            self.say(message);
        }
    }

    /// What was done, for those who asked with `-v`.
    pub fn note(&mut self, message: &str) {
        if self.verbosity >= 1 {
            self.say(message);
        }
    }

    /// A failure after which the work goes on; the exit status will tell.
    pub fn fail(&mut self, error: &Error) {
        self.failure.get_or_insert_with(|| error.to_string());
        if !matches!(error, Error::AlreadyReported) {
            self.say(&error.to_string());
        }
    }

    /// How far the work is, for those who wait for it: said on a terminal, after a second, ten times a second at most.
    /// Call it as often as is convenient.
    pub fn progress(&mut self, text: impl FnOnce() -> String) {
        let Some(progress) = &mut self.progress else { return };
        let now = Instant::now();
        if now < progress.due {
            return;
        }
        progress.due = now + RHYTHM;
        let text: String = printable(&format!("{}: {}", self.tool, text())).chars().take(79).collect();
        let _ = write!(self.sink, "\r{text:width$}", width = progress.shown).and_then(|()| self.sink.flush());
        progress.shown = text.chars().count();
    }

    /// Whether anybody would see [`Self::progress`].
    pub fn shows_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Keeps how far the work is to itself: where the result goes to the terminal it would stand between its lines.
    pub fn hide_progress(&mut self) {
        self.progress = None;
    }

    /// Clears the line that [`Self::progress`] has written, before anything else goes to the terminal.
    pub fn end_progress(&mut self) {
        if let Some(progress) = &mut self.progress
            && progress.shown > 0
        {
            let _ = write!(self.sink, "\r{:width$}\r", "", width = progress.shown).and_then(|()| self.sink.flush());
            progress.shown = 0;
        }
    }

    /// Sums up: how many malformed lines were left out, if that was not clear yet.
    pub fn finish(&mut self) {
        self.end_progress();
        if self.skipped > 0 {
            let lines = plural(self.skipped, "malformed line");
            self.warn(&match self.skipped > SHOWN {
                true => format!("{lines} left out (the first {SHOWN} shown)"),
                false => format!("{lines} left out"),
            });
        }
    }

    fn say(&mut self, message: &str) {
        self.print_lines([message]);
    }

    /// Says several lines, whatever the verbosity; the first bears the tool's name.
    pub(crate) fn print_lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.end_progress();
        let style = if self.bold { Style::new().bold() } else { Style::new() };
        let mut text = format!("{style}{}:{style:#} ", self.tool);
        for line in lines {
            text.push_str(&printable(line));
            text.push('\n');
        }
        // All at once, so that the messages of a pipeline's programs do not mix. A failing stderr is no reason to stop.
        let _ = self.sink.write_all(text.as_bytes());
    }
}

/// `1 line`, `2 lines`.
pub fn plural(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// The text with everything that could steer a terminal shown as an escape: control and bidirectional characters.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' => {
                shown.extend(character.escape_unicode());
            }
            '\t' => shown.push(character),
            _ if character.is_control() => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use super::{Diagnostics, Progress, printable};

    /// Where a test reads what was said.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Paper {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn progress_is_not_said_at_once_nor_all_the_time_and_gives_way_to_warnings() {
        let paper = Paper::default();
        let mut diagnostics = Diagnostics::new("fg", 0, Box::new(paper.clone()));
        diagnostics.progress(|| "no terminal".to_owned());
        diagnostics.progress = Some(Progress { due: Instant::now() + super::PATIENCE, shown: 0 });
        diagnostics.progress(|| "too early".to_owned());
        assert_eq!(paper.text(), "");
        diagnostics.progress = Some(Progress { due: Instant::now(), shown: 0 });
        diagnostics.progress(|| "12 MB".to_owned());
        diagnostics.progress(|| "too soon".to_owned());
        assert_eq!(paper.text(), "\rfg: 12 MB");
        diagnostics.warn("look");
        diagnostics.finish();
        assert_eq!(paper.text(), "\rfg: 12 MB\r         \rfg: look\n");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{202e}c\td"), "a\\u{1b}[31mb\\u{202e}c\td");
    }

    #[test]
    fn strict_stops_at_the_first_malformed_line() {
        let mut diagnostics = Diagnostics::silent();
        assert!(diagnostics.malformed("in", 1, "x").is_ok());
        assert_eq!(diagnostics.skipped(), 1);
        diagnostics.set_strict(true);
        let error = diagnostics.malformed("in.txt", 17, "expected a weight").unwrap_err();
        assert_eq!(error.to_string(), "in.txt:17: expected a weight");
    }
}
