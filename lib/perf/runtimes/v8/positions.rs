//! Positions in the source: tables of positions of code, and the lines of a script.

use super::heap::{Heap, number};

/// The places of the source, the number of lines before it, and the ends of its lines in a script.
const SOURCE: u64 = 8;
const FIRST_LINE: u64 = 24;
const LINE_ENDS: u64 = 56;

/// The largest source that is read, in characters, and the largest number of lines.
const MAX_SOURCE: u64 = 64 << 20;
const MAX_LINES: u64 = 16 << 20;

/// A position in the source of a function, which may have been inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position(u64);

impl Position {
    pub(super) fn new(value: u64) -> Self {
        Self(value)
    }

    /// Returns the offset in the source. `None` if it is not known.
    pub(super) fn offset(self) -> Option<u32> {
        // Bit 0 is set if the source is not the script's.
        let offset = (self.0 >> 1 & 0x3fff_ffff) as u32;
        if self.0 & 1 != 0 { None } else { offset.checked_sub(1) }
    }

    /// Returns the number of the call that was inlined. `None` if the position is in the function that was compiled.
    pub(super) fn inlining(self) -> Option<u64> {
        (self.0 >> 31 & 0xffff).checked_sub(1)
    }
}

/// The encoding of the differences of offsets in tables of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// A number with a sign. A negative one `d` stands for `-d - 1`: the position is no statement's.
    Sign,
    /// A number without a sign, above two bits that tell if the debugger can stop there, and if it is a statement.
    Flags,
}

impl Encoding {
    fn read_step(self, bytes: &[u8]) -> Option<(i64, &[u8])> {
        let (value, rest) = read_unsigned(bytes)?;
        let step = match self {
            Self::Sign => value >> 1,
            Self::Flags => value >> 2,
        };
        Some((step.cast_signed(), rest))
    }
}

/// Returns the last position of a table of positions that is at an offset of the code or before.
///
/// The table has pairs of differences: of the offsets in code, -1 before the first, and of the positions.
pub(super) fn find_position(table: &[u8], encoding: Encoding, code_offset: i64) -> Option<Position> {
    let mut rest = table;
    let (mut offset, mut position, mut found) = (-1i64, 0i64, None);
    while let Some((step, after)) = encoding.read_step(rest) {
        let (change, after) = read_signed(after)?;
        rest = after;
        offset = offset.checked_add(step)?;
        position = position.checked_add(change)?;
        if offset > code_offset {
            break;
        }
        found = Some(Position(position.cast_unsigned()));
    }
    found
}

/// Reads a number of 7 bits a byte, the lowest first, whose bit 0 is the sign.
fn read_signed(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (value, rest) = read_unsigned(bytes)?;
    Some(((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), rest))
}

/// Reads a number of 7 bits a byte, the lowest first.
pub(super) fn read_unsigned(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * index as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

/// The lines of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lines {
    first: u32,
    /// The offset of the end of each line.
    ends: Vec<u32>,
}

impl Lines {
    /// Reads the lines of a script: their ends, or the source if V8 has not counted them.
    pub(super) fn read(heap: Heap<'_>, script: u64) -> Option<Self> {
        let first = number(heap.field(script, FIRST_LINE)?).and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        let ends = heap.field(script, LINE_ENDS)?;
        let counted = heap.of_type(ends, heap.offsets.types.fixed_array);
        let ends = match counted.and_then(|ends| heap.array_numbers(ends, MAX_LINES)).filter(|ends| !ends.is_empty()) {
            Some(ends) => ends,
            None => find_line_ends(&heap.characters(heap.field(script, SOURCE)?, MAX_SOURCE)?),
        };
        Some(Self { first, ends })
    }

    /// Returns the line of an offset in the source; the first line is 1.
    pub(super) fn find(&self, offset: u32) -> Option<u32> {
        let line = self.ends.partition_point(|end| *end < offset);
        (line < self.ends.len()).then(|| self.first.saturating_add(line as u32).saturating_add(1))
    }
}

