//! Values of a JSON document.

use std::borrow::Cow;

use bstr::ByteSlice as _;

use super::tape::{Tape, is_scalar_byte};
use crate::collapse::line_helpers::parse_scaled;
use crate::profile::Weight;

/// A value. Methods for another type of value than it has return `None` or no items.
#[derive(Clone, Copy, Debug)]
pub(in crate::collapse) struct Value<'t> {
    tape: &'t Tape<'t>,
    node: u32,
}

impl<'t> Value<'t> {
    /// Returns the value of a document, or `None` if its text is blank.
    pub(super) fn root(tape: &'t Tape<'t>) -> Option<Self> {
        (!tape.nodes.is_empty()).then_some(Self { tape, node: 0 })
    }

    /// Returns the document from this value on.
    fn raw_text(self) -> &'t [u8] {
        &self.tape.text[self.tape.nodes[self.node as usize].start as usize..]
    }

    /// Returns the first byte, which determines the value's type.
    fn first_byte(self) -> u8 {
        self.raw_text()[0]
    }

    /// Returns the offset in the text of the document.
    pub(super) fn start(self) -> usize {
        self.tape.nodes[self.node as usize].start as usize
    }

    pub(super) fn is_object(self) -> bool {
        self.first_byte() == b'{'
    }

    pub(super) fn is_array(self) -> bool {
        self.first_byte() == b'['
    }

    pub(super) fn is_true(self) -> bool {
        self.first_byte() == b't'
    }

    /// Returns the values of an array.
    pub(super) fn items(self) -> Items<'t> {
        let next = self.tape.nodes[self.node as usize].next;
        Items { tape: self.tape, node: self.node + 1, end: if self.first_byte() == b'[' { next } else { 0 } }
    }

    /// Returns an iterator over this value alone.
    pub(super) fn as_items(self) -> Items<'t> {
        Items { tape: self.tape, node: self.node, end: self.tape.nodes[self.node as usize].next }
    }

    /// Returns the keys and values of an object.
    pub(super) fn members(self) -> impl Iterator<Item = (Cow<'t, [u8]>, Value<'t>)> {
        self.raw_members().map(|(key, value)| (unescape(key.raw_string()), value))
    }

    /// Returns the keys and values of an object; the keys are strings.
    fn raw_members(self) -> impl Iterator<Item = (Value<'t>, Value<'t>)> {
        let next = self.tape.nodes[self.node as usize].next;
        let mut all =
            Items { tape: self.tape, node: self.node + 1, end: if self.first_byte() == b'{' { next } else { 0 } };
        std::iter::from_fn(move || Some((all.next()?, all.next()?)))
    }

    /// Returns the value of the first member of an object with this key.
    pub(super) fn get(self, key: &[u8]) -> Option<Value<'t>> {
        self.raw_members().find(|(other, _)| other.raw_string() == key).map(|(_, value)| value)
    }

    /// Returns the value in nested objects under these keys.
    pub(super) fn get_path<const N: usize>(self, keys: [&[u8]; N]) -> Option<Value<'t>> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Returns the items of the array under this key; none if it is missing.
    pub(super) fn get_items(self, key: &[u8]) -> impl Iterator<Item = Value<'t>> + use<'t> {
        self.get(key).into_iter().flat_map(Value::items)
    }

    /// Returns the string under this key, or an empty one.
    pub(super) fn get_string(self, key: &[u8]) -> Cow<'t, [u8]> {
        self.get(key).and_then(Value::as_string).unwrap_or_default()
    }

    /// Returns the string under this key, or the text of the number there; an empty one if it is missing.
    pub(super) fn get_label(self, key: &[u8]) -> Cow<'t, [u8]> {
        self.get(key).and_then(Value::as_label).unwrap_or_default()
    }

    /// Returns the whole number under this key, or the one that a string contains.
    pub(super) fn get_integer(self, key: &[u8]) -> Option<i64> {
        self.get(key)?.as_integer()
    }

    /// Returns the number under this key in millionths, or the one that a string contains.
    pub(super) fn get_millionths(self, key: &[u8]) -> Option<i128> {
        self.get(key)?.as_millionths()
    }

    /// Returns the text between the quotes of a string, with its escapes.
    fn raw_string(self) -> &'t [u8] {
        let text = &self.raw_text()[1..];
        let mut offset = 0;
        while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(offset..).unwrap_or_default()) {
            if text[offset + found] == b'"' {
                return &text[..offset + found];
            }
            offset += found + 2;
        }
        b""
    }

    /// Returns a string without its escapes.
    pub(super) fn as_string(self) -> Option<Cow<'t, [u8]>> {
        (self.first_byte() == b'"').then(|| unescape(self.raw_string()))
    }

    /// Returns a string, or the text of a number: some tools write IDs as strings, others as numbers. Whole numbers are the same
    /// label in all forms of JSON: `1`, `1.0` and `1e0`.
    pub(super) fn as_label(self) -> Option<Cow<'t, [u8]>> {
        let text = self.as_text()?;
        let is_whole = || self.first_byte() != b'"' && text.iter().any(|byte| b".eE".contains(byte));
        let whole = is_whole().then(|| self.as_integer()).flatten();
        Some(whole.map_or(text, |number| Cow::Owned(number.to_string().into_bytes())))
    }

    /// Returns a string, or a number as the document has it.
    fn as_text(self) -> Option<Cow<'t, [u8]>> {
        self.as_string().or_else(|| self.number_text().map(Cow::Borrowed))
    }

    /// Returns the text of a number.
    fn number_text(self) -> Option<&'t [u8]> {
        let length = self.raw_text().iter().take_while(|byte| is_scalar_byte(**byte)).count();
        Some(&self.raw_text()[..length]).filter(|_| matches!(self.first_byte(), b'-' | b'0'..=b'9'))
    }

    /// Returns a whole number, or the one that a string contains. Programs that keep all numbers as floating-point numbers write
    /// `1.0` or `1e+06`; others write large numbers as strings.
    pub(super) fn as_integer(self) -> Option<i64> {
        let text = self.as_text()?;
        let number = std::str::from_utf8(&text).ok()?;
        let whole = || number.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && number.abs() < 1e18);
        number.parse().ok().or_else(|| whole().map(|number| number as i64))
    }

    /// Returns a number in trillionths, or the number that a string contains.
    pub(super) fn as_trillionths(self) -> Option<i128> {
        let text = self.as_text()?;
        let (is_negative, digits) = text.strip_prefix(b"-").map_or((false, &text[..]), |digits| (true, digits));
        let magnitude = match parse_scaled(digits, 6).filter(|_| !digits.contains(&b'e') && !digits.contains(&b'E')) {
            Some(weight) => i128::try_from(weight.millionths()).ok()?,
            None => Some(self.as_float()?.abs() * 1e12).filter(|number| *number < 1e36)?.round() as i128,
        };
        Some(if is_negative { -magnitude } else { magnitude })
    }

    /// Returns the number of decimal places of a number. One with an exponent has as many as floating-point numbers have.
    pub(super) fn count_decimals(self) -> u32 {
        let text = self.as_text().unwrap_or_default();
        match memchr::memchr(b'.', &text) {
            _ if memchr::memchr2(b'e', b'E', &text).is_some() => 15,
            Some(dot) => text[dot + 1..].trim_end_with(|digit| digit == '0').len() as u32,
            None => 0,
        }
    }

    /// Returns a number as exactly as the text has it.
    pub(super) fn as_float(self) -> Option<f64> {
        std::str::from_utf8(&self.as_text()?).ok()?.parse().ok()
    }

    /// Returns a number that is an index in a table.
    pub(super) fn as_index(self) -> Option<usize> {
        usize::try_from(self.as_integer()?).ok()
    }

    /// Returns a number in millionths, or the number that a string contains. One that is rounded to 0 is counted in
    /// [`Tape::too_small`].
    pub(super) fn as_millionths(self) -> Option<i128> {
        let text = self.as_text()?;
        let (is_negative, digits) = text.strip_prefix(b"-").map_or((false, &text[..]), |digits| (true, digits));
        let magnitude = match Weight::parse(digits) {
            Some(weight) => i128::try_from(weight.millionths()).ok()?,
            // The number has an exponent. The limit keeps sums from overflowing.
            None => {
                let number = std::str::from_utf8(digits).ok()?.parse::<f64>().ok()?;
                let millionths = Some(number * 1e6).filter(|number| number.abs() < 1e30)?.round() as i128;
                if millionths == 0 && number != 0.0 {
                    self.tape.too_small.borrow_mut().insert(self.node);
                }
                millionths
            }
        };
        Some(if is_negative { -magnitude } else { magnitude })
    }
}

