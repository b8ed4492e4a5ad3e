//! Warnings, errors and progress on standard error.
//!
//! Each message is one line. Only the first malformed lines of the input are shown; a summary gives their number.
//! Progress is shown only on a terminal.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write};
use std::time::{Duration, Instant};

use clap::builder::styling::Style;

use crate::Error;

/// Number of malformed lines that are reported one by one; the rest is only counted.
const MAX_REPORTED: u64 = 10;

/// Time until progress is shown first.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);
/// Shortest time between two updates of the progress line.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The warnings and errors of one run of a tool, and the statistics that decide its exit status.
pub struct Diagnostics {
    tool: &'static str,
    verbosity: i8,
    strict: bool,
    skipped_lines: u64,
    /// Number of malformed lines by the name of the input.
    skipped_by_input: BTreeMap<String, u64>,
    has_warned: bool,
    first_failure: Option<String>,
    bold: bool,
    progress: Option<Progress>,
    sink: Box<dyn Write + Send>,
}

/// The progress line of the terminal, which each update overwrites.
///
/// It is cleared with blanks and not with an escape sequence, so that it works on any terminal and with `NO_COLOR`.
struct Progress {
    next_update: Instant,
    /// Number of characters on the line now.
    width: usize,
}

impl Diagnostics {
    /// Creates diagnostics that print to standard error.
    ///
    /// `verbosity` is -1 for errors only, 0 for warnings too, 1 and up for notes on what was done.
    pub fn to_stderr(tool: &'static str, verbosity: i8) -> Self {
        let stderr = std::io::stderr();
        let bold = anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never;
        let shows_progress = verbosity >= 0 && stderr.is_terminal();
        let progress = shows_progress.then(|| Progress { next_update: Instant::now() + PROGRESS_DELAY, width: 0 });
        let sink: Box<dyn Write + Send> = if bold { Box::new(anstream::stderr()) } else { Box::new(stderr) };
        Self { bold, progress, ..Self::new(tool, verbosity, sink) }
    }

    fn new(tool: &'static str, verbosity: i8, sink: Box<dyn Write + Send>) -> Self {
        Self {
            tool,
            verbosity,
            strict: false,
            skipped_lines: 0,
            skipped_by_input: BTreeMap::new(),
            has_warned: false,
            first_failure: None,
            bold: false,
            progress: None,
            sink,
        }
    }

    /// Creates diagnostics that print nothing, for tests and for callers who need only the counts.
    pub fn silent() -> Self {
        Self::new("", -1, Box::new(std::io::sink()))
    }

    /// Sets whether the first malformed line is an error.
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    /// True if the first malformed line is an error.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Returns the verbosity: -1 for errors only, 0 for warnings too, 1 and up for notes on what was done.
    pub fn verbosity(&self) -> i8 {
        self.verbosity
    }

    /// Returns the number of malformed lines that were skipped.
    pub fn skipped_lines(&self) -> u64 {
        self.skipped_lines
    }

    /// Returns the number of malformed lines of an input that were skipped.
    pub fn skipped_lines_of(&self, name: &str) -> u64 {
        self.skipped_by_input.get(name).copied().unwrap_or(0)
    }

    /// True if there was a warning, shown or not.
    pub fn has_warned(&self) -> bool {
        self.has_warned
    }

    /// True if [`fail`](Self::fail) was called.
    pub fn has_failed(&self) -> bool {
        self.first_failure.is_some()
    }

    /// Returns the text of the first failure passed to [`fail`](Self::fail), or that of `error` if there is none.
    pub fn failure_text(&self, error: &Error) -> String {
        self.first_failure.clone().unwrap_or_else(|| error.to_string())
    }

