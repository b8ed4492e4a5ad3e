//! A line of folded text: its stack, and its weight or weights.

use crate::Error;
use crate::profile::{Weight, Weights};

/// One line, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The frames with their `;`, root first.
    pub stack: &'a [u8],
    /// Its weight, or weights.
    pub weights: Weights,
}

/// Whether lines have one weight or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `stack WEIGHT`.
    Plain,
    /// `stack BEFORE AFTER`.
    Differential,
}

impl Kind {
    /// What the first line of a stream says: differential if it ends in two weights.
    pub fn of_first_line(line: &[u8]) -> Self {
        match parse_line(line, Self::Differential) {
            Some(_) => Self::Differential,
            None => Self::Plain,
        }
    }

    /// Checks that a text, by its first line of this kind, is as those before it: a sum of both would mean nothing.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn agrees(self, before: Option<Self>, name: &str) -> Result<(), Error> {
        if before.is_none_or(|before| before == self) {
            return Ok(());
        }
        let what = match self {
            Self::Plain => "has one weight a line, and what was read before has two, as fg-diff writes them",
            Self::Differential => "has two weights a line, as fg-diff writes them, and what was read before has one",
        };
        Err(Error::Unreadable { name: name.to_owned(), what: format!("{what}; the two do not mix") })
    }
}

/// Takes a line apart: the weight is what follows the last blank. `None` if there is no stack or no weight.
///
/// # Example
/// ```
/// use fgkit::folded::{Kind, parse_line};
/// let line = parse_line(b"main;operator new 12", Kind::Plain).expect("well-formed");
/// assert_eq!(line.stack, b"main;operator new");
/// ```
#[inline]
pub fn parse_line(line: &[u8], kind: Kind) -> Option<Line<'_>> {
    let usual = (kind == Kind::Plain).then(|| parse_usual_line(line)).flatten();
    usual.or_else(|| parse_any_line(line, kind))
}

fn parse_any_line(line: &[u8], kind: Kind) -> Option<Line<'_>> {
    let (stack, after) = split_weight(line)?;
    let (stack, before) = match kind {
        Kind::Plain => (stack, Weight::ZERO),
        Kind::Differential => split_weight(stack)?,
    };
    (!stack.is_empty()).then_some(Line { stack, weights: Weights { before, after } })
}

fn split_weight(line: &[u8]) -> Option<(&[u8], Weight)> {
    let line = trim_blanks(line);
    let blank = memchr::memrchr2(b' ', b'\t', line)?;
    Some((trim_blanks(&line[..blank]), Weight::parse(&line[blank + 1..])?))
}

pub(super) fn trim_blanks(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
    &line[..end]
}

/// Takes apart a line as nearly all are: a stack, a space, and a few digits.
#[inline]
fn parse_usual_line(line: &[u8]) -> Option<Line<'_>> {
    let (before, end) = line.split_last_chunk::<8>()?;
    let digits = digits(end);
    let at = before.len() + 7usize.checked_sub(digits)?;
    let is_usual = digits > 0 && line[at] == b' ' && at > 0 && !matches!(line[at - 1], b' ' | b'\t');
    is_usual.then(|| Line { stack: &line[..at], weights: Weights::plain(Weight::new(number(end, digits))) })
}

/// How many digits stand at the end.
#[inline]
fn digits(end: &[u8; 8]) -> usize {
    let values = u64::from_le_bytes(*end) ^ u64::from_le_bytes([b'0'; 8]);
    // What is more than nine has the highest bit set; no byte carries into the next.
    let others = ((values & u64::from_le_bytes([0x7f; 8])) + u64::from_le_bytes([0x76; 8])) | values;
    (others & u64::from_le_bytes([0x80; 8])).leading_zeros() as usize / 8
}

