//! The grammar of a line of folded text: a stack, and one or two weights.

use crate::Error;
use crate::profile::frames::is_comment_text;
use crate::profile::{Weight, Weights};

/// A parsed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The frames, separated by `;`, root first.
    pub stack: &'a [u8],
    /// Its weight or weights.
    pub weights: Weights,
}

/// The number of weights per line, which is the same for all lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// One weight: `stack WEIGHT`.
    Plain,
    /// Two weights: `stack BEFORE AFTER`.
    Differential,
}

impl LineKind {
    /// Checks that a file of this kind can be added to files of the kind `previous`.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the kinds differ.
    pub fn check_same(self, previous: Option<Self>, name: &str) -> Result<(), Error> {
        if previous.is_none_or(|previous| previous == self) {
            return Ok(());
        }
        let what = match self {
            Self::Plain => "has one weight per line, but the inputs before it have two (fg-diff); do not mix them",
            Self::Differential => {
                "has two weights per line (fg-diff), but the inputs before it have one; do not mix them"
            }
        };
        Err(Error::Unreadable { name: name.to_owned(), what: what.to_owned() })
    }
}

/// Parses a line: the weight follows the last blank. `None` if there is no stack or no weight.
///
/// # Example
/// ```
/// use fgkit::folded::{LineKind, parse_line};
/// let line = parse_line(b"main;operator new 12", LineKind::Plain).expect("well-formed");
/// assert_eq!(line.stack, b"main;operator new");
/// ```
#[inline]
pub fn parse_line(line: &[u8], kind: LineKind) -> Option<Line<'_>> {
    let fast = (kind == LineKind::Plain).then(|| parse_short_integer_line(line)).flatten();
    fast.or_else(|| parse_any_line(line, kind))
}

/// Parses a line of any form, with blanks and fractions.
fn parse_any_line(line: &[u8], kind: LineKind) -> Option<Line<'_>> {
    let (stack, after) = split_weight(line)?;
    let (stack, before) = match kind {
        LineKind::Plain => (stack, Weight::ZERO),
        LineKind::Differential => split_weight(stack)?,
    };
    (!stack.is_empty()).then_some(Line { stack, weights: Weights { before, after } })
}

/// Splits a line into the text before the last weight and that weight.
fn split_weight(line: &[u8]) -> Option<(&[u8], Weight)> {
    let line = trim_blanks(line);
    let blank = memchr::memrchr2(b' ', b'\t', line)?;
    Some((trim_blanks(&line[..blank]), Weight::parse(&line[blank + 1..])?))
}

/// Removes spaces and tabs at the end of a line.
pub(super) fn trim_blanks(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
    &line[..end]
}

/// Parses the most frequent form of a line: a stack, a space, and up to seven digits.
#[inline]
fn parse_short_integer_line(line: &[u8]) -> Option<Line<'_>> {
    let (before, end) = line.split_last_chunk::<8>()?;
    let digits = count_digits(end);
    let blank = before.len() + 7usize.checked_sub(digits)?;
    let is_match = digits > 0 && line[blank] == b' ' && blank > 0 && !matches!(line[blank - 1], b' ' | b'\t');
    is_match.then(|| Line { stack: &line[..blank], weights: Weights::plain(Weight::new(parse_digits(end, digits))) })
}

/// Returns the number of digits at the end of eight bytes.
#[inline]
fn count_digits(end: &[u8; 8]) -> usize {
    let values = u64::from_le_bytes(*end) ^ u64::from_le_bytes([b'0'; 8]);
    // Sets the highest bit of each byte that is not a digit; no byte carries into the next.
    let non_digits = ((values & u64::from_le_bytes([0x7f; 8])) + u64::from_le_bytes([0x76; 8])) | values;
    (non_digits & u64::from_le_bytes([0x80; 8])).leading_zeros() as usize / 8
}

