//! Numbers and strings as a chunk encodes them.
//!
//! Integers are big-endian or, in all files that a JVM writes, of variable length: seven bits per byte, the lowest
//! first, and eight in the ninth byte.

use std::borrow::Cow;

/// A position in the bytes of a chunk. Methods return `None` at the end of the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    has_varints: bool,
}

/// A string, or a reference to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Text<'a> {
    Null,
    /// A string in UTF-8.
    Bytes(Cow<'a, [u8]>),
    /// The key of a constant of type `java.lang.String`.
    Constant(u64),
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], has_varints: bool) -> Self {
        Self { rest: bytes, has_varints }
    }

    /// Returns the number of bytes that follow.
    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn skip(&mut self, length: usize) -> Option<()> {
        self.rest = self.rest.get(length..)?;
        Some(())
    }

    pub(super) fn read_byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Reads an integer of this number of bytes, if integers have a fixed length.
    #[inline]
    pub(super) fn read_integer(&mut self, size: u8) -> Option<u64> {
        if self.has_varints {
            return self.read_varint();
        }
        let (bytes, rest) = self.rest.split_at_checked(size.into())?;
        self.rest = rest;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads an `int`.
    pub(super) fn read_int(&mut self) -> Option<u64> {
        self.read_integer(4)
    }

    /// Reads a `long`.
    pub(super) fn read_long(&mut self) -> Option<u64> {
        self.read_integer(8)
    }

    #[inline]
    fn read_varint(&mut self) -> Option<u64> {
        // Most numbers have one byte.
        if let Some((first @ ..0x80, rest)) = self.rest.split_first() {
            self.rest = rest;
            return Some(u64::from(*first));
        }
        self.read_long_varint()
    }

    fn read_long_varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for (index, byte) in self.rest.iter().take(9).enumerate() {
            if index == 8 || byte & 0x80 == 0 {
                self.rest = &self.rest[index + 1..];
                return Some(number | u64::from(*byte) << (7 * index));
            }
            number |= u64::from(byte & 0x7f) << (7 * index);
        }
        None
    }

    pub(super) fn read_text(&mut self) -> Option<Text<'a>> {
        Some(match self.read_byte()? {
            0 => Text::Null,
            1 => Text::Bytes(Cow::Borrowed(b"")),
            2 => Text::Constant(self.read_long()?),
            3 => Text::Bytes(Cow::Borrowed(self.read_bytes()?)),
            4 => Text::Bytes(Cow::Owned(self.read_characters()?)),
            5 => Text::Bytes(decode_latin1(self.read_bytes()?)),
            _ => return None,
        })
    }

    /// Reads a length and as many bytes.
    fn read_bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.read_int()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Reads a length and as many UTF-16 code units, and converts them to UTF-8.
    fn read_characters(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.read_int()?).ok().filter(|length| *length <= self.rest.len())?;
        let units = (0..length).map(|_| self.read_integer(2).map(|unit| unit as u16)).collect::<Option<Vec<u16>>>()?;
        Some(String::from_utf16_lossy(&units).into_bytes())
    }
}

fn decode_latin1(bytes: &[u8]) -> Cow<'_, [u8]> {
    match bytes.is_ascii() {
        true => Cow::Borrowed(bytes),
        false => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Text};

    #[test]
    fn reads_integers_of_both_kinds() {
        let mut varints = Cursor::new(b"\x7f\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80", true);
        assert_eq!((varints.read_int(), varints.read_int()), (Some(127), Some(300)));
        assert_eq!((varints.read_long(), varints.read_int()), (Some(u64::MAX), None));
        let mut fixed = Cursor::new(b"\0\0\x01\x02\0\0\0\0\0\0\0\x05\x01", false);
        assert_eq!((fixed.read_int(), fixed.read_long(), fixed.read_int()), (Some(0x102), Some(5), None));
    }

    #[test]
    fn reads_strings_of_all_encodings() {
        for (bytes, expected) in [
            (&b"\0"[..], Some(Text::Null)),
            (b"\x01", Some(Text::Bytes(b""[..].into()))),
            (b"\x02\x07", Some(Text::Constant(7))),
            (b"\x03\x02\xc3\xa9", Some(Text::Bytes("é".as_bytes().into()))),
            (b"\x04\x02\xe9\x01a", Some(Text::Bytes("éa".as_bytes().into()))),
            (b"\x05\x01\xe9", Some(Text::Bytes("é".as_bytes().into()))),
            (b"\x03\x05ab", None),
            (b"\x04\xff\xff\xff\x7fab", None),
            (b"\x06", None),
        ] {
            assert_eq!(Cursor::new(bytes, true).read_text(), expected, "{bytes:?}");
        }
    }
}
