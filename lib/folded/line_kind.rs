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
/// A name may end in a number, like `Thread 3`, so a line that ends in two numbers may have one weight. All such lines must then
/// be of one function: stacks that differ in the number only, as no comparison has them, or stacks with the same leaf.
/// Different ones are a mixture, however few they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct MixtureCheck {
    /// The first line that ends in two numbers.
    first: Option<DoubtfulLine>,
    /// True if another one is of another function.
    is_mixture: bool,
}

/// A line that ends in two numbers, of which the first may belong to the name of the leaf.
#[derive(Clone, Debug)]
pub(crate) struct DoubtfulLine {
    /// The number of the line, from 1.
    pub line: u64,
    /// The stack with the first of the numbers.
    stack: Vec<u8>,
}

impl DoubtfulLine {
    /// Returns the name of the leaf with the number.
    fn leaf(&self) -> &[u8] {
        leaf(&self.stack)
    }

    fn is_of_one_function(&self, stack: &[u8]) -> bool {
        leaf(stack) == self.leaf() || split_number(stack) == split_number(&self.stack)
    }

    /// Returns the warning about this line, if it is the only one of its kind.
    pub(crate) fn describe(&self) -> String {
        let name = String::from_utf8_lossy(self.leaf());
        format!("ends in two numbers; read as the function {name:?} with one weight")
    }
}

/// Returns the text after the last semicolon.
fn leaf(stack: &[u8]) -> &[u8] {
    &stack[memchr::memrchr(b';', stack).map_or(0, |separator| separator + 1)..]
}

impl MixtureCheck {
    /// Adds a line with one weight; `stack` is the text before it.
    #[inline]
    pub(crate) fn add(&mut self, stack: &[u8], line: u64) {
        if ends_like_a_weight(stack) {
            self.add_doubtful(stack, line);
        }
    }

    fn add_doubtful(&mut self, stack: &[u8], line: u64) {
        match &self.first {
            Some(first) => self.is_mixture |= !first.is_of_one_function(stack),
            None => self.first = Some(DoubtfulLine { line, stack: stack.to_vec() }),
        }
    }

    /// Adds the lines of a block that follows this number of lines.
    pub(crate) fn add_block(&mut self, block: Self, lines_before: u64) {
        if let Some(first) = block.first {
            self.add_doubtful(&first.stack, lines_before + first.line);
        }
        self.is_mixture |= block.is_mixture;
    }

    /// Returns the first line that ends in two numbers.
    pub(crate) fn doubtful(&self) -> Option<&DoubtfulLine> {
        self.first.as_ref()
    }

    /// Returns the number of the first line of the other kind, if the text is a mixture.
    pub(crate) fn other_kind(&self) -> Option<u64> {
        self.first.as_ref().filter(|_| self.is_mixture).map(|first| first.line)
    }
}

/// Returns the error for a line that is not of the kind of the text.
pub(crate) fn mixture_error(name: &str, line: u64, kind: DetectedKind) -> Error {
    let first = kind.line;
    let (what, hint) = match kind.kind {
        LineKind::Plain => (format!("has two weights, but line {first} has one"), ", and end no name in a number"),
        LineKind::Differential => (format!("has one weight, but line {first} has two"), ""),
    };
    let what = format!("{what}; do not mix profiles and comparisons (fg-diff) in one input{hint}");
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
    fn lines_of_different_functions_make_a_mixture() {
        assert_eq!(mixture(&["a", "b", "a 1", "b 2"]), Some(3));
        assert_eq!(mixture(&["a", "a 1", "b", "b 2"]), Some(2), "sorted");
        assert_eq!(mixture(&["a", "line 1", "line 2", "line 3"]), None, "one name with numbers");
        assert_eq!(mixture(&["a", "Thread 3", "b", "Thread 4"]), None);
        assert_eq!(mixture(&["a", "x;Thread 3", "y;Thread 3"]), None, "one name");
        assert_eq!(mixture(&["a", "x;copy 3", "y;copy 4"]), Some(2));
        let few = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o 1", "p 1", "q"];
        assert_eq!(mixture(&few), Some(15), "few");
    }
}
