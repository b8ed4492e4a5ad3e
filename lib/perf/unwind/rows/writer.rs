//! Writes rows into blocks.

use std::ops::Range;

use super::{BLOCK_SIZE, RULE_MASK, Rows};

/// Writes rows in the order of their addresses.
pub(super) struct RowWriter {
    rows: Rows,
    /// The address after the code.
    end: u64,
    /// The address from which the last rule holds.
    last: u64,
    /// The number of the last rule.
    current: u32,
}

impl RowWriter {
    /// Creates a writer for the blocks of a range of code. `changes` is the expected number of rows, beside those that begin a
    /// block.
    pub(super) fn new(code: &Range<u64>, changes: usize) -> Self {
        let count = ((code.end.max(code.start) - code.start) / BLOCK_SIZE) as usize;
        let (blocks, rows) = (Vec::with_capacity(count + 1), Vec::with_capacity(changes + count));
        let rows = Rows { start: code.start, blocks, rows, switches_stacks: false };
        Self { rows, end: code.end, last: code.start, current: 0 }
    }

    /// Adds a rule from an address of the code on. One that comes late, because functions overlap, replaces what is known there.
    pub(super) fn add(&mut self, address: u64, number: u32) {
        let number = if self.last > address { 0 } else { number };
        let address = self.last.max(address);
        if address >= self.end {
            return;
        }
        let offset = address - self.rows.start;
        self.begin_blocks((offset / BLOCK_SIZE) as usize + 1);
        let row = row_at(offset, number);
        match self.rows.rows.last_mut() {
            Some(last) if *last & !RULE_MASK == row & !RULE_MASK => *last = row,
            _ if number == self.current => {}
            _ => self.rows.rows.push(row),
        }
        (self.last, self.current) = (address, number);
    }

    /// Begins the blocks before an index that have not begun. Each one begins with the rule that holds there.
    fn begin_blocks(&mut self, end: usize) {
        while self.rows.blocks.len() < end {
            self.rows.blocks.push(self.rows.rows.len() as u32);
            self.rows.rows.push(self.current);
        }
    }

    /// Returns the rows up to the end of the code. If `root` is a range of code and the number of a rule, the rule holds there.
    pub(super) fn finish(mut self, root: Option<(Range<u64>, u32)>) -> Rows {
        self.begin_blocks((self.end.saturating_sub(self.rows.start) / BLOCK_SIZE) as usize);
        self.rows.blocks.push(self.rows.rows.len() as u32);
        if let Some((range, number)) = root {
            self.rows.replace(range, number);
        }
        self.rows
    }
}

/// Returns a row that holds from an offset of the code on.
fn row_at(offset: u64, number: u32) -> u32 {
    ((offset % BLOCK_SIZE) as u32) << RULE_MASK.count_ones() | number
}

impl Rows {
    /// Gives a range a rule.
    fn replace(&mut self, range: Range<u64>, number: u32) {
        let Some(start) = range.start.checked_sub(self.start) else { return };
        let offsets = start..range.end - self.start;
        for block in (offsets.start / BLOCK_SIZE) as usize..=(offsets.end / BLOCK_SIZE) as usize {
            let Some([first, after]) =
                self.blocks.get(block..block + 2).map(|pair| [pair[0] as usize, pair[1] as usize])
            else {
                return;
            };
            let start = block as u64 * BLOCK_SIZE;
            let offset_of = |row: &u32| start + u64::from(row >> RULE_MASK.count_ones());
            let rows = &self.rows[first..after];
            let mut new: Vec<u32> = rows.iter().copied().filter(|row| offset_of(row) < offsets.start).collect();
            new.push(row_at(offsets.start.max(start), number));
            let behind = rows.partition_point(|row| offset_of(row) <= offsets.end);
            if offsets.end < start + BLOCK_SIZE {
                new.push(row_at(offsets.end, rows[..behind].last().map_or(0, |row| row & RULE_MASK)));
            }
            new.extend(&rows[behind..]);
            let count = new.len();
            self.rows.splice(first..after, new);
            for next in &mut self.blocks[block + 1..] {
                *next = *next + count as u32 - (after - first) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RowWriter;

    #[test]
    fn a_block_starts_with_the_rule_that_holds_there() {
        let mut writer = RowWriter::new(&(0x1000..0x1300), 0);
        [(0x1010, 5), (0x1120, 6), (0x1130, 0)].into_iter().for_each(|(address, number)| writer.add(address, number));
        let rows = writer.finish(Some((0x1200..0x1240, 9)));
        assert_eq!(rows.blocks, [0, 2, 5, 7]);
        let expected = [(0x1000, 0), (0x100f, 0), (0x1010, 5), (0x10ff, 5), (0x1100, 5), (0x1120, 6), (0x1130, 0)];
        for (address, number) in expected.into_iter().chain([(0x1200, 9), (0x123f, 9), (0x1240, 0), (0x12ff, 0)]) {
            assert_eq!(rows.find(address), number, "{address:x}");
        }
    }

    #[test]
    fn a_range_that_is_replaced_may_be_in_two_blocks() {
        let mut writer = RowWriter::new(&(0x1000..0x1400), 0);
        for (address, number) in [(0x1080, 1), (0x10f0, 2), (0x1100, 3), (0x1110, 4), (0x1130, 5), (0x1200, 6)] {
            writer.add(address, number);
        }
        let rows = writer.finish(Some((0x10e0..0x1120, 9)));
        let expected = [(0x107f, 0), (0x1080, 1), (0x10df, 1), (0x10e0, 9), (0x10ff, 9), (0x1100, 9), (0x111f, 9)];
        for (address, number) in
            expected.into_iter().chain([(0x1120, 4), (0x112f, 4), (0x1130, 5), (0x1200, 6), (0x13ff, 6)])
        {
            assert_eq!(rows.find(address), number, "{address:x}");
        }
    }

    #[test]
    fn what_two_functions_cover_is_unknown() {
        let mut writer = RowWriter::new(&(0x1000..0x1100), 0);
        [(0x1010, 5), (0x1040, 6), (0x1020, 7), (0x1050, 8)]
            .into_iter()
            .for_each(|(at, number)| writer.add(at, number));
        let rows = writer.finish(None);
        assert_eq!([0x1010, 0x103f, 0x1040, 0x104f, 0x1050].map(|at| rows.find(at)), [5, 5, 0, 0, 8]);
    }
}