/// An iterator over the values of an array.
#[derive(Clone, Debug)]
pub(super) struct Items<'t> {
    tape: &'t Tape<'t>,
    node: u32,
    end: u32,
}

impl<'t> Iterator for Items<'t> {
    type Item = Value<'t>;

    fn next(&mut self) -> Option<Value<'t>> {
        if self.node >= self.end {
            return None;
        }
        let value = Value { tape: self.tape, node: self.node };
        self.node = self.tape.nodes[self.node as usize].next;
        Some(value)
    }
}

/// Replaces the escapes of a string. An invalid Unicode escape becomes the replacement character.
fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else { return Cow::Borrowed(text) };
    let mut plain = text[..first].to_vec();
    let mut rest = &text[first..];
    while let [b'\\', escape, after @ ..] = rest {
        rest = after;
        match escape {
            b'b' => plain.push(8),
            b'f' => plain.push(12),
            b'n' => plain.push(b'\n'),
            b'r' => plain.push(b'\r'),
            b't' => plain.push(b'\t'),
            b'u' => {
                let character = parse_unicode_escape(&mut rest).unwrap_or(char::REPLACEMENT_CHARACTER);
                plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => plain.push(*other),
        }
        let end = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        plain.extend_from_slice(&rest[..end]);
        rest = &rest[end..];
    }
    Cow::Owned(plain)
}

