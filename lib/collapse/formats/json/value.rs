//! A value of a JSON document.

use std::borrow::Cow;

use super::tape::{Tape, is_of_word};

/// A value, wherever it stands. What is asked of a value of another kind is not there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'t> {
    tape: &'t Tape<'t>,
    node: u32,
}

impl<'t> Value<'t> {
    pub(super) fn new(tape: &'t Tape<'t>, node: u32) -> Self {
        Self { tape, node }
    }

    fn raw(self) -> &'t [u8] {
        &self.tape.text[self.tape.nodes[self.node as usize].start as usize..]
    }

    fn kind(self) -> u8 {
        self.raw()[0]
    }

    pub(super) fn is_object(self) -> bool {
        self.kind() == b'{'
    }

    pub(super) fn is_array(self) -> bool {
        self.kind() == b'['
    }

    /// The values in an array.
    pub(super) fn items(self) -> Items<'t> {
        let next = self.tape.nodes[self.node as usize].next;
        Items { tape: self.tape, node: self.node + 1, end: if self.kind() == b'[' { next } else { 0 } }
    }

    /// Itself, as if it stood alone in an array.
    pub(super) fn alone(self) -> Items<'t> {
        Items { tape: self.tape, node: self.node, end: self.tape.nodes[self.node as usize].next }
    }

    /// The names and values in an object.
    pub(super) fn members(self) -> impl Iterator<Item = (Cow<'t, [u8]>, Value<'t>)> {
        self.fields().map(|(key, value)| (unescaped(key.quoted()), value))
    }

    fn fields(self) -> impl Iterator<Item = (Value<'t>, Value<'t>)> {
        let next = self.tape.nodes[self.node as usize].next;
        let mut all = Items { tape: self.tape, node: self.node + 1, end: if self.kind() == b'{' { next } else { 0 } };
        std::iter::from_fn(move || Some((all.next()?, all.next()?)))
    }

    /// What an object has under a name; the first of several.
    pub(super) fn get(self, name: &[u8]) -> Option<Value<'t>> {
        self.fields().find(|(key, _)| key.quoted() == name).map(|(_, value)| value)
    }

    /// What an object has under a name within what it has under another, and so on.
    pub(super) fn path<const N: usize>(self, names: [&[u8]; N]) -> Option<Value<'t>> {
        names.iter().try_fold(self, |value, name| value.get(name))
    }

    /// The text between the quotes, as it stands there.
    fn quoted(self) -> &'t [u8] {
        let text = &self.raw()[1..];
        let mut at = 0;
        while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
            if text[at + found] == b'"' {
                return &text[..at + found];
            }
            at += found + 2;
        }
        b""
    }

    /// A text.
    pub(super) fn text(self) -> Option<Cow<'t, [u8]>> {
        (self.kind() == b'"').then(|| unescaped(self.quoted()))
    }

    /// A text, or a number as it is written: ids are this in one tool and that in the other.
    pub(super) fn label(self) -> Option<Cow<'t, [u8]>> {
        self.text().or_else(|| self.number().map(Cow::Borrowed))
    }

    fn number(self) -> Option<&'t [u8]> {
        let length = self.raw().iter().take_while(|byte| is_of_word(**byte)).count();
        Some(&self.raw()[..length]).filter(|_| matches!(self.kind(), b'-' | b'0'..=b'9'))
    }

    /// A whole number.
    pub(super) fn whole(self) -> Option<i64> {
        let number = std::str::from_utf8(self.number()?).ok()?;
        number.parse().ok().or_else(|| number.parse::<f64>().ok().map(|number| number as i64))
    }

    /// A place in a table.
    pub(super) fn index(self) -> Option<usize> {
        usize::try_from(self.whole()?).ok()
    }

    /// A number in millionths, or a text that holds one.
    pub(super) fn millionths(self) -> Option<i128> {
        let text = self.label()?;
        let (negative, digits) = text.strip_prefix(b"-").map_or((false, &text[..]), |digits| (true, digits));
        let size = match crate::profile::Weight::parse(digits) {
            Some(weight) => i128::try_from(weight.millionths()).ok()?,
            // With an exponent; up to where a sum could not be held.
            None => {
                let number = std::str::from_utf8(digits).ok()?.parse::<f64>().ok()?;
                Some(number * 1e6).filter(|number| number.abs() < 1e30)?.round() as i128
            }
        };
        Some(if negative { -size } else { size })
    }
}

/// See [`Value::items`].
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
        let value = Value::new(self.tape, self.node);
        self.node = self.tape.nodes[self.node as usize].next;
        Some(value)
    }
}

/// A text without its escapes. What no escape stands for is the replacement character.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else { return Cow::Borrowed(text) };
    let mut plain = text[..first].to_vec();
    let mut rest = &text[first..];
    while let [b'\\', escape, behind @ ..] = rest {
        rest = behind;
        match escape {
            b'b' => plain.push(8),
            b'f' => plain.push(12),
            b'n' => plain.push(b'\n'),
            b'r' => plain.push(b'\r'),
            b't' => plain.push(b'\t'),
            b'u' => {
                let character = unicode(&mut rest).unwrap_or(char::REPLACEMENT_CHARACTER);
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

/// Takes four hexadecimal digits, and four more where they are half a character.
fn unicode(rest: &mut &[u8]) -> Option<char> {
    let high = hex(rest)?;
    if !(0xd800..0xdc00).contains(&high) {
        return char::from_u32(high);
    }
    let mut behind = rest.strip_prefix(b"\\u")?;
    let low = hex(&mut behind).filter(|low| (0xdc00..0xe000).contains(low))?;
    *rest = behind;
    char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
}

fn hex(rest: &mut &[u8]) -> Option<u32> {
    let (digits, behind) = rest.split_at_checked(4)?;
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    *rest = behind;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tape::Tape;

    fn text(json: &str) -> String {
        let tape = Tape::read(json.as_bytes()).unwrap();
        String::from_utf8(tape.root().unwrap().text().unwrap().into_owned()).unwrap()
    }

    #[test]
    fn escapes_are_what_they_stand_for() {
        assert_eq!(text(r#""a\"b\\c\/\n\u00e9\ud83d\ude00""#), "a\"b\\c/\né😀");
        assert_eq!(text(r#""\ud83dx\u12""#), "\u{fffd}x\u{fffd}12");
    }

    #[test]
    fn numbers_are_exact() {
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
            let tape = Tape::read(json.as_bytes()).unwrap();
            assert_eq!(tape.root().unwrap().millionths(), millionths, "{json}");
        }
    }
}