    /// Reports and counts a malformed line, which the caller then skips.
    ///
    /// # Errors
    /// [`Error::Malformed`] in strict mode.
    pub fn malformed(&mut self, name: &str, line: u64, what: &str) -> Result<(), Error> {
        if self.strict {
            return Err(Error::Malformed { name: name.to_owned(), line, what: what.to_owned() });
        }
        self.skipped_lines += 1;
        match self.skipped_by_input.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.skipped_by_input.insert(name.to_owned(), 1)),
        }
        if self.skipped_lines <= MAX_REPORTED {
            self.warn(&format!("{name}:{line}: {what}"));
        }
        Ok(())
    }

    /// Prints a warning, unless the tool is quiet.
    pub fn warn(&mut self, message: &str) {
        self.has_warned = true;
        if self.verbosity >= 0 {
            self.print(message);
        }
    }

    /// Prints a note on what was done, if verbose (`-v`).
    pub fn note(&mut self, message: &str) {
        if self.verbosity >= 1 {
            self.print(message);
        }
    }

    /// Prints an error after which the tool continues; its exit status becomes that of a failure.
    pub fn fail(&mut self, error: &Error) {
        self.first_failure.get_or_insert_with(|| error.to_string());
        if !matches!(error, Error::AlreadyReported) {
            self.print(&error.to_string());
        }
    }

    /// Updates the progress line on a terminal: first after a second, then at most ten times a second.
    ///
    /// `text` is called only when an update is due, so calls are cheap.
    pub fn show_progress(&mut self, text: impl FnOnce() -> String) {
        let Some(progress) = &mut self.progress else { return };
        let now = Instant::now();
        if now < progress.next_update {
            return;
        }
        progress.next_update = now + PROGRESS_INTERVAL;
        let text: String = printable(&format!("{}: {}", self.tool, text())).chars().take(79).collect();
        let _ = write!(self.sink, "\r{text:width$}", width = progress.width).and_then(|()| self.sink.flush());
        progress.width = text.chars().count();
    }

    /// True if [`show_progress`](Self::show_progress) prints anything.
    pub fn shows_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Turns the progress line off, for output that goes to the terminal itself.
    pub fn disable_progress(&mut self) {
        self.progress = None;
    }

    /// Clears the progress line, before anything else is written to the terminal.
    pub fn clear_progress(&mut self) {
        if let Some(progress) = &mut self.progress
            && progress.width > 0
        {
            let _ = write!(self.sink, "\r{:width$}\r", "", width = progress.width).and_then(|()| self.sink.flush());
            progress.width = 0;
        }
    }

    /// Prints how many malformed lines were skipped, if any, and clears the progress line.
    pub fn finish(&mut self) {
        self.clear_progress();
        if self.skipped_lines > 0 {
            let lines = plural(self.skipped_lines, "malformed line");
            self.warn(&match self.skipped_lines > MAX_REPORTED {
                true => format!("skipped {lines}; the first {MAX_REPORTED} are shown"),
                false => format!("skipped {lines}"),
            });
        }
    }

    fn print(&mut self, message: &str) {
        self.print_lines([message]);
    }

    /// Prints lines at any verbosity; the first one starts with the tool's name.
    pub(crate) fn print_lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.clear_progress();
        let style = if self.bold { Style::new().bold() } else { Style::new() };
        let mut text = format!("{style}{}:{style:#} ", self.tool);
        for line in lines {
            text.push_str(&printable(line));
            text.push('\n');
        }
        // One write, so that messages of several programs in a pipeline do not mix. Errors on stderr are ignored.
        let _ = self.sink.write_all(text.as_bytes());
    }
}

/// Formats a count with its noun: `1 line`, `2 lines`.
pub fn plural(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{count} {noun}es"),
        _ if noun.ends_with('y') && !["ay", "ey", "oy", "uy"].iter().any(|end| noun.ends_with(end)) => {
            format!("{count} {}ies", &noun[..noun.len() - 1])
        }
        _ => format!("{count} {noun}s"),
    }
}

/// Returns the text with control and bidirectional characters and ends of lines escaped, so that it cannot send commands to a
/// terminal.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' => {
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

    use super::{Diagnostics, Progress, plural, printable};

    #[test]
    fn formats_plurals() {
        for (noun, expected) in
            [("line", "lines"), ("switch", "switches"), ("batch", "batches"), ("entry", "entries"), ("key", "keys")]
        {
            assert_eq!((plural(1, noun), plural(2, noun)), (format!("1 {noun}"), format!("2 {expected}")));
        }
    }

    /// A writer whose content a test can read afterwards.
    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl SharedBuffer {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn progress_starts_late_is_throttled_and_is_cleared_for_warnings() {
        let buffer = SharedBuffer::default();
        let mut diagnostics = Diagnostics::new("fg", 0, Box::new(buffer.clone()));
        diagnostics.show_progress(|| "no terminal".to_owned());
        diagnostics.progress = Some(Progress { next_update: Instant::now() + super::PROGRESS_DELAY, width: 0 });
        diagnostics.show_progress(|| "too early".to_owned());
        assert_eq!(buffer.text(), "");
        diagnostics.progress = Some(Progress { next_update: Instant::now(), width: 0 });
        diagnostics.show_progress(|| "12 MB".to_owned());
        diagnostics.show_progress(|| "too soon".to_owned());
        assert_eq!(buffer.text(), "\rfg: 12 MB");
        diagnostics.warn("look");
        diagnostics.finish();
        assert_eq!(buffer.text(), "\rfg: 12 MB\r         \rfg: look\n");
    }

    #[test]
    fn escapes_control_characters() {
        assert_eq!(printable("a\u{1b}[31mb\u{202e}c\td\u{2028}"), "a\\u{1b}[31mb\\u{202e}c\td\\u{2028}");
    }

    #[test]
    fn strict_stops_at_the_first_malformed_line() {
        let mut diagnostics = Diagnostics::silent();
        assert!(diagnostics.malformed("in", 1, "x").is_ok());
        assert_eq!(diagnostics.skipped_lines(), 1);
        diagnostics.set_strict(true);
        let error = diagnostics.malformed("in.txt", 17, "expected a weight").unwrap_err();
        assert_eq!(error.to_string(), "in.txt:17: expected a weight");
    }
}
