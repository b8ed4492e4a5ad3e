//! Selects the lines of folded text that have to be parsed, by a search over whole blocks.

use memchr::memmem;
use regex::bytes::Regex;

use super::grammar::ends_like_a_weight;

/// Number of digits of a weight that is certainly valid.
const MAX_DIGITS: usize = 18;

/// A filter of lines. It selects lines in which a pattern matches, and all lines that are not regular.
///
/// A regular line is a stack and a whole number, and its leaf is read as it is written. Any other line may be malformed, a
/// comment, or have a leaf that the reader renames: only the parser can tell.
#[derive(Debug)]
pub struct LineFilter {
    pattern: Regex,
    literals: Option<RequiredLiterals>,
    comment: memmem::Finder<'static>,
}

/// Literals: each match of a pattern within a line contains at least one.
#[derive(Debug)]
pub struct RequiredLiterals {
    /// Matches each literal.
    pub literals: Regex,
    /// Matches the rest of each match from such a literal on, at the start of a text. May match more.
    pub rest: Regex,
}

impl LineFilter {
    /// Creates a filter. The pattern is searched for in whole blocks of text: it must not depend on where a text begins.
    ///
    /// With literals, only lines with one of them, and the rest of a match after it, are searched for the pattern.
    pub fn new(pattern: Regex, literals: Option<RequiredLiterals>) -> Self {
        Self { pattern, literals, comment: memmem::Finder::new(b"# ") }
    }

    /// True if the pattern matches within a line of a text.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.find_match(text, 0).is_some()
    }

    /// Returns a position at or after `start`, where a line starts, in the first line in which the pattern matches.
    fn find_match(&self, text: &[u8], mut start: usize) -> Option<usize> {
        let Some(RequiredLiterals { literals, rest }) = &self.literals else {
            return Some(self.pattern.find_at(text, start)?.start());
        };
        loop {
            let found = literals.find_at(text, start)?.start();
            if !rest.is_match(&text[found..]) {
                // Literals may overlap.
                start = found + 1;
                continue;
            }
            let line_start = memchr::memrchr(b'\n', &text[..found]).map_or(0, |end| end + 1);
            let line_end = memchr::memchr(b'\n', &text[found..]).map_or(text.len(), |end| found + end);
            if self.pattern.is_match(&text[line_start..line_end]) {
                return Some(found);
            }
            start = line_end + 1;
            if start > text.len() {
                return None;
            }
        }
    }

    /// Returns the selected lines of a text.
    pub(super) fn select<'a>(&'a self, text: &'a [u8]) -> SelectedLines<'a> {
        SelectedLines {
            filter: self,
            text,
            line_ends: memchr::memchr2_iter(b'\n', b'\r', text),
            start: 0,
            next_match: 0,
            next_comment: 0,
            skipped: 0,
        }
    }
}

/// The selected lines of a text, without their line ends.
pub(super) struct SelectedLines<'a> {
    filter: &'a LineFilter,
    text: &'a [u8],
    line_ends: memchr::Memchr2<'a>,
    /// Start of the next line.
    start: usize,
    /// Start of a match; the next one if it is not before the line.
    next_match: usize,
    next_comment: usize,
    skipped: u64,
}

impl<'a> SelectedLines<'a> {
    /// Returns the number of regular lines that were skipped since the last call.
    pub(super) fn take_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }

    /// Returns the end of the next line, and if a carriage return is in it.
    fn line_end(&mut self) -> (usize, bool) {
        let mut has_return = false;
        for end in &mut self.line_ends {
            match self.text[end] {
                b'\n' => return (end, has_return),
                _ => has_return = true,
            }
        }
        (self.text.len(), has_return)
    }

    /// True if the pattern matches in a line, or it may be a comment. A match that starts in a line may end after it.
    fn matches(&mut self, end: usize) -> bool {
        let Self { filter, text, start, .. } = *self;
        if self.next_match < start || start == 0 {
            self.next_match = filter.find_match(text, start).unwrap_or(usize::MAX);
        }
        if self.next_comment < start || start == 0 {
            self.next_comment = filter.comment.find(&text[start..]).map_or(usize::MAX, |found| start + found);
        }
        self.next_match < end || self.next_comment < end
    }
}

