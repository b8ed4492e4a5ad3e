//! Helpers of readers of text formats.

use std::borrow::Cow;

use super::options::Options;
pub(super) use crate::bytes::{parse_number, split_once, split_word, split_words, starts_with_any};
use crate::markers::UNKNOWN;
use crate::profile::Weight;
use crate::symbol_name::simplify;

/// Number of first bytes whose lines are used to detect a format.
const DETECTION_LENGTH: usize = 64 * 1024;

/// Returns the first lines of an input, without line ends. A line that is cut off is left out, unless it is the only
/// one.
pub(super) fn first_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let end = match head.get(..DETECTION_LENGTH) {
        Some(first) => memchr::memrchr(b'\n', first).or_else(|| memchr::memchr(b'\n', head)).unwrap_or(head.len()),
        None => head.len(),
    };
    let head = &head[..end];
    let mut next = Some(head);
    std::iter::from_fn(move || {
        let rest = next.take()?;
        let end = memchr::memchr(b'\n', rest);
        next = end.map(|end| &rest[end + 1..]);
        let line = &rest[..end.unwrap_or(rest.len())];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// Fewest lines by which doubled line ends are told from the end of a stack.
const MIN_DOUBLE_SPACED: usize = 3;

/// Returns true if a blank line follows each line, as in text that was copied from some browsers.
pub(super) fn is_double_spaced(head: &[u8]) -> bool {
    let is_blank = |line: &[u8]| line.trim_ascii().is_empty();
    let lines = first_lines(head).filter(|line| !is_blank(line)).count();
    let mut was_blank = true;
    let has_neighbours = first_lines(head).any(|line| !std::mem::replace(&mut was_blank, is_blank(line)) && !was_blank);
    lines >= MIN_DOUBLE_SPACED && !has_neighbours
}

/// Returns true if at least `share` percent of the first lines that are not blank fit, and there is one.
pub(super) fn most_lines_fit(head: &[u8], share: usize, fits: impl Fn(&[u8]) -> bool) -> bool {
    let (mut fitting, mut all) = (0, 0);
    for line in first_lines(head).filter(|line| !line.trim_ascii().is_empty()) {
        all += 1;
        fitting += usize::from(fits(line));
    }
    fitting > 0 && fitting * 100 >= all * share
}

/// True for `0x` and hexadecimal digits.
pub(super) fn is_address(text: &[u8]) -> bool {
    text.strip_prefix(b"0x").is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit))
}

/// The message about a line for which [`is_no_count`] is true.
pub(super) const NO_COUNT: &str = "expected a count, found a negative, fractional or too large number or a histogram";

/// True for a line that has the value of the stack before it, but no count: a negative, fractional or too large number, or a
/// line of a histogram as DTrace and bcc print them. The stack must be dropped, or its frames become those of the next one.
pub(super) fn is_no_count(text: &[u8]) -> bool {
    let is_number = text.iter().all(|byte| byte.is_ascii_digit() || b"+-.e".contains(byte));
    let is_heading =
        memchr::memmem::find(text, b"istribution").is_some() && memchr::memmem::find(text, b"count").is_some();
    is_number && std::str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok())
        || is_heading
        || is_histogram_row(text)
}

/// True for `4 |@@@   12`, `< 0 |  3` and `4 -> 7 : 12 |****  |`.
fn is_histogram_row(text: &[u8]) -> bool {
    let Some(bar) = memchr::memchr(b'|', text) else { return false };
    let (range, bars) = (&text[..bar], &text[bar + 1..]);
    let is_range =
        range.iter().any(u8::is_ascii_digit) && range.iter().all(|byte| b"0123456789 -<>=:.KMGT[](),".contains(byte));
    is_range && bars.iter().all(|byte| b"0123456789 @*|".contains(byte))
}

/// Returns the number of leading blanks.
pub(super) fn indentation(line: &[u8]) -> usize {
    line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Strips an offset like `+0x1f`, `+31` or `+0x1f/0x40` from the end of a name.
pub(super) fn strip_offset(name: &[u8]) -> &[u8] {
    let Some(plus) = memchr::memrchr(b'+', name).filter(|plus| *plus > 0) else { return name };
    let offset = &name[plus + 1..];
    let is_offset = offset.split(|byte| *byte == b'/').all(|part| is_address(part) || parse_number(part).is_some());
    if is_offset { name[..plus].trim_ascii_end() } else { name }
}

/// Returns the name of a function of a compiled language, simplified unless the options say verbatim.
pub(super) fn function_name<'a>(name: &'a [u8], options: &Options) -> Cow<'a, [u8]> {
    match name {
        b"" | b"??" | b"???" => Cow::Borrowed(UNKNOWN),
        _ if options.verbatim => Cow::Borrowed(name),
        _ => simplify::simplify(strip_llvm_suffix(strip_offset(name))),
    }
}