/// Parses the digits of a `\u` escape, and the escape after it if both are a surrogate pair. Advances `rest`.
fn parse_unicode_escape(rest: &mut &[u8]) -> Option<char> {
    let high = parse_four_digits(rest)?;
    if !(0xd800..0xdc00).contains(&high) {
        return char::from_u32(high);
    }
    let mut after = rest.strip_prefix(b"\\u")?;
    let low = parse_four_digits(&mut after).filter(|low| (0xdc00..0xe000).contains(low))?;
    *rest = after;
    char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
}

/// Parses four hexadecimal digits. Advances `rest`.
fn parse_four_digits(rest: &mut &[u8]) -> Option<u32> {
    let (digits, after) = rest.split_at_checked(4)?;
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    *rest = after;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::{Tape, Value};

    fn parse_string(json: &str) -> String {
        let tape = Tape::parse(json.as_bytes()).unwrap();
        String::from_utf8(Value::root(&tape).unwrap().as_string().unwrap().into_owned()).unwrap()
    }

    #[test]
    fn replaces_escapes() {
        assert_eq!(parse_string(r#""a\"b\\c\/\n\u00e9\ud83d\ude00""#), "a\"b\\c/\né😀");
        assert_eq!(parse_string(r#""\ud83dx\u12""#), "\u{fffd}x\u{fffd}12");
    }

    #[test]
    fn parses_numbers_exactly() {
        for (json, millionths) in [
            ("12", Some(12_000_000)),
            ("-0.5", Some(-500_000)),
            ("163140599286.123", Some(163_140_599_286_123_000)),
            ("1.5e3", Some(1_500_000_000)),
            ("\"7\"", Some(7_000_000)),
            ("1e300", None),
            ("true", None),
            ("[]", None),
        ] {
            let tape = Tape::parse(json.as_bytes()).unwrap();
            assert_eq!(Value::root(&tape).unwrap().as_millionths(), millionths, "{json}");
        }
    }

    #[test]
    fn whole_numbers_have_several_forms() {
        for (json, integer, label) in [
            ("12", Some(12), Some("12")),
            ("12.0", Some(12), Some("12")),
            ("1.2e+1", Some(12), Some("12")),
            ("-1.0", Some(-1), Some("-1")),
            ("\"12\"", Some(12), Some("12")),
            ("\"12.0\"", Some(12), Some("12.0")),
            ("12.5", None, Some("12.5")),
            ("1e300", None, Some("1e300")),
            ("\"a\"", None, Some("a")),
            ("null", None, None),
        ] {
            let tape = Tape::parse(json.as_bytes()).unwrap();
            let value = Value::root(&tape).unwrap();
            assert_eq!(value.as_integer(), integer, "{json}");
            assert_eq!(value.as_label().as_deref(), label.map(str::as_bytes), "{json}");
        }
    }
}
