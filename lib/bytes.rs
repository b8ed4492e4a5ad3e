//! Text as bytes: byte order marks, words, decimal numbers and hexadecimal digits.

use std::path::Path;

use bstr::ByteSlice as _;

/// The UTF-8 byte order mark. Some editors and Windows programs write it at the start of a text.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Returns the text without a byte order mark at its start.
pub(crate) fn strip_bom(text: &[u8]) -> &[u8] {
    text.strip_prefix(BOM).unwrap_or(text)
}

/// Parses hexadecimal digits of either case, without `0x` or sign.
///
/// `None` if there are no digits, if there is any other byte, or if the number has more than 64 bits.
pub(crate) fn parse_hex(digits: &[u8]) -> Option<u64> {
    // Not `from_str_radix`: it accepts a sign, and kallsyms has hundreds of thousands of addresses to parse.
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let significant = &digits[zeros..];
    if digits.is_empty() || significant.len() > 16 {
        return None;
    }
    significant.iter().try_fold(0, |sum, digit| Some(sum << 4 | u64::from(char::from(*digit).to_digit(16)?)))
}

/// Formats bytes as lower-case hexadecimal digits.
pub(crate) fn format_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns true if a line begins with one of these texts, as what programs say beside their stacks.
pub(crate) fn starts_with_any(line: &[u8], starts: &[&[u8]]) -> bool {
    starts.iter().any(|start| line.starts_with(start))
}

/// Returns the words between blanks.
pub(crate) fn split_words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Splits off the first word; returns it and the text after the blanks that follow.
pub(crate) fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

/// Reads a text of the kernel that may contain names of files and threads, such as `/proc/PID/status`. What of them is not
/// UTF-8 becomes U+FFFD.
pub(crate) fn read_lossy(path: impl AsRef<Path>) -> std::io::Result<String> {
    std::fs::read(path).map(|text| text.to_str_lossy().into_owned())
}

/// Parses a whole number of digits only.
pub(crate) fn parse_number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits.then(|| text.to_str().ok()?.parse().ok()).flatten()
}

/// Splits at the first `separator`.
pub(crate) fn split_once<'a>(text: &'a [u8], separator: &str) -> Option<(&'a [u8], &'a [u8])> {
    text.split_once_str(separator)
}

#[cfg(test)]
mod tests {
    use super::{format_hex, parse_hex};

    #[test]
    fn parses_digits_only() {
        for (digits, value) in [
            ("0", Some(0)),
            ("fF", Some(255)),
            ("ffffffffffffffff", Some(u64::MAX)),
            ("00000000000000001", Some(1)),
            ("10000000000000000", None),
            ("", None),
            ("+1", None),
            ("0x1", None),
        ] {
            assert_eq!(parse_hex(digits.as_bytes()), value, "{digits}");
        }
    }

    #[test]
    fn formats_two_digits_per_byte() {
        assert_eq!(format_hex(&[0, 0xab, 0x0c]), "00ab0c");
    }
}
