//! Reads objects and strings from the heap of a process that runs V8.
//!
//! A pointer to an object has bit 0 set, and a weak one bit 1 too. A number has 32 bits, in the upper half of a word.

use super::layout::Offsets;
use crate::perf::runtimes::interpreter::Memory;

/// The places of an object's map, of a map's type, of a string's length and content, and of what joined strings and parts of
/// strings consist of.
const MAP_TYPE: u64 = 12;
const LENGTH: u64 = 12;
const CONTENT: u64 = 16;
const SECOND: u64 = 24;
/// The place of an array's length and its first element.
const ARRAY_LENGTH: u64 = 8;
const ARRAY_ELEMENTS: u64 = 16;

/// The representation of a string, in its type.
const REPRESENTATION: u32 = 7;
const SEQUENTIAL: u32 = 0;
const JOINED: u32 = 1;
const EXTERNAL: u32 = 2;
const SLICED: u32 = 3;
const THIN: u32 = 5;
/// The bit of strings whose characters have one byte.
const ONE_BYTE: u32 = 8;

/// Maximum number of parts of a joined string.
const MAX_PARTS: usize = 1 << 16;

/// The heap of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heap<'a> {
    pub(super) memory: Memory,
    pub(super) offsets: &'a Offsets,
}

/// The bytes of a string that is in one piece, as the BPF program sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlatString {
    /// The address of the first byte; 0 if the string is not in one piece.
    pub(super) start: u64,
    /// Number of bytes.
    pub(super) length: u64,
}

/// True if a word is a pointer to an object.
pub(super) fn is_object(word: u64) -> bool {
    word & 3 == 1
}

/// Returns the number in a word. `None` if it is a pointer.
pub(super) fn number(word: u64) -> Option<i32> {
    (word & 0xffff_ffff == 0).then_some(((word >> 32) as u32).cast_signed())
}

