//! Weights that are none.

use bstr::ByteSlice as _;

use crate::collapse::line_helpers::is_address;
use crate::profile::Weight;

/// Returns what is wrong with the weight of a line that is a stack otherwise.
pub(super) fn explain(line: &[u8]) -> Option<&'static str> {
    let weight = last_word(line);
    let is_parsed = |text: Option<&[u8]>| text.and_then(Weight::parse).is_some();
    if is_too_small(line) {
        Some("the weight is below 0.000001, the smallest that can be stored")
    } else if is_parsed(weight.strip_prefix(b"-")) {
        // Austin writes it where memory was released.
        Some("the weight is negative")
    } else if super::has_callers(line) && (is_parsed(weight.strip_prefix(b"+")) || is_other_number(weight)) {
        Some("the weight is not a decimal number")
    } else {
        None
    }
}

/// Returns true if the weight rounds to zero, because weights are stored in millionths.
pub(super) fn is_too_small(line: &[u8]) -> bool {
    last_word(line).strip_prefix(b"0.000000").is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// Returns true for numbers of programming languages that are no weights: `0x10`, `nan`, `-inf`.
fn is_other_number(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").unwrap_or(word);
    is_address(word) || Weight::parse(word).is_none() && word.to_str().is_ok_and(|word| word.parse::<f64>().is_ok())
}

pub(super) fn last_word(line: &[u8]) -> &[u8] {
    memchr::memrchr(b' ', line).map_or(line, |blank| &line[blank + 1..])
}
