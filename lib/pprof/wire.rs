//! Protobuf's wire format: fields of varints and of bytes, one behind the other.
//!
//! What is read borrows from the input, so that a length that lies takes no memory.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A varint.
    Number(u64),
    /// Text, a message, or numbers in a row.
    Bytes(&'a [u8]),
    /// Of a fixed size, which nothing here uses.
    Fixed,
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The numbers of a repeated field, which may stand alone or in a row.
    pub(super) fn numbers(self) -> Numbers<'a> {
        match self {
            Self::Number(number) => Numbers { alone: Some(number), row: b"" },
            Self::Bytes(row) => Numbers { alone: None, row },
            Self::Fixed => Numbers { alone: None, row: b"" },
        }
    }
}

/// See [`Value::numbers`]; a row that is cut ends it.
pub(super) struct Numbers<'a> {
    alone: Option<u64>,
    row: &'a [u8],
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.alone.take().or_else(|| varint(&mut self.row))
    }
}

/// The fields of a message, in their order; `None` for what is no field, which ends it.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    broken: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message, broken: false }
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut self.rest)?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = varint(&mut self.rest)?;
                Value::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        Some((number, value))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u32, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken || self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        self.broken = field.is_none();
        Some(field)
    }
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
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

/// Appends a field with a number, unless it is zero: that is what a field is that is not there.
pub(super) fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    if number != 0 {
        put_varint(out, u64::from(field) << 3);
        put_varint(out, number);
    }
}

/// Appends a field with bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
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
    fn what_is_put_is_read() {
        let mut out = Vec::new();
        put_number(&mut out, 1, u64::MAX);
        put_number(&mut out, 2, 0);
        put_bytes(&mut out, 300, b"abc");
        let fields: Vec<_> = Fields::new(&out).collect();
        assert_eq!(fields, [Some((1, Value::Number(u64::MAX))), Some((300, Value::Bytes(b"abc")))]);
    }

    #[test]
    fn lengths_that_lie_and_varints_without_end_are_no_fields() {
        for bad in
            [&b"\x0a\x05abc"[..], b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &[0x80; 20], b"\x00\x01", b"\x0b"]
        {
            assert_eq!(Fields::new(bad).collect::<Vec<_>>(), [None], "{bad:?}");
        }
        assert_eq!(Value::Bytes(b"\x01\x02\x80").numbers().collect::<Vec<_>>(), [1, 2]);
    }
}