impl Heap<'_> {
    /// Returns a word of an object.
    pub(super) fn field(self, object: u64, offset: u64) -> Option<u64> {
        if !is_object(object) {
            return None;
        }
        self.memory.field(object - 1, offset)
    }

    /// Returns the lower half of a word of an object.
    pub(super) fn field_u32(self, object: u64, offset: u64) -> Option<u32> {
        self.field(object, offset).map(|word| word as u32)
    }

    /// Returns the type of an object.
    pub(super) fn type_of(self, object: u64) -> Option<u32> {
        self.map_type(self.field(object, 0)?)
    }

    /// Returns the type of the objects with a map.
    pub(super) fn map_type(self, map: u64) -> Option<u32> {
        Some(self.field_u32(map, MAP_TYPE)? & 0xffff)
    }

    /// Returns an object if it is of this type.
    pub(super) fn of_type(self, object: u64, expected: u32) -> Option<u64> {
        (self.type_of(object)? == expected).then_some(object)
    }

    /// Returns the number of elements of an array, or of bytes of an array of bytes.
    pub(super) fn array_length(self, array: u64) -> Option<u64> {
        number(self.field(array, ARRAY_LENGTH)?).and_then(|length| u64::try_from(length).ok())
    }

    /// Returns an element of an array. Weak pointers are followed like others.
    pub(super) fn element(self, array: u64, index: u64) -> Option<u64> {
        if index >= self.array_length(array)? {
            return None;
        }
        let element = self.field(array, ARRAY_ELEMENTS + 8 * index)?;
        Some(if element & 3 == 3 { element & !2 } else { element })
    }

    /// Returns the content of an array of bytes that has at most `limit`.
    pub(super) fn array_bytes(self, array: u64, limit: u64) -> Option<Vec<u8>> {
        let length = self.array_length(array).filter(|length| *length <= limit)?;
        self.memory.bytes(array - 1 + ARRAY_ELEMENTS, length as usize)
    }

    /// Returns the numbers in an array that has at most `limit` elements.
    pub(super) fn array_numbers(self, array: u64, limit: u64) -> Option<Vec<u32>> {
        let length = self.array_length(array).filter(|length| *length <= limit)?;
        let bytes = self.memory.bytes(array - 1 + ARRAY_ELEMENTS, 8 * length as usize)?;
        let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        words.map(|word| number(word).map(i32::cast_unsigned)).collect()
    }

    /// Returns the type of a string. `None` if an object is none.
    pub(super) fn string_type(self, object: u64) -> Option<u32> {
        self.type_of(object).filter(|found| *found < self.offsets.types.first_non_string)
    }

    /// Returns the number of characters of a string.
    pub(super) fn string_length(self, string: u64) -> Option<u64> {
        self.field(string, LENGTH & !7).map(|word| word >> 32)
    }

    /// Returns the bytes of a string, as the BPF program sees them.
    pub(super) fn flat_string(self, string: u64) -> Option<FlatString> {
        let (mut string, mut kind) = (string, self.string_type(string)?);
        let is_flat_pair = kind & REPRESENTATION == JOINED && self.string_length(self.field(string, SECOND)?)? == 0;
        if kind & REPRESENTATION == THIN || is_flat_pair {
            string = self.field(string, CONTENT)?;
            kind = self.type_of(string)?;
        }
        let size = if kind & ONE_BYTE != 0 { 1 } else { 2 };
        let start = if kind & REPRESENTATION == SEQUENTIAL { string - 1 + CONTENT } else { 0 };
        Some(FlatString { start, length: self.string_length(string)? * size })
    }

    /// Returns the characters of a string that has at most `limit` of them.
    pub(super) fn characters(self, string: u64, limit: u64) -> Option<Vec<u16>> {
        let length = self.string_length(string).filter(|length| *length <= limit)?;
        let mut characters = Vec::with_capacity(length as usize);
        let mut pending = vec![(string, 0, length)];
        let mut parts = 0;
        while let Some((string, from, count)) = pending.pop() {
            parts += 1;
            if parts > MAX_PARTS || characters.len() as u64 + count > limit {
                return None;
            }
            let kind = self.string_type(string)?;
            let first = self.field(string, CONTENT)?;
            match kind & REPRESENTATION {
                SEQUENTIAL => self.append(string - 1 + CONTENT, kind, from, count, &mut characters)?,
                // The address of the characters follows that of the object that owns them.
                EXTERNAL => self.append(self.field(string, SECOND)?, kind, from, count, &mut characters)?,
                THIN => pending.push((first, from, count)),
                SLICED => {
                    let offset = number(self.field(string, SECOND)?).and_then(|offset| u64::try_from(offset).ok())?;
                    pending.push((first, offset.checked_add(from)?, count));
                }
                JOINED => {
                    let middle = self.string_length(first)?;
                    let in_first = middle.saturating_sub(from).min(count);
                    if in_first < count {
                        pending.push((self.field(string, SECOND)?, from.saturating_sub(middle), count - in_first));
                    }
                    if in_first > 0 {
                        pending.push((first, from, in_first));
                    }
                }
                _ => return None,
            }
        }
        Some(characters)
    }

    /// Appends characters that begin at an address.
    fn append(self, start: u64, kind: u32, from: u64, count: u64, characters: &mut Vec<u16>) -> Option<()> {
        if kind & ONE_BYTE != 0 {
            let bytes = self.memory.bytes(start.checked_add(from)?, count as usize)?;
            characters.extend(bytes.into_iter().map(u16::from));
        } else {
            let bytes = self.memory.bytes(start.checked_add(2 * from)?, 2 * count as usize)?;
            characters.extend(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])));
        }
        Some(())
    }

    /// Returns a string of at most `limit` characters as UTF-8.
    pub(super) fn text(self, string: u64, limit: u64) -> Option<Vec<u8>> {
        Some(String::from_utf16_lossy(&self.characters(string, limit)?).into_bytes())
    }
}
