//! The lines that nearly all are, taken apart in one pass: `\t         ADDRESS SYMBOL+0xOFFSET (MODULE)`, and
//! `[unknown] ([unknown])` for the symbol and the module.

use super::frame::after_columns;
use crate::markers::UNKNOWN;

/// So many bytes are looked at together.
const WINDOW: usize = 32;

/// The symbol in the line that a text begins with, empty for `[unknown]`, and what follows the line; nothing if it is not
/// such a line, or too near the text's end to be sure.
#[inline]
pub(super) fn symbol(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let named = after_columns(text)?;
    if let Some(rest) = named.strip_prefix(b"[unknown] ([unknown])\n") {
        return Some((b"", rest));
    }
    let columns = text.len() - named.len();
    let (blank, end) = last_blank_and_end(named)?;
    if named[end - 1] != b')' || named[blank + 1] != b'(' {
        return None;
    }
    let symbol = &without_offset(&text[..columns + blank])?[columns..];
    let is_known = !symbol.is_empty() && symbol != UNKNOWN;
    is_known.then(|| (symbol, &named[end + 1..]))
}

/// The text without `+0x…` at its end, of at most eight digits, if that stands there.
#[inline]
fn without_offset(text: &[u8]) -> Option<&[u8]> {
    let (_, last) = text.split_last_chunk::<8>()?;
    let digits = hex_digits(u64::from_be_bytes(*last)).trailing_ones() / 8;
    let (before, digits) = text.split_at(text.len() - digits as usize);
    if digits.is_empty() { None } else { before.strip_suffix(b"+0x") }
}

/// Of each byte all bits, if it is a hexadecimal digit; else none.
#[inline]
fn hex_digits(bytes: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let ascii = bytes & !HIGH;
    // The highest bit of each byte, if it is at least that.
    let at_least = |byte: u8| ascii + ONES * u64::from(128 - byte);
    let digits = at_least(b'0') & !at_least(b'9' + 1) | at_least(b'a') & !at_least(b'f' + 1);
    ((digits & !bytes & HIGH) >> 7) * 255
}

/// Where the last blank stands in the line that a text begins with, and where the line ends.
#[inline]
fn last_blank_and_end(text: &[u8]) -> Option<(usize, usize)> {
    let mut last = None;
    for (number, window) in text.as_chunks::<WINDOW>().0.iter().enumerate() {
        let (blanks, ends) = marks(window);
        // Those before the first end.
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

/// In which places the blanks and the ends of lines stand: a bit each.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
fn marks(window: &[u8; WINDOW]) -> (u32, u32) {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};

    #[target_feature(enable = "sse2")]
    fn places(halves: [__m128i; 2], byte: u8) -> u32 {
        let [low, high] = halves.map(|half| _mm_movemask_epi8(_mm_cmpeq_epi8(half, _mm_set1_epi8(byte as i8))) as u32);
        high << 16 | low
    }

    #[target_feature(enable = "sse2")]
    fn both(window: &[u8; WINDOW]) -> (u32, u32) {
        let word = |at: usize| window[at..].first_chunk().map_or(0, |word| i64::from_le_bytes(*word));
        let halves = [_mm_set_epi64x(word(8), word(0)), _mm_set_epi64x(word(24), word(16))];
        (places(halves, b' '), places(halves, b'\n'))
    }

    // SAFETY: every processor of this architecture has SSE2.
    unsafe { both(window) }
}

#[cfg(not(target_arch = "x86_64"))]
fn marks(window: &[u8; WINDOW]) -> (u32, u32) {
    let places = |byte| (0..WINDOW).fold(0, |places, at| places | u32::from(window[at] == byte) << at);
    (places(b' '), places(b'\n'))
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::{hex_digits, symbol};

    /// Enough text behind a line.
    const AFTER: &str = "\n\t            7f01 g+0x1 (/x)\n\n";

    #[test]
    fn usual_lines_say_what_any_line_says() {
        let long = "a<b, c>::d".repeat(30);
        for (rest, is_usual) in [
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
            let found = symbol(text.as_bytes());
            assert_eq!(found.is_some(), is_usual, "{line}");
            let Some((symbol, after)) = found else { continue };
            assert_eq!(after, &AFTER.as_bytes()[1..], "{line}");
            let parsed = frame::parse(line.as_bytes()).expect("a frame").symbol;
            assert_eq!(if symbol.is_empty() { super::UNKNOWN } else { symbol }, parsed, "{line}");
        }
    }

    #[test]
    fn bytes_are_hexadecimal_digits_or_not() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let expected = if matches!(byte, b'0'..=b'9' | b'a'..=b'f') { 0xff } else { 0 };
                assert_eq!(hex_digits(u64::from(byte) << (place * 8)), expected << (place * 8), "{byte}");
            }
        }
    }
}