/// Returns the offsets of the ends of lines: of the last character of each line end, and the length.
fn find_line_ends(source: &[u16]) -> Vec<u32> {
    let mut ends = Vec::new();
    for (index, character) in source.iter().enumerate() {
        let is_end = match *character {
            0x0a | 0x2028 | 0x2029 => true,
            0x0d => source.get(index + 1) != Some(&0x0a),
            _ => false,
        };
        if is_end {
            ends.push(index as u32);
        }
    }
    ends.push(source.len() as u32);
    ends
}

/// Appends a number in the encoding of tables of positions.
#[cfg(test)]
pub(super) fn push_signed(table: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63).cast_unsigned();
    while rest >= 0x80 {
        table.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    table.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Lines, Position, find_line_ends, find_position, push_signed};

    /// Writes a table of positions: offsets in code, positions, and true for statements.
    fn table(encoding: Encoding, entries: &[(i64, i64, bool)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (mut last_offset, mut last_position) = (-1, 0);
        for (offset, position, is_statement) in entries {
            let step = offset - last_offset;
            push_signed(
                &mut bytes,
                match (encoding, is_statement) {
                    (Encoding::Sign, true) => step,
                    (Encoding::Sign, false) => -step - 1,
                    // The sign is the lowest bit.
                    (Encoding::Flags, true) => -(2 * step + 1) - 1,
                    (Encoding::Flags, false) => 2 * step,
                },
            );
            push_signed(&mut bytes, position - last_position);
            (last_offset, last_position) = (*offset, *position);
        }
        bytes
    }

    #[test]
    fn finds_the_position_at_or_before_an_offset() {
        let inlined = 3 << 31 | (500 + 1) << 1;
        for encoding in [Encoding::Sign, Encoding::Flags] {
            let table = table(encoding, &[(0, 11 << 1, true), (7, inlined, false), (90, 3 << 1, true)]);
            let found = |offset| find_position(&table, encoding, offset);
            assert_eq!(found(-1), None);
            assert_eq!([0, 6].map(|offset| found(offset).unwrap().offset()), [Some(10); 2]);
            assert_eq!(found(0).unwrap().inlining(), None);
            assert_eq!((found(89).unwrap().offset(), found(7).unwrap().inlining()), (Some(500), Some(2)));
            assert_eq!(found(1000).unwrap().offset(), Some(2));
            // A table that is cut is not read past its end.
            assert_eq!(find_position(&table[..1], encoding, 1000), None);
            assert_eq!(find_position(&[0xff; 20], encoding, 5), None);
        }
    }

    #[test]
    fn reads_tables_of_node_26() {
        // The start of that of `leaf(n) {\n  let s = 0;\n  for (let i = 0; i < n; i++) s = …`, which begins behind `function `.
        let table = [0x02, 0x38, 0x07, 0x40, 0x0b, 0x48, 0x0b, 0x14, 0x0a, 0x00, 0x1b, 0x28];
        let found = |offset| find_position(&table, Encoding::Flags, offset).and_then(Position::offset);
        assert_eq!([-1, 0, 1, 2, 4, 6, 12].map(found), [13, 29, 29, 47, 52, 52, 62].map(Some));
    }

    #[test]
    fn a_position_may_be_unknown() {
        assert_eq!(Position(0).offset(), None);
        assert_eq!(Position(5).offset(), None);
    }

    #[test]
    fn finds_lines() {
        let source: Vec<u16> = "ab\ncd\r\n\u{2028}e\rf".encode_utf16().collect();
        let ends = find_line_ends(&source);
        assert_eq!(ends, [2, 6, 7, 9, 11]);
        let lines = Lines { first: 0, ends };
        let found: Vec<u32> = (0..=11).map(|offset| lines.find(offset).unwrap()).collect();
        assert_eq!(found, [1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 5, 5]);
        assert_eq!(lines.find(12), None);
    }
}
