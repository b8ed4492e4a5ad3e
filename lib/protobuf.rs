//! The wire format of protobuf: a message is a sequence of fields, each a varint or a sequence of bytes.
//!
//! Values borrow from the input, so a wrong length cannot cause a large allocation.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A number, stored as a varint.
    Number(u64),
    /// A string, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// A number of four or eight bytes.
    Fixed(u64),
}

impl<'a> Value<'a> {
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the numbers of a repeated field of eight bytes each, which may be packed or not.
    pub(crate) fn fixed_numbers(self) -> impl Iterator<Item = u64> + 'a {
        let (single, packed) = match self {
            Self::Fixed(number) => (Some(number), &b""[..]),
            Self::Bytes(packed) => (None, packed),
            Self::Number(_) => (None, &b""[..]),
        };
        single.into_iter().chain(packed.chunks_exact(8).map(little_endian))
    }

    /// Returns the numbers of a repeated field, which may be packed or not. A truncated number ends them.
    pub(crate) fn numbers(self) -> Numbers<'a> {
        match self {
            Self::Number(number) => Numbers { single: Some(number), packed: b"" },
            Self::Bytes(packed) => Numbers { single: None, packed },
            Self::Fixed(_) => Numbers { single: None, packed: b"" },
        }
    }
}

/// An iterator over the numbers of a field; see [`Value::numbers`].
pub(crate) struct Numbers<'a> {
    single: Option<u64>,
    packed: &'a [u8],
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.single.take().or_else(|| read_varint(&mut self.packed))
    }
}

/// An iterator over the fields of a message: their numbers and values. A malformed field yields `None` and ends it.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    is_malformed: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message, is_malformed: false }
    }

    /// Returns the bytes after the last field that was returned.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn read_field(&mut self) -> Option<(u32, Value<'a>)> {
        let tag = read_varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
        let value = match tag & 7 {
            0 => Value::Number(read_varint(&mut self.rest)?),
            1 => Value::Fixed(little_endian(self.split_off(8)?)),
            2 => {
                let length = read_varint(&mut self.rest)?;
                Value::Bytes(self.split_off(usize::try_from(length).ok()?)?)
            }
            5 => Value::Fixed(little_endian(self.split_off(4)?)),
            _ => return None,
        };
        Some((number, value))
    }

    fn split_off(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u32, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_malformed || self.rest.is_empty() {
            return None;
        }
        let field = self.read_field();
        self.is_malformed = field.is_none();
        Some(field)
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the last number of each of these fields of a message; missing fields are 0. Returns `None` if the message is
/// malformed.
pub(crate) fn read_numbers<const N: usize>(message: &[u8], wanted: [u32; N]) -> Option<[u64; N]> {
    let mut values = [0; N];
    for field in Fields::new(message) {
        let (number, value) = field?;
        if let Some(index) = wanted.iter().position(|wanted| *wanted == number) {
            values[index] = value.number()?;
        }
    }
    Some(values)
}

/// Returns the bytes of all fields with a number: strings or messages. A malformed field ends them.
pub(crate) fn read_messages(message: &[u8], wanted: u32) -> impl Iterator<Item = &[u8]> {
    let fields = Fields::new(message).map_while(|field| field).filter(move |(number, _)| *number == wanted);
    fields.filter_map(|(_, value)| value.bytes())
}

/// Reads a varint off the front of `rest`; `None` if it is truncated or has more than 10 bytes.
pub(crate) fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for (index, byte) in rest.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *rest = &rest[index + 1..];
            return Some(number);
        }
    }
    None
}

/// Appends a number field. Omits it if the number is zero, the value of a missing field.
pub(crate) fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    if number != 0 {
        put_varint(out, u64::from(field) << 3);
        put_varint(out, number);
    }
}

/// Appends a number field of eight bytes. Omits it if the number is zero.
pub(crate) fn put_fixed(out: &mut Vec<u8>, field: u32, number: u64) {
    if number != 0 {
        put_varint(out, u64::from(field) << 3 | 1);
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// Appends a field of bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::{Fields, Value, put_bytes, put_number};

    #[test]
    fn reads_what_it_writes() {
        let mut out = Vec::new();
        put_number(&mut out, 1, u64::MAX);
        put_number(&mut out, 2, 0);
        put_bytes(&mut out, 300, b"abc");
        let fields: Vec<_> = Fields::new(&out).collect();
        assert_eq!(fields, [Some((1, Value::Number(u64::MAX))), Some((300, Value::Bytes(b"abc")))]);
    }

    #[test]
    fn rejects_wrong_lengths_and_endless_varints() {
        for malformed in
            [&b"\x0a\x05abc"[..], b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &[0x80; 20], b"\x00\x01", b"\x0b"]
        {
            assert_eq!(Fields::new(malformed).collect::<Vec<_>>(), [None], "{malformed:?}");
        }
        let fixed = Fields::new(b"\x09\x01\x02\0\0\0\0\0\0\x15\x03\0\0\0").flatten().map(|(_, value)| value);
        assert_eq!(fixed.collect::<Vec<_>>(), [Value::Fixed(0x201), Value::Fixed(3)]);
        assert_eq!(Value::Bytes(b"\x01\x02\x80").numbers().collect::<Vec<_>>(), [1, 2]);
    }
}