/// Strips ` (.llvm.123)`, which hides the end of a mangled name.
pub(super) fn strip_llvm_suffix(name: &[u8]) -> &[u8] {
    memchr::memmem::rfind(name, b" (.llvm.").map_or(name, |end| &name[..end])
}

/// Multiplies a weight, if the product fits.
pub(super) fn multiply_weight(weight: Weight, factor: u64) -> Option<Weight> {
    weight.millionths().checked_mul(factor.into()).map(Weight::from_millionths)
}

/// Parses a decimal number and multiplies it by 10 to the power of `places`.
pub(super) fn parse_scaled(text: &[u8], places: u32) -> Option<Weight> {
    let (whole, fraction) = split_once(text, ".").unwrap_or((text, b""));
    let places = places as usize;
    let (kept, rest) = fraction.split_at(fraction.len().min(places));
    let mut digits = [whole, kept].concat();
    digits.resize(whole.len() + places, b'0');
    if !rest.is_empty() {
        digits.push(b'.');
        digits.extend_from_slice(rest);
    }
    if whole.is_empty() { None } else { Weight::parse(&digits) }
}

/// Splits a line of comma-separated values; `None` if a quote is not closed.
pub(super) fn split_csv(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), Vec::new(), false);
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if quoted && bytes.peek() == Some(&b'"') => {
                bytes.next();
                field.push(b'"');
            }
            b'"' => quoted = !quoted,
            b',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(byte),
        }
    }
    fields.push(field);
    (!quoted).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::{is_double_spaced, is_no_count, parse_scaled, split_csv, strip_offset};

    fn scale(text: &str, places: u32) -> Option<String> {
        parse_scaled(text.as_bytes(), places).map(|weight| weight.to_string())
    }

    #[test]
    fn tells_doubled_line_ends_from_blank_lines() {
        for (text, expected) in [
            ("a\n\nb\n\nc\n\n", true),
            ("a\n\n\n\nb\n\nc", true),
            ("\na\r\n\r\nb\r\n\r\nc\r\n", true),
            ("a\n\nb\n\n", false),
            ("a\n\nb\n\nc\nd\n", false),
        ] {
            assert_eq!(is_double_spaced(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn scales_numbers_exactly() {
        assert_eq!(scale("0.004207", 3).as_deref(), Some("4.207"));
        assert_eq!(scale("12", 6).as_deref(), Some("12000000"));
        assert_eq!(scale("1.0000005", 6).as_deref(), Some("1000000.5"));
        assert_eq!((scale(".5", 3), scale("x", 3), scale("1.x", 3)), (None, None, None));
    }

    #[test]
    fn values_that_are_no_counts_are_told_from_frames() {
        for value in [
            "-3",
            "1.5",
            "18446744073709551616",
            "value  ------------- Distribution ------------- count",
            "usecs               : count     distribution",
            "4 |@@@      3",
            "< 0 |       0",
            ">= 10 |@    2",
            "2 -> 3          : 3        |**  |",
            "[4, 8)          12 |@@@@  |",
        ] {
            assert!(is_no_count(value.as_bytes()), "{value}");
        }
        for frame in
            ["", "-", "--", "e", "f+1", "operator|", "a`b|c", "0x12", "std::operator|<int>", "f.cold", "main 3"]
        {
            assert!(!is_no_count(frame.as_bytes()), "{frame}");
        }
    }

    #[test]
    fn quotes_protect_commas() {
        assert_eq!(split_csv(b"a,\"b,\"\"c\",").unwrap(), [&b"a"[..], b"b,\"c", b""]);
        assert_eq!(split_csv(b"a,\"b"), None);
    }

    #[test]
    fn strips_offsets() {
        for (name, plain) in [("f+0x1f", "f"), ("f+86", "f"), ("f+0x4/0x1b0", "f"), ("operator+", "operator+")] {
            assert_eq!(strip_offset(name.as_bytes()), plain.as_bytes());
        }
        assert_eq!(strip_offset(b"+12"), b"+12");
    }
}
