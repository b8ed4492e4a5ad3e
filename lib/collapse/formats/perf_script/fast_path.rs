//! A fast path for the form that nearly all frame lines have: `\t         ADDRESS SYMBOL+0xOFFSET (MODULE)`, also with
//! `[unknown] ([unknown])` for the symbol and the module. Such a line is parsed in one pass, with SIMD on x86-64.

use super::frame::after_columns;
use crate::markers::UNKNOWN;

/// Number of bytes that are compared at once.
const WINDOW: usize = 32;

/// Parses the line at the beginning of a text. Returns its symbol, empty for `[unknown]`, and the text after the line;
/// or `None` if the line has another form or is too close to the end of the text.
#[inline]
pub(super) fn parse_symbol(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let named = after_columns(text)?;
    if let Some(rest) = named.strip_prefix(b"[unknown] ([unknown])\n") {
        return Some((b"", rest));
    }
    let columns = text.len() - named.len();
    let (blank, end) = last_blank_and_end(named)?;
    if named[end - 1] != b')' || named[blank + 1] != b'(' {
        return None;
    }
    let symbol = &strip_offset(&text[..columns + blank])?[columns..];
    let is_known = !symbol.is_empty() && symbol != UNKNOWN;
    is_known.then(|| (symbol, &named[end + 1..]))
}

/// Returns the text without the offset `+0x…` at its end. `None` if it has none, or one of more than eight digits.
#[inline]
fn strip_offset(text: &[u8]) -> Option<&[u8]> {
    let (_, last) = text.split_last_chunk::<8>()?;
    let digits = hex_digits(u64::from_be_bytes(*last)).trailing_ones() / 8;
    let (before, digits) = text.split_at(text.len() - digits as usize);
    if digits.is_empty() { None } else { before.strip_suffix(b"+0x") }
}

/// Returns 0xff in place of each byte that is a lowercase hexadecimal digit, and 0 in place of all others.
#[inline]
fn hex_digits(bytes: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let ascii = bytes & !HIGH;
    // Sets the highest bit of each byte that is at least `byte`.
    let at_least = |byte: u8| ascii + ONES * u64::from(128 - byte);
    let digits = at_least(b'0') & !at_least(b'9' + 1) | at_least(b'a') & !at_least(b'f' + 1);
    ((digits & !bytes & HIGH) >> 7) * 255
}

/// Returns the offsets of the last blank in the first line of a text, and of the line's end.
#[inline]
fn last_blank_and_end(text: &[u8]) -> Option<(usize, usize)> {
    let mut last = None;
    for (number, window) in text.as_chunks::<WINDOW>().0.iter().enumerate() {
        let (blanks, ends) = find_blanks_and_ends(window);
        // Only the blanks before the first line end.
        let blanks = blanks & (ends.wrapping_sub(1) & !ends);
        if blanks != 0 {
            last = Some(number * WINDOW + blanks.ilog2() as usize);
        }
        if ends != 0 {
            return Some((last?, number * WINDOW + ends.trailing_zeros() as usize));
        }
    }
    None
}

/// Returns bit masks of the blanks and of the line ends in a window.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
fn find_blanks_and_ends(window: &[u8; WINDOW]) -> (u32, u32) {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};

    #[target_feature(enable = "sse2")]
    fn find(halves: [__m128i; 2], byte: u8) -> u32 {
        let [low, high] = halves.map(|half| _mm_movemask_epi8(_mm_cmpeq_epi8(half, _mm_set1_epi8(byte as i8))) as u32);
        high << 16 | low
    }

    #[target_feature(enable = "sse2")]
    fn find_both(window: &[u8; WINDOW]) -> (u32, u32) {
        let word = |offset: usize| window[offset..].first_chunk().map_or(0, |word| i64::from_le_bytes(*word));
        let halves = [_mm_set_epi64x(word(8), word(0)), _mm_set_epi64x(word(24), word(16))];
        (find(halves, b' '), find(halves, b'\n'))
    }

    // SAFETY: all x86-64 processors have SSE2.
    unsafe { find_both(window) }
}

#[cfg(not(target_arch = "x86_64"))]
fn find_blanks_and_ends(window: &[u8; WINDOW]) -> (u32, u32) {
    let [blanks, ends] =
        [b' ', b'\n'].map(|byte| (0..WINDOW).fold(0, |mask, index| mask | u32::from(window[index] == byte) << index));
    (blanks, ends)
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::{hex_digits, parse_symbol};

    /// Text after a line, long enough for the fast path.
    const AFTER: &str = "\n\t            7f01 g+0x1 (/x)\n\n";

    #[test]
    fn agrees_with_the_general_parser() {
        let long = "a<b, c>::d".repeat(30);
        for (rest, is_fast) in [
            ("f+0x1f (/x)", true),
            ("[unknown] ([unknown])", true),
            ("it<int*>::operator+++0xc6 (inlined)", true),
            ("VM_Version stub+0x3af (/tmp/perf-19890.map)", true),
            (&format!("{long}+0x1234567 (/usr/lib/{long})").replace(", ", ","), true),
            ("f+0x12345678 (/x)", true),
            ("f+0x123456789 (/x)", false),
            ("f+0x (/x)", false),
            ("f+0x1 (/x)\r", false),
            ("f+0x1F (/x)", false),
            ("f+0\u{b1}1 (/x)", false),
            ("f+1 (/x)", false),
            ("f (/x)", false),
            ("+0x1 (/x)", false),
            ("[unknown]+0x1 (/x)", false),
            ("[unknown] (/x)", false),
            ("f+0x1 (/x y)", false),
            ("f+0x1 (/x", false),
            ("f+0x1 /x)", false),
            ("f", false),
            ("", false),
        ] {
            let line = format!("\t            7f00 {rest}");
            let text = line.clone() + AFTER;
            let found = parse_symbol(text.as_bytes());
            assert_eq!(found.is_some(), is_fast, "{line}");
            let Some((symbol, after)) = found else { continue };
            assert_eq!(after, &AFTER.as_bytes()[1..], "{line}");
            let parsed = frame::parse(line.as_bytes()).expect("a frame").symbol;
            assert_eq!(if symbol.is_empty() { super::UNKNOWN } else { symbol }, parsed, "{line}");
        }
    }

    #[test]
    fn finds_hexadecimal_digits() {
        for byte in 0..=u8::MAX {
            for index in 0..8 {
                let expected = if matches!(byte, b'0'..=b'9' | b'a'..=b'f') { 0xff } else { 0 };
                assert_eq!(hex_digits(u64::from(byte) << (index * 8)), expected << (index * 8), "{byte}");
            }
        }
    }
}
