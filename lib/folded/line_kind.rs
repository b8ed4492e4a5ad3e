//! Finds out how many weights the lines of a text have, and if it mixes both kinds.
//!
//! A line that ends in two numbers is either a stack with two weights, or a stack with one whose last frame ends in a
//! number, like `Thread 3`. So one line does not tell the kind of a text.

use super::grammar::{LineKind, ends_like_a_weight, is_comment, parse_line, split_number};
use crate::Error;
use crate::bytes::strip_bom;

/// Number of lines by which the kind of a text is decided.
const MAX_LINES: usize = 64;

/// A text of this size or more may have been cut within its last line.
const MAYBE_CUT: usize = 64 * 1024;

/// A mixture has at least one of this many lines of the other kind: fewer are names that end in a number.
const OTHER_SHARE: u64 = 8;

/// The kind of the lines of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectedKind {
    /// The kind of all lines of the file.
    pub kind: LineKind,
    /// The number of the first line of this kind, from 1.
    pub line: u64,
}

/// Returns the kind of a text from its first bytes: differential if more than half of its first lines end in two
/// weights.
///
/// `None` if none of these lines is a stack.
pub fn detect_kind(head: &[u8]) -> Option<DetectedKind> {
    let head = strip_bom(head);
    let whole = if head.len() < MAYBE_CUT { head.len() } else { memchr::memrchr(b'\n', head).unwrap_or(head.len()) };
    let lines = (1..).zip(head[..whole].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end));
    let stacks = lines.filter(|(_, line)| !line.is_empty() && !is_comment(line));
    let (mut plain, mut differential) = ((0, 0), (0, 0));
    for (number, line) in stacks.take(MAX_LINES) {
        let (count, first) = match parse_line(line, LineKind::Plain) {
            Some(line) if split_number(line.stack).is_some() => &mut differential,
            Some(_) => &mut plain,
            None => continue,
        };
        *count += 1;
        if *count == 1 {
            *first = number;
        }
    }
    let (kind, (count, line)) = match differential.0 > plain.0 {
        true => (LineKind::Differential, differential),
        false => (LineKind::Plain, plain),
    };
    (count > 0).then_some(DetectedKind { kind, line })
}

/// Finds lines with two weights in a text whose lines have one.
///
/// A few lines that end in two numbers are taken for names that end in a number, and so is one stack with several numbers.
/// Several stacks are not, if they have many lines, in whatever order: a sorted mixture is one too.
#[derive(Clone, Debug, Default)]
pub(crate) struct MixtureCheck {
    lines: u64,
    /// Number of lines that end in two numbers, and the number of the first.
    others: u64,
    first_other: u64,
    /// The stack of the first of them, without its numbers, and true if another has a different one.
    stack: Vec<u8>,
    has_several: bool,
}

impl MixtureCheck {
    /// Adds a line with one weight; `stack` is the text before it.
    #[inline]
    pub(crate) fn add(&mut self, stack: &[u8], line: u64) {
        self.lines += 1;
        if ends_like_a_weight(stack)
            && let Some(stack) = split_number(stack)
        {
            self.add_number(stack, line);
        }
    }

    /// Adds lines with one weight whose stacks do not end in a number.
    pub(super) fn add_regular(&mut self, count: u64) {
        self.lines += count;
    }

    fn add_number(&mut self, stack: &[u8], line: u64) {
        if self.others == 0 {
            self.first_other = line;
            self.stack.extend_from_slice(stack);
        }
        self.others += 1;
        self.has_several |= self.stack != stack;
    }

    /// True if lines may be of the other kind.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.has_several
    }

    /// Returns the number of the first line of the other kind, if the text is a mixture.
    pub(crate) fn other_kind(&self) -> Option<u64> {
        (self.has_several && self.others * OTHER_SHARE >= self.lines).then_some(self.first_other)
    }
}

/// Returns the error for a line that is not of the kind of the text.
pub(crate) fn mixture_error(name: &str, line: u64, kind: DetectedKind) -> Error {
    let first = kind.line;
    let what = match kind.kind {
        LineKind::Plain => format!("has two weights, but line {first} has one"),
        LineKind::Differential => format!("has one weight, but line {first} has two"),
    };
    let what = format!("{what}; do not mix profiles and comparisons (fg-diff) in one input");
    Error::Unreadable { name: format!("{name}:{line}"), what }
}

#[cfg(test)]
mod tests {
    use super::{DetectedKind, LineKind, MixtureCheck, detect_kind};

    fn differential(line: u64) -> Option<DetectedKind> {
        Some(DetectedKind { kind: LineKind::Differential, line })
    }

    fn plain(line: u64) -> Option<DetectedKind> {
        Some(DetectedKind { kind: LineKind::Plain, line })
    }

    #[test]
    fn the_majority_of_the_first_lines_decides() {
        for (text, kind) in [
            ("", None),
            ("nonsense\n", None),
            ("a;b 1 2\n", differential(1)),
            ("# mode: wall\n\na;b 2\n", plain(3)),
            ("1 2\n", plain(1)),
            ("Thread 3 5\nmain;b 200\nmain;c 700\n", plain(2)),
            ("Thread 3 5\nmain;b 200", plain(2)),
            ("main;b 200\na 1 2\nb 1 2\n", differential(2)),
        ] {
            assert_eq!(detect_kind(text.as_bytes()), kind, "{text:?}");
        }
    }

    /// Returns the line at which lines of these stacks turn out to be of the other kind.
    fn mixture(stacks: &[&str]) -> Option<u64> {
        let mut check = MixtureCheck::default();
        stacks.iter().zip(1..).for_each(|(stack, line)| check.add(stack.as_bytes(), line));
        check.other_kind()
    }

    #[test]
    fn many_lines_of_different_stacks_make_a_mixture() {
        assert_eq!(mixture(&["a", "b", "a 1", "b 2"]), Some(3));
        assert_eq!(mixture(&["a", "a 1", "b", "b 2"]), Some(2), "sorted");
        assert_eq!(mixture(&["a", "line 1", "line 2", "line 3"]), None, "one name with numbers");
        assert_eq!(mixture(&["a", "Thread 3", "b", "Thread 4"]), None);
        assert_eq!(
            mixture(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o 1", "p 1", "q"]),
            None
        );
    }
}
