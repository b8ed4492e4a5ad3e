//! Numbers and strings as a chunk encodes them.
//!
//! Integers are big-endian or, in all files that a JVM writes, of variable length: seven bits per byte, the lowest
//! first, and eight in the ninth byte.

use std::borrow::Cow;

/// The highest and the lowest bit of each byte.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const LOW_BITS: u64 = 0x0101_0101_0101_0101;

/// Returns the number whose groups of seven bits are in the bytes of a word, the lowest first.
fn join_septets(word: u64) -> u64 {
    let pairs = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let quads = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    quads & 0x0fff_ffff | (quads & 0x0fff_ffff_0000_0000) >> 4
}

/// Returns a word whose lowest bits are the highest bits of each byte.
fn gather_high_bits(word: u64) -> u64 {
    (word >> 7 & LOW_BITS).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Integers of variable length that follow each other within 16 bytes. None has nine bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct VarintGroup {
    /// Their bytes, followed by zero bytes.
    bytes: u128,
    /// A bit for each byte that is the last of an integer.
    ends: u64,
}

impl VarintGroup {
    /// Returns the bytes of the integers, followed by zero bytes. Groups of as many integers are equal if these are.
    #[inline]
    pub(super) fn bytes(self) -> u128 {
        self.bytes
    }

    /// Returns the integer at an index, which must be below the number of integers.
    #[inline]
    pub(super) fn get(self, index: usize) -> u64 {
        let (mut ends, mut start) = (self.ends, 0);
        for _ in 0..index {
            start = ends.trailing_zeros() + 1;
            ends &= ends.wrapping_sub(1);
        }
        let length = ends.trailing_zeros() + 1 - start;
        join_septets((self.bytes >> (8 * start)) as u64 & (u64::MAX >> (64 - 8 * length)))
    }
}

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

    /// Returns true if integers have a variable length.
    pub(super) fn has_varints(&self) -> bool {
        self.has_varints
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
    #[inline]
    pub(super) fn read_int(&mut self) -> Option<u64> {
        self.read_integer(4)
    }

    /// Reads a `long`.
    #[inline]
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
        if let Some((word, _)) = self.rest.split_first_chunk() {
            let word = u64::from_le_bytes(*word);
            let ends = !word & HIGH_BITS;
            if ends != 0 {
                let length = ends.trailing_zeros() + 1;
                self.rest = &self.rest[(length / 8) as usize..];
                return Some(join_septets(word & (u64::MAX >> (64 - length))));
            }
        }
        self.read_long_varint()
    }

    /// Reads `count` integers of variable length at once, which is faster. Returns `None` and reads nothing if they do
    /// not end within the next 16 bytes, or if one may have nine bytes.
    #[inline]
    pub(super) fn read_varint_group(&mut self, count: usize) -> Option<VarintGroup> {
        let bytes = u128::from_le_bytes(*self.rest.first_chunk()?);
        let ends = gather_high_bits(!bytes as u64) | gather_high_bits(!(bytes >> 64) as u64) << 8;
        let mut last = ends;
        for _ in 1..count {
            last &= last.wrapping_sub(1);
        }
        // The ninth byte of an integer has no mark at its end: no eight bytes may be without one.
        let inner = !ends & 0xffff;
        let pairs = inner & inner >> 1;
        let quads = pairs & pairs >> 2;
        if last == 0 || quads & quads >> 4 != 0 {
            return None;
        }
        let length = last.trailing_zeros() + 1;
        self.rest = &self.rest[length as usize..];
        Some(VarintGroup { bytes: bytes & (u128::MAX >> (128 - 8 * length)), ends })
    }

    /// Skips a number of integers, each of at least one byte.
    pub(super) fn skip_varints(&mut self, count: u64) -> Option<()> {
        let (mut left, mut rest) = (count, self.rest);
        // Number of bytes before `rest` that belong to the integer there.
        let mut started = 0;
        while left >= 8
            && let Some((word, after)) = rest.split_first_chunk()
        {
            let ends = !u64::from_le_bytes(*word) & HIGH_BITS;
            // The ninth byte of an integer has no mark at its end.
            if started + ends.trailing_zeros() / 8 >= 8 {
                (left, rest, started) = (count, self.rest, 0);
                break;
            }
            // The sum of all bytes ends up in the highest byte.
            left -= (ends >> 7).wrapping_mul(LOW_BITS) >> 56;
            started = ends.leading_zeros() / 8;
            rest = after;
        }
        let mut bytes = rest.iter();
        while left > 0 {
            let byte = bytes.next()?;
            started += 1;
            if byte & 0x80 == 0 || started == 9 {
                (left, started) = (left - 1, 0);
            }
        }
        self.rest = bytes.as_slice();
        Some(())
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
    fn skips_integers_as_it_reads_them() {
        let numbers = [0, 1, 127, 128, 300, 1 << 20, 1 << 31, (1 << 56) - 1, 1 << 56, u64::MAX, u64::MAX >> 1];
        for (start, rotation) in (0..numbers.len()).flat_map(|start| (0..4).map(move |rotation| (start, rotation))) {
            let list: Vec<u64> = (0..40).map(|index| numbers[(start + index * rotation) % numbers.len()]).collect();
            let bytes: Vec<u8> = list.iter().flat_map(|number| encode(*number)).collect();
            let mut reader = Cursor::new(&bytes, true);
            for (count, number) in list.iter().enumerate() {
                let mut skipper = Cursor::new(&bytes, true);
                assert_eq!(skipper.skip_varints(count as u64), Some(()));
                assert_eq!(skipper.remaining(), reader.remaining(), "{count} of {list:?}");
                assert_eq!(reader.read_long(), Some(*number), "{count} of {list:?}");
            }
            assert_eq!(Cursor::new(&bytes, true).skip_varints(41), None);
        }
    }

    #[test]
    fn reads_groups_as_it_reads_integers() {
        let numbers = [0, 1, 127, 128, 300, 1 << 20, 1 << 31, (1 << 49) - 1, 1 << 56, u64::MAX];
        let mut groups = 0;
        for list in (0..10_000).map(|index| [1, 10, 100, 1000].map(|place| numbers[index / place % numbers.len()])) {
            // Bytes follow: a group may end in the middle of what is looked at.
            let bytes: Vec<u8> = list.iter().chain(&[1; 16]).flat_map(|number| encode(*number)).collect();
            let (mut whole, mut single) = (Cursor::new(&bytes, true), Cursor::new(&bytes, true));
            let length: usize = list.iter().map(|number| encode(*number).len()).sum();
            if let Some(group) = whole.read_varint_group(list.len()) {
                let read = list.map(|_| single.read_long());
                assert_eq!(std::array::from_fn(|index| Some(group.get(index))), read, "{list:?}");
                assert_eq!(whole.remaining(), single.remaining(), "{list:?}");
                groups += 1;
            } else {
                assert!(length > 16 || list.iter().any(|number| number >> 56 != 0), "{list:?}");
                assert_eq!(whole.remaining(), bytes.len());
            }
        }
        assert!(groups > 1000, "{groups}");
        assert!(Cursor::new(&[1; 15], true).read_varint_group(4).is_none());
        assert!(Cursor::new(&[0x80; 16], true).read_varint_group(1).is_none());
    }

    /// Encodes an integer with a variable length.
    fn encode(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 && bytes.len() < 8 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
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
