//! Other documents within an input, as `cat` joins files.
//!
//! Tables of a second document would replace those of the first. So its lines must not reach the reader of the first one.
//! Documents are found by their first lines (`document_starts.rs`), others by lines that the reader does not take
//! (`strays.rs`).

use super::document_starts::Start;
use super::formats;
use super::strays::BINARY;

/// The documents that begin in an input.
#[derive(Debug)]
pub(super) struct Appended {
    /// The format of the input.
    format: &'static str,
    /// True after the start of a document of the input's own format.
    has_begun: bool,
    /// The number of the line with which another document begins, and its format.
    found: Option<(u64, &'static str)>,
}

impl Appended {
    pub(super) fn new(format: &'static str) -> Self {
        Self { format, has_begun: false, found: None }
    }

    /// Returns the format of the input.
    pub(super) fn format(&self) -> &'static str {
        self.format
    }

    /// Returns true if another document begins with the last line.
    pub(super) fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// Notes that a document begins at a line.
    pub(super) fn set_found(&mut self, line: u64, format: &'static str) {
        self.found = Some((line, format));
    }

    /// Adds a document that begins with a line.
    pub(super) fn add_start(&mut self, start: Start, number: u64) {
        let is_own = formats::shares_text(self.format, start.format);
        if !is_own || self.has_begun && !start.may_recur {
            self.set_found(number, start.format);
        }
        self.has_begun |= is_own;
    }

    /// Returns the message about what begins within the input, and the number of its first line.
    pub(super) fn message(&self) -> Option<(u64, String)> {
        self.found.map(|(line, format)| (line, describe(format, self.format, "here")))
    }
}

/// Returns the message about a document that begins at a place within an input of the format `own`.
pub(super) fn describe(format: &str, own: &str, place: &str) -> String {
    if format == BINARY {
        return format!("{format} begin {place}, after the profile ({own}); they are left out");
    }
    format!("another profile ({format}) begins {place}, after that of {own}; it is left out: give each file by itself")
}

#[cfg(test)]
mod tests {
    use super::Appended;
    use crate::collapse::document_starts::DocumentStarts;

    /// Returns the number of the line at which another document begins.
    fn find(format: &'static str, text: &str) -> Option<u64> {
        let (mut appended, mut starts, mut offset) = (Appended::new(format), DocumentStarts::new(format), 0);
        for (line, number) in text.split_inclusive('\n').zip(1..) {
            let found = starts.find(text.as_bytes(), offset..offset + line.trim_end().len(), false);
            found.into_iter().for_each(|start| appended.add_start(start, number));
            if appended.is_found() {
                return Some(number);
            }
            offset += line.len();
        }
        None
    }

    #[test]
    fn a_heading_begins_another_document() {
        assert_eq!(
            find("massif", "desc: x\ncmd: x\ntime_unit: i\nsnapshot=0\ndesc: x\ncmd: x\ntime_unit: i\n"),
            Some(5)
        );
        assert_eq!(find("jstack", "Full thread dump a\n\nFull thread dump b\n"), None);
        assert_eq!(find("jstack", "Full thread dump a\ngoroutine profile: total 1\n"), Some(2));
    }
}