/// The number of so many digits at the end: one at least, all eight at once.
#[inline]
fn number(end: &[u8; 8], digits: usize) -> u64 {
    let values = u64::from_le_bytes(*end) ^ u64::from_le_bytes([b'0'; 8]);
    // Where no digit stands is a nought.
    let ones = values & (u64::MAX << (64 - 8 * digits));
    let pairs = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// Whether what follows the stack's last blank reads as a weight: our writer does not leave it so.
#[inline]
pub(super) fn ends_like_a_weight(stack: &[u8]) -> bool {
    if !stack.last().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    if let Some(end) = stack.last_chunk::<8>() {
        // Mostly a name's last digits stand behind another byte of it.
        let before = 7usize.checked_sub(digits(end)).map(|at| end[at]);
        if before.is_some_and(|before| !matches!(before, b' ' | b'\t' | b'.')) {
            return false;
        }
    }
    let before = stack.iter().rposition(|byte| !byte.is_ascii_digit() && *byte != b'.');
    let number = before.filter(|at| matches!(stack[*at], b' ' | b'\t')).map(|at| &stack[at + 1..]);
    number.and_then(Weight::parse).is_some()
}

/// Whether a line says something of the profile, as other programs have it: `# mode: wall`, or
/// `# captured on    : Thu Nov 19 22:10:03 2026`. One that reads as a stack of several frames, or as a frame and its
/// weight, is one.
#[inline]
pub fn is_comment(line: &[u8]) -> bool {
    let says = |stack: &[u8]| stack.ends_with(b":") || memchr::memmem::find(stack, b" : ").is_some();
    let stack = || parse_line(line, Kind::Plain).map(|line| line.stack);
    line.starts_with(b"# ") && !line.contains(&b';') && stack().is_none_or(says)
}

/// What a line lacks that is malformed.
pub(super) fn expectation(line: &[u8], kind: Kind) -> &'static str {
    match kind {
        Kind::Differential => "expected two weights at the end of the line, as in its first: stack BEFORE AFTER",
        Kind::Plain if memchr::memrchr2(b' ', b'\t', line).is_none() => "expected a weight after the last space",
        Kind::Plain if split_weight(line).is_some() => "a weight without a stack",
        Kind::Plain => "what follows the last space is not a weight (digits, or digits.digits; 0.000001 is the least)",
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Line, parse_any_line, parse_line, parse_usual_line};
    use crate::profile::Weight;

    fn plain(text: &str) -> Option<(&str, Weight)> {
        let Line { stack, weights } = parse_line(text.as_bytes(), Kind::Plain)?;
        Some((std::str::from_utf8(stack).unwrap(), weights.after))
    }

    #[test]
    fn the_weight_is_what_follows_the_last_space() {
        assert_eq!(plain("a;operator new 12"), Some(("a;operator new", Weight::new(12))));
        assert_eq!(plain("a;b\t3"), Some(("a;b", Weight::new(3))));
        assert_eq!(plain(" a 1"), Some((" a", Weight::ONE)));
        for bad in ["", "a", "a;b", "  60", "a -1", "a 1e3", "a +5"] {
            assert_eq!(plain(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_first_line_decides_for_all() {
        assert_eq!(Kind::of_first_line(b"a;b 1 2"), Kind::Differential);
        assert_eq!(Kind::of_first_line(b"a;b 2"), Kind::Plain);
        assert_eq!(Kind::of_first_line(b"1 2"), Kind::Plain);
    }

    #[test]
    fn a_usual_line_is_what_any_line_is() {
        let stacks =
            ["", "a", "a;b", "a;b.7", "a;bb 12", "abcdefgh 1234567", "x ", "x\t", "/:\u{b9}\u{ff1}", "main;f \0"];
        let weights =
            ["", "0", "7", "12", "90", "123", "4567", "98765", "999999", "1234567", "12345678", "1.5", "x", "1x", "-1"];
        let mut usual = 0;
        for line in stacks.iter().flat_map(|stack| weights.map(|weight| format!("{stack} {weight}"))) {
            if let Some(found) = parse_usual_line(line.as_bytes()) {
                assert_eq!(Some(found), parse_any_line(line.as_bytes(), Kind::Plain), "{line:?}");
                usual += 1;
            }
        }
        assert!(usual > 30, "{usual}");
    }
}
