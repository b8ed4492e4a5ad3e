//! The tables of a code object from which the line of an instruction is found.
//!
//! The formats are those of CPython's `Objects/lnotab_notes.txt` (3.8, 3.9), PEP 626 (3.10) and
//! `Objects/locations.md` (3.11 and later).

/// The format of a line table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineTable {
    /// 3.8 and 3.9: pairs of a distance in bytes and one in lines.
    Pairs,
    /// 3.10: pairs of the size of a range and the distance of its line. The index counts units of two bytes.
    Ranges,
    /// 3.11 and later: entries of different sizes.
    Locations,
}

/// Returns the line of the instruction at an index; `None` if it has none.
pub(super) fn find(format: LineTable, table: &[u8], first_line: u32, instruction: i32) -> Option<u32> {
    // Before its first instruction, a frame is at the function's first line.
    let Ok(index) = u32::try_from(instruction) else { return Some(first_line) };
    let line = match format {
        LineTable::Pairs => find_in_pairs(table, first_line.into(), index),
        LineTable::Ranges => find_in_ranges(table, first_line.into(), index.checked_mul(2)?),
        LineTable::Locations => find_in_locations(table, first_line.into(), index),
    };
    line.and_then(|line| u32::try_from(line).ok())
}

fn find_in_pairs(table: &[u8], first_line: i64, index: u32) -> Option<i64> {
    let (mut line, mut address) = (first_line, 0u64);
    for pair in table.chunks_exact(2) {
        address += u64::from(pair[0]);
        if address > index.into() {
            break;
        }
        line += i64::from(pair[1].cast_signed());
    }
    Some(line)
}

fn find_in_ranges(table: &[u8], first_line: i64, index: u32) -> Option<i64> {
    let (mut line, mut end) = (first_line, 0u64);
    for pair in table.chunks_exact(2) {
        end += u64::from(pair[0]);
        let distance = pair[1].cast_signed();
        let has_line = distance != i8::MIN;
        line += if has_line { i64::from(distance) } else { 0 };
        if end > index.into() {
            return has_line.then_some(line);
        }
    }
    None
}

fn find_in_locations(table: &[u8], first_line: i64, index: u32) -> Option<i64> {
    let mut bytes = table.iter().copied();
    let (mut line, mut end) = (first_line, 0u64);
    while let Some(first) = bytes.next() {
        end += (u64::from(first & 7) + 1) * 2;
        let mut has_line = true;
        match first >> 3 & 15 {
            0..=9 => skip(&mut bytes, 1),
            kind @ 10..=12 => {
                line += i64::from(kind) - 10;
                skip(&mut bytes, 2);
            }
            13 => line += read_signed(&mut bytes)?,
            14 => {
                line += read_signed(&mut bytes)?;
                for _ in 0..3 {
                    read_unsigned(&mut bytes)?;
                }
            }
            _ => has_line = false,
        }
        if end > index.into() {
            return has_line.then_some(line);
        }
    }
    None
}

fn skip(bytes: &mut impl Iterator<Item = u8>, count: usize) {
    bytes.take(count).for_each(drop);
}

/// Reads a number of groups of 6 bits, the lowest first. Bit 6 says that another group follows.
fn read_unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let byte = bytes.next()?;
        number |= u64::from(byte & 0x3f).checked_shl(shift)?;
        shift += 6;
        if byte & 0x40 == 0 {
            return Some(number);
        }
    }
}

/// Reads a number whose lowest bit is its sign.
fn read_signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let number = read_unsigned(bytes)?;
    let magnitude = i64::try_from(number >> 1).ok()?;
    Some(if number & 1 == 1 { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::{LineTable, find};

    /// Returns the lines at indices 0, 2, 4, ...
    fn lines(format: LineTable, table: &[u8], units: i32) -> Vec<Option<u32>> {
        let step = if format == LineTable::Ranges { 1 } else { 2 };
        (0..units).map(|unit| find(format, table, 10, unit * step)).collect()
    }

    #[test]
    fn finds_lines_in_each_format() {
        // Three instructions at line 11, two at line 9.
        let expected = [11, 11, 11, 9, 9].map(Some);
        assert_eq!(lines(LineTable::Pairs, &[0, 1, 6, 254], 5), expected);
        assert_eq!(lines(LineTable::Ranges, &[6, 1, 4, 254], 5), expected);
        // One line form with a column, and a form without columns whose distance is -2.
        let locations = [0x80 | 11 << 3 | 2, 0, 0, 0x80 | 13 << 3 | 1, 5];
        assert_eq!(lines(LineTable::Locations, &locations, 5), expected);
    }

    #[test]
    fn an_instruction_without_a_line_has_none() {
        assert_eq!(lines(LineTable::Ranges, &[2, 0, 2, 128, 2, 1], 4), [Some(10), None, Some(11), None]);
        assert_eq!(lines(LineTable::Locations, &[0x80 | 15 << 3], 2), [None, None]);
        assert_eq!(find(LineTable::Locations, &[], 10, -2), Some(10));
    }

    #[test]
    fn a_damaged_table_has_no_line() {
        assert_eq!(find(LineTable::Locations, &[0x80 | 14 << 3, 0x7f, 0x7f], 10, 0), None);
        assert_eq!(
            find(
                LineTable::Locations,
                &[0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f],
                10,
                0
            ),
            None
        );
    }
}