/// Returns the value of the last one to eight `digits` of the bytes, without a loop (SIMD within a register).
#[inline]
fn parse_digits(end: &[u8; 8], digits: usize) -> u64 {
    let values = u64::from_le_bytes(*end) ^ u64::from_le_bytes([b'0'; 8]);
    // The bytes before the digits become zeros.
    let ones = values & (u64::MAX << (64 - 8 * digits));
    let pairs = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// True if the text after the last blank of a stack is a weight. The writer renames such leaves.
#[inline]
pub(super) fn ends_like_a_weight(stack: &[u8]) -> bool {
    if !stack.last().is_some_and(|last| last.is_ascii_digit() || *last == b'.') {
        return false;
    }
    if let Some(end) = stack.last_chunk::<8>() {
        // Usually the digits at the end of a name follow another character of the name.
        let before = 7usize.checked_sub(count_digits(end)).map(|index| end[index]);
        if before.is_some_and(|before| !is_numeric(before) && !matches!(before, b' ' | b'\t')) {
            return false;
        }
    }
    split_number(stack).is_some()
}

/// True for a byte that can be part of a weight.
#[inline]
fn is_numeric(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')
}

/// Returns the text before a weight at the end of a stack, without blanks between them; `None` if there is no weight.
pub(super) fn split_number(stack: &[u8]) -> Option<&[u8]> {
    let blank = stack.iter().rposition(|byte| !is_numeric(*byte))?;
    let is_weight = matches!(stack[blank], b' ' | b'\t') && Weight::parse(&stack[blank + 1..]).is_some();
    is_weight.then(|| trim_blanks(&stack[..blank])).filter(|text| !text.is_empty())
}

/// True for a line of metadata that other programs write: `# mode: wall`, or
/// `# captured on    : Thu Nov 19 22:10:03 2026`.
///
/// A line that can be parsed as several frames, or as a frame without a colon and a weight, is a stack.
#[inline]
pub fn is_comment(line: &[u8]) -> bool {
    line.starts_with(b"# ")
        && !line.contains(&b';')
        && parse_line(line, LineKind::Plain).is_none_or(|line| is_comment_text(line.stack))
}

/// Returns what is wrong with a malformed line.
pub(super) fn describe_error(line: &[u8], kind: LineKind) -> &'static str {
    match kind {
        LineKind::Differential => "expected a stack and two weights: STACK BEFORE AFTER",
        LineKind::Plain if memchr::memrchr2(b' ', b'\t', line).is_none() => "expected a space and a weight at the end",
        LineKind::Plain if split_weight(line).is_some() => "expected a stack before the weight",
        LineKind::Plain => {
            "the text after the last space is not a weight: expected a number such as 12, 1.5 or 2e6, from 0.000001 to 1e32"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, LineKind, ends_like_a_weight, parse_any_line, parse_line, parse_short_integer_line};
    use crate::profile::Weight;

    fn plain(text: &str) -> Option<(&str, Weight)> {
        let Line { stack, weights } = parse_line(text.as_bytes(), LineKind::Plain)?;
        Some((std::str::from_utf8(stack).unwrap(), weights.after))
    }

    #[test]
    fn the_weight_follows_the_last_space() {
        assert_eq!(plain("a;operator new 12"), Some(("a;operator new", Weight::new(12))));
        assert_eq!(plain("a;b\t3"), Some(("a;b", Weight::new(3))));
        assert_eq!(plain(" a 1"), Some((" a", Weight::ONE)));
        for bad in ["", "a", "a;b", "  60", "a -1", "a 1e", "a +5"] {
            assert_eq!(plain(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn names_that_end_in_a_number_look_like_weights() {
        for (stack, expected) in [
            ("main;line 12", true),
            ("main;line 1.5", true),
            ("main;line 4e+09", true),
            ("main;line 5.", true),
            ("main;line12", false),
            ("main;thread-12", false),
            ("main;a long name, 1e12x", false),
            ("main;a.12", false),
            ("12", false),
        ] {
            assert_eq!(ends_like_a_weight(stack.as_bytes()), expected, "{stack}");
        }
    }

    #[test]
    fn the_fast_path_agrees_with_the_general_parser() {
        let stacks =
            ["", "a", "a;b", "a;b.7", "a;bb 12", "abcdefgh 1234567", "x ", "x\t", "/:\u{b9}\u{ff1}", "main;f \0"];
        let weights =
            ["", "0", "7", "12", "90", "123", "4567", "98765", "999999", "1234567", "12345678", "1.5", "x", "1x", "-1"];
        let mut fast = 0;
        for line in stacks.iter().flat_map(|stack| weights.map(|weight| format!("{stack} {weight}"))) {
            if let Some(found) = parse_short_integer_line(line.as_bytes()) {
                assert_eq!(Some(found), parse_any_line(line.as_bytes(), LineKind::Plain), "{line:?}");
                fast += 1;
            }
        }
        assert!(fast > 30, "{fast}");
    }
}
