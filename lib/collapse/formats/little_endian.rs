//! Numbers and strings of binary formats, little-endian.

use crate::protobuf::read_varint;

/// A reader of consecutive values: the bytes that are left to read. Methods return `None` at their end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a number of up to eight bytes.
    pub(super) fn number(&mut self, size: usize) -> Option<u64> {
        Some(self.take(size)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.number(1).map(|number| number as u8)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.number(2).map(|number| number as u16)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.number(4).map(|number| number as u32)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.number(8)
    }

    /// Reads a number of seven bits per byte, the lowest first.
    pub(super) fn varint(&mut self) -> Option<u64> {
        read_varint(&mut self.0)
    }

    /// Reads bytes up to a zero, which is skipped.
    pub(super) fn c_string(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// Reads UTF-16 up to a zero, which is skipped, and converts it to UTF-8.
    pub(super) fn utf16_c_string(&mut self) -> Option<Vec<u8>> {
        let units = self.0.as_chunks().0.iter().map(|pair: &[u8; 2]| u16::from_le_bytes(*pair));
        let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
        self.take(2 * (units.len() + 1))?;
        Some(String::from_utf16_lossy(&units).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn reads_numbers_and_strings_up_to_the_end() {
        let mut bytes = Bytes(b"\x01\x02\x03\xac\x02ab\0h\0i\0\0\0x");
        assert_eq!((bytes.u8(), bytes.u16(), bytes.varint()), (Some(1), Some(0x302), Some(300)));
        assert_eq!((bytes.c_string(), bytes.utf16_c_string()), (Some(&b"ab"[..]), Some(b"hi".to_vec())));
        assert_eq!((bytes.u32(), bytes.c_string(), bytes.utf16_c_string()), (None, None, None));
        assert_eq!((bytes.u8(), bytes.is_empty()), (Some(b'x'), true));
    }
}
