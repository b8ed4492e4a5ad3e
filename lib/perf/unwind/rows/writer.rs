//! Writes rows into blocks.

use std::ops::Range;

use super::{BLOCK_SIZE, Rows};

/// Writes rows in the order of their addresses.
pub(super) struct RowWriter {
    start: u64,
    /// Row by address: the address and the number of its rule.
    changes: Vec<(u64, u32)>,
}

impl RowWriter {
    pub(super) fn new(start: u64, capacity: usize) -> Self {
        Self { start, changes: Vec::with_capacity(capacity + capacity / 4) }
    }

    /// Adds a rule from an address on. One that comes late, because functions overlap, replaces what is known there.
    pub(super) fn add(&mut self, address: u64, number: u32) {
        let number = if self.changes.last().is_some_and(|(last, _)| *last > address) { 0 } else { number };
        let address = self.changes.last().map_or(address, |(last, _)| (*last).max(address));
        match self.changes.last_mut() {
            Some((last, rule)) if *last == address => *rule = number,
            Some((_, rule)) if *rule == number => {}
            _ => self.changes.push((address, number)),
        }
    }

    pub(super) fn finish(mut self, end: u64, root: Option<(Range<u64>, u32)>) -> Rows {
        if let Some((range, number)) = root {
            self.replace(range, number);
        }
        let count = ((end.max(self.start) - self.start) / BLOCK_SIZE) as usize;
        let (mut blocks, mut rows) = (Vec::with_capacity(count + 1), Vec::with_capacity(self.changes.len() + count));
        let (mut current, mut changes) = (0, self.changes.into_iter().peekable());
        for block in 0..count as u64 {
            let (first, after) = (self.start + block * BLOCK_SIZE, self.start + (block + 1) * BLOCK_SIZE);
            while let Some((_, number)) = changes.next_if(|(address, _)| *address <= first) {
                current = number;
            }
            blocks.push(rows.len() as u32);
            rows.push(current);
            while let Some((address, number)) = changes.next_if(|(address, _)| *address < after) {
                rows.push(((address - first) as u32) << 24 | number);
                current = number;
            }
        }
        blocks.push(rows.len() as u32);
        Rows { start: self.start, blocks, rows, switches_stacks: false }
    }

    /// Gives a range a rule.
    fn replace(&mut self, range: Range<u64>, number: u32) {
        let first = self.changes.partition_point(|(address, _)| *address < range.start);
        let after = self.changes.partition_point(|(address, _)| *address <= range.end);
        let next = after.checked_sub(1).map_or(0, |last| self.changes[last].1);
        self.changes.splice(first..after, [(range.start, number), (range.end, next)]);
    }
}

#[cfg(test)]
mod tests {
    use super::RowWriter;

    #[test]
    fn a_block_starts_with_the_rule_that_holds_there() {
        let mut writer = RowWriter::new(0x1000, 0);
        [(0x1010, 5), (0x1120, 6), (0x1130, 0)].into_iter().for_each(|(address, number)| writer.add(address, number));
        let rows = writer.finish(0x1300, Some((0x1200..0x1240, 9)));
        assert_eq!(rows.blocks, [0, 2, 5, 7]);
        let expected = [(0x1000, 0), (0x100f, 0), (0x1010, 5), (0x10ff, 5), (0x1100, 5), (0x1120, 6), (0x1130, 0)];
        for (address, number) in expected.into_iter().chain([(0x1200, 9), (0x123f, 9), (0x1240, 0), (0x12ff, 0)]) {
            assert_eq!(rows.find(address), number, "{address:x}");
        }
    }
}