impl<'a> Iterator for SelectedLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while self.start < self.text.len() {
            let (end, has_return) = self.line_end();
            let line = &self.text[self.start..end];
            let is_selected = self.matches(end) || has_return || !is_regular(line);
            self.start = end + 1;
            if is_selected {
                return Some(line);
            }
            self.skipped += 1;
        }
        None
    }
}

/// True for a stack and a whole number. A comment may pass for a stack.
#[inline]
fn is_regular(line: &[u8]) -> bool {
    let Some(blank) = line.iter().rposition(|byte| !byte.is_ascii_digit()) else { return false };
    let digits = line.len() - blank - 1;
    let Some((stack, b" ")) = line[..=blank].split_at_checked(blank) else { return false };
    // A leaf of blanks and digits, or of nothing, is renamed.
    let is_named = !stack.starts_with(b" ") && !stack.starts_with(b"\t") && !stack.ends_with(b"\t");
    let is_named = is_named && stack.last().is_some_and(|last| !matches!(last, b' ' | b';'));
    (1..=MAX_DIGITS).contains(&digits) && is_named && !ends_like_a_weight(stack)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::bytes::Regex;

    use super::{LineFilter, is_regular};
    use crate::folded::{LineKind, is_comment, parse_line};
    use crate::profile::Frames;

    fn select<'a>(filter: &'a LineFilter, text: &'a str) -> (Vec<&'a str>, u64) {
        let mut lines = filter.select(text.as_bytes());
        let selected = lines.by_ref().map(|line| std::str::from_utf8(line).unwrap()).collect();
        (selected, lines.take_skipped())
    }

    #[test]
    fn selects_matches_and_lines_that_are_not_regular() {
        let filter = LineFilter::new(Regex::new("lock").unwrap(), None);
        for (text, expected, skipped) in [
            ("a;lock 1\nb 2\nlock;c 3", &["a;lock 1", "lock;c 3"][..], 1),
            ("a 1\nb 2\nc 3\n", &[], 3),
            ("a 1\nlock", &["lock"], 1),
            (
                "a 1.5\nb\n\nc 2e3\nd; 4\ne  5\n 6\nline 3 7\n",
                &["a 1.5", "b", "", "c 2e3", "d; 4", "e  5", " 6", "line 3 7"],
                0,
            ),
            ("a 1\r\nb 2\nc\rd 3\n", &["a 1\r", "c\rd 3"], 1),
            ("# interval : 100\na;# x : y 5\nb#1 1\n", &["# interval : 100", "a;# x : y 5"], 1),
            ("a 1234567890123456789\nb 123456789012345678\n", &["a 1234567890123456789"], 1),
        ] {
            assert_eq!(select(&filter, text), (expected.to_vec(), skipped), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_match_that_goes_on_in_the_next_line_hides_none(text in "[ab;\n]{0,60}") {
            // The pattern also matches line ends.
            let filter = LineFilter::new(Regex::new("a[^x]*b").unwrap(), None);
            let (selected, _) = select(&filter, &text);
            let within_a_line = Regex::new("a.*b").unwrap();
            for line in text.lines().filter(|line| within_a_line.is_match(line.as_bytes())) {
                prop_assert!(selected.contains(&line), "{line}");
            }
        }

        #[test]
        fn a_regular_line_is_a_stack_whose_leaf_keeps_its_name(line in "[a;#: ]{0,4}[a;. 0-9]{0,6}[ ]?[0-9.]{0,20}") {
            if is_regular(line.as_bytes()) && !line.contains("# ") {
                let parsed = parse_line(line.as_bytes(), LineKind::Plain).unwrap();
                prop_assert!(!is_comment(line.as_bytes()));
                let leaf = parsed.stack.rsplit(|byte| *byte == b';').next().unwrap();
                let mut frames = Frames::new();
                let id = frames.intern(leaf);
                prop_assert_eq!(frames.as_leaf(id), id);
                prop_assert!(line.as_bytes().starts_with(parsed.stack));
            }
        }
    }
}
