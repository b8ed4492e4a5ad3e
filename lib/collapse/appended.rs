//! Finds the line at which another document begins within an input, as `cat` joins files.
//!
//! Readers of text skip lines that are not theirs, such as the output of the program itself, and tables of a second
//! document replace those of the first. So its lines must not reach the reader of the first one.

use super::formats::{self, headings};

/// Number of consecutive folded stacks that are no text of a program.
const MIN_STACKS: u64 = 2;

/// Most lines of an input that are checked for being the beginning of a document: programs may print JSON, too.
const MAX_CHECKS: u32 = 16;

/// Watches the lines of an input.
#[derive(Debug)]
pub(super) struct Appended {
    /// The format of the input.
    format: &'static str,
    /// True after a heading of the input's own format.
    has_begun: bool,
    /// The format of the document that begins within the input.
    found: Option<&'static str>,
    /// Number of folded stacks before the current line, without any other line between them.
    stacks: u64,
    /// The number of the line at which folded stacks begin. The reader does not know them, and goes on behind them.
    first_stack: Option<u64>,
    /// Number of lines that might have begun a document.
    checks: u32,
}

impl Appended {
    pub(super) fn new(format: &'static str) -> Self {
        Self { format, has_begun: false, found: None, stacks: 0, first_stack: None, checks: 0 }
    }

    /// Returns true if another document begins with the last line.
    pub(super) fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// Returns true if a line may be the first one of a JSON or XML document, which [`find_document`](Self::find_document)
    /// then checks.
    pub(super) fn may_begin_document(&mut self, line: &[u8], number: u64) -> bool {
        let may_begin = number > 1 && matches!(line.first(), Some(b'{' | b'[' | b'<')) && self.checks < MAX_CHECKS;
        self.checks += u32::from(may_begin);
        may_begin
    }

    /// Checks whether a text begins with a document that is a profile.
    pub(super) fn find_document(&mut self, text: &[u8]) {
        let found = formats::find_document(text).filter(|format| *format != self.format);
        self.found = self.found.or(found);
    }

    /// Adds the next line, with which `text` begins.
    pub(super) fn add_line(&mut self, line: &[u8], text: &[u8], number: u64) {
        if let Some(heading) = headings::find(line, text) {
            let is_own = heading.format == self.format;
            if !is_own || self.has_begun && !heading.may_recur {
                self.found = Some(heading.format);
            }
            self.has_begun |= is_own;
        }
        self.stacks = if headings::is_folded_stack(line) { self.stacks + 1 } else { 0 };
        if self.stacks >= MIN_STACKS && self.first_stack.is_none() {
            self.first_stack = Some((number + 1).saturating_sub(self.stacks));
        }
    }

    /// Returns the message about what begins within the input, and the number of its first line. `number` is that of the
    /// last line.
    pub(super) fn message(&self, number: u64) -> Option<(u64, String)> {
        let stacks = self.first_stack.map(|first| (first, describe("folded", "here")));
        stacks.or_else(|| self.found.map(|format| (number, describe(format, "here"))))
    }
}

/// Returns the message about a document that begins at a place within an input.
pub(super) fn describe(format: &str, place: &str) -> String {
    format!("another profile ({format}) begins {place}; it is left out: give each file by itself")
}

#[cfg(test)]
mod tests {
    use super::Appended;

    /// Returns the number of the line at which another document begins, and of that at which folded stacks begin.
    fn find(format: &'static str, text: &str) -> (Option<u64>, Option<u64>) {
        let mut appended = Appended::new(format);
        for (line, number) in text.lines().zip(1..) {
            let start = line.as_ptr() as usize - text.as_ptr() as usize;
            appended.add_line(line.as_bytes(), &text.as_bytes()[start..], number);
            if appended.is_found() {
                return (Some(number), appended.first_stack);
            }
        }
        (None, appended.first_stack)
    }

    #[test]
    fn a_heading_begins_another_document() {
        assert_eq!(
            find("massif", "desc: x\ncmd: x\ntime_unit: i\nsnapshot=0\ndesc: x\ncmd: x\ntime_unit: i\n").0,
            Some(5)
        );
        assert_eq!(find("jstack", "Full thread dump a\n\nFull thread dump b\n").0, None);
        assert_eq!(find("jstack", "Full thread dump a\ngoroutine profile: total 1\n").0, Some(2));
    }

    #[test]
    fn consecutive_folded_stacks_are_no_output_of_a_program() {
        assert_eq!(find("jstack", "x\na;b 1\ny\na;b 1\n").1, None);
        assert_eq!(find("jstack", "x\na;b 1\na;c 1\na;d 1\n").1, Some(2));
    }
}
