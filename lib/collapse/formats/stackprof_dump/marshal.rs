//! Parses the part of Ruby's Marshal format, version 4.8, that stackprof's files use: numbers, strings, symbols, arrays
//! and hashes.

/// Maximum number of nested values.
const MAX_DEPTH: usize = 32;

/// A value. Other types than these are [`Other`](Self::Other).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(i128),
    /// A string or symbol.
    Text(&'a [u8]),
    Array(Vec<Value<'a>>),
    Hash(Vec<(Value<'a>, Value<'a>)>),
    Other,
}

impl<'a> Value<'a> {
    /// Returns the member of a hash whose key is this text.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Value<'a>> {
        let Self::Hash(members) = self else { return None };
        members.iter().find(|(name, _)| matches!(name, Self::Text(name) if *name == key)).map(|(_, value)| value)
    }

    /// Returns a text; empty for other types.
    pub(super) fn text(&self) -> &'a [u8] {
        match self {
            Self::Text(text) => text,
            _ => b"",
        }
    }

    /// Returns a number; -1 for other types.
    pub(super) fn number(&self) -> i128 {
        match self {
            Self::Number(number) => *number,
            _ => -1,
        }
    }
}

/// Parses a document. Returns it with the bytes after its end, or `None` if it is malformed.
pub(super) fn parse(bytes: &[u8]) -> Option<(Value<'_>, &[u8])> {
    let mut parser = Parser { rest: bytes.strip_prefix(b"\x04\x08")?, symbols: Vec::new(), objects: Vec::new() };
    Some((parser.parse_value(0)?, parser.rest))
}

struct Parser<'a> {
    rest: &'a [u8],
    symbols: Vec<&'a [u8]>,
    /// All strings, large numbers and floats, to which later values may refer; other objects are kept as
    /// [`Value::Other`].
    objects: Vec<Value<'a>>,
}

impl<'a> Parser<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, length: i64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Parses an integer of one to five bytes.
    fn integer(&mut self) -> Option<i64> {
        let first = self.byte()?.cast_signed();
        Some(match first {
            0 => 0,
            5.. => i64::from(first) - 5,
            ..=-5 => i64::from(first) + 5,
            1..=4 => self.take(first.into())?.iter().rev().fold(0, |number, byte| number << 8 | i64::from(*byte)),
            // Negative numbers are stored without the bytes that are all ones.
            _ => self.take(-i64::from(first))?.iter().rev().fold(-1, |number, byte| number << 8 | i64::from(*byte)),
        })
    }

    fn sized_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.integer()?;
        self.take(length)
    }

    /// Returns a number of values that may follow: each has at least one byte.
    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.integer()?).ok().filter(|count| *count <= self.rest.len())
    }

    fn add_object(&mut self, value: Value<'a>) -> Value<'a> {
        self.objects.push(value.clone());
        value
    }

    fn parse_value(&mut self, depth: usize) -> Option<Value<'a>> {
        if depth > MAX_DEPTH {
            return None;
        }
        Some(match self.byte()? {
            b'0' | b'T' | b'F' => Value::Other,
            b'i' => Value::Number(self.integer()?.into()),
            b'l' => self.big_number()?,
            b'f' => {
                self.sized_bytes()?;
                self.add_object(Value::Other)
            }
            b':' => {
                let symbol = self.sized_bytes()?;
                self.symbols.push(symbol);
                Value::Text(symbol)
            }
            b';' => {
                let index = usize::try_from(self.integer()?).ok()?;
                Value::Text(self.symbols.get(index)?)
            }
            b'@' => {
                let index = usize::try_from(self.integer()?).ok()?;
                self.objects.get(index)?.clone()
            }
            b'"' => {
                let text = Value::Text(self.sized_bytes()?);
                self.add_object(text)
            }
            // A value with variables: a string and its encoding.
            b'I' => {
                let value = self.parse_value(depth + 1)?;
                for _ in 0..self.count()? {
                    self.parse_value(depth + 1)?;
                    self.parse_value(depth + 1)?;
                }
                value
            }
            b'[' => {
                self.objects.push(Value::Other);
                let count = self.count()?;
                Value::Array((0..count).map(|_| self.parse_value(depth + 1)).collect::<Option<_>>()?)
            }
            kind @ (b'{' | b'}') => {
                self.objects.push(Value::Other);
                let count = self.count()?;
                let members = (0..count)
                    .map(|_| Some((self.parse_value(depth + 1)?, self.parse_value(depth + 1)?)))
                    .collect::<Option<_>>()?;
                if kind == b'}' {
                    // The default value.
                    self.parse_value(depth + 1)?;
                }
                Value::Hash(members)
            }
            _ => return None,
        })
    }

    /// Parses a sign, the number of two-byte words, and the words, the lowest first.
    fn big_number(&mut self) -> Option<Value<'a>> {
        let sign = self.byte()?;
        let words = self.integer()?;
        let bytes = self.take(words.checked_mul(2)?)?;
        let value = if bytes.len() > 15 {
            Value::Other
        } else {
            let number = bytes.iter().rev().fold(0i128, |number, byte| number << 8 | i128::from(*byte));
            Value::Number(if sign == b'-' { -number } else { number })
        };
        Some(self.add_object(value))
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, parse};

    #[test]
    fn parses_what_ruby_writes() {
        for (bytes, expected) in [
            (&b"\x04\x08i\0"[..], Some(Value::Number(0))),
            (b"\x04\x08i\x7f", Some(Value::Number(122))),
            (b"\x04\x08i\x01\xff", Some(Value::Number(255))),
            (b"\x04\x08i\xff\x00", Some(Value::Number(-256))),
            (b"\x04\x08i\xfa", Some(Value::Number(-1))),
            (b"\x04\x08l+\x09\x01\x00\x00\x00\x01\x00\x00\x00", Some(Value::Number((1 << 32) + 1))),
            (b"\x04\x08I\"\x07ab\x06:\x06ET", Some(Value::Text(b"ab"))),
            (b"\x04\x08[\x07:\x06a;\0", Some(Value::Array(vec![Value::Text(b"a"), Value::Text(b"a")]))),
            (b"\x04\x08{\x06:\x06ai\x06", Some(Value::Hash(vec![(Value::Text(b"a"), Value::Number(1))]))),
            (b"\x04\x08[\x04\xff\xff\xff\x7f", None),
            (b"\x04\x08[\x06", None),
            (b"\x04\x07i\0", None),
        ] {
            assert_eq!(parse(bytes).map(|(value, _)| value), expected, "{bytes:?}");
        }
        assert_eq!(parse(&[b"\x04\x08", &b"[\x06".repeat(1000)[..]].concat()), None);
    }
}
