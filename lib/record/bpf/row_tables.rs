//! The rows of objects in the maps of the BPF program.

use std::os::fd::AsFd as _;

use aya::Ebpf;

use super::errors::BoxError;
use super::maps::{map_file, take_map};
use super::table_parts::{PartedTable, reserve};
use crate::perf::unwind::rows::{CompiledRows, MAX_RULES, Rules};
use crate::record::sys::MappedArray;

/// The tables of rows of a loaded program. Nothing in them is overwritten while the program may use it.
pub(super) struct RowTables {
    rules: Rules,
    rule_map: MappedArray<u64>,
    block_table: PartedTable,
    row_table: PartedTable,
    used_rules: usize,
    room: Room,
}

/// The parts of the tables that are in use.
///
/// A quarter is kept for programs whose stacks can be taken by rows alone: those of others are unwound from words.
#[derive(Debug)]
struct Room {
    blocks: usize,
    rows: usize,
    max_blocks: usize,
    max_rows: usize,
}

impl Room {
    /// Takes this number of blocks and rows, and returns the numbers of the first ones. `None` if fewer are free.
    fn take(&mut self, blocks: usize, rows: usize, is_required: bool) -> Option<(usize, usize)> {
        let [max_blocks, max_rows] =
            [self.max_blocks, self.max_rows].map(|size| if is_required { size } else { size / 4 * 3 });
        let (blocks_end, rows_end) = (self.blocks.checked_add(blocks)?, self.rows.checked_add(rows)?);
        if blocks_end > max_blocks || rows_end > max_rows {
            return None;
        }
        let first = (self.blocks, self.rows);
        (self.blocks, self.rows) = (blocks_end, rows_end);
        Some(first)
    }
}

/// The part of an object's code that has rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObjectTable {
    /// The first address, a multiple of the size of a block.
    pub start: u64,
    /// The number of blocks; 0 if the object has no rows.
    pub blocks: u64,
    /// The number of the first block.
    pub first_block: u64,
    /// True if some of its stacks can only be walked in the program.
    pub switches_stacks: bool,
    /// True if it has no rows because there was no room for them, except where they are required.
    pub is_left_out: bool,
}

impl std::fmt::Debug for RowTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { used_rules, room, .. } = self;
        write!(f, "RowTables({used_rules} rules, {room:?})")
    }
}

impl RowTables {
    /// Takes the tables out of a loaded program.
    pub fn open(program: &mut Ebpf) -> Result<Self, BoxError> {
        let [block_table, row_table] = [PartedTable::take(program, "blocks")?, PartedTable::take(program, "rows")?];
        let [max_blocks, max_rows] = [&block_table, &row_table].map(PartedTable::capacity);
        Ok(Self {
            rule_map: MappedArray::open(map_file(&take_map(program, "rules")?)?.as_fd(), MAX_RULES)?,
            block_table,
            row_table,
            rules: Rules::default(),
            used_rules: 0,
            // Place 0 means that there are no rows.
            room: Room { blocks: 1, rows: 0, max_blocks, max_rows },
        })
    }

    /// Writes the rows of an object into the maps, if there is room.
    pub fn add(&mut self, compiled: CompiledRows, is_required: bool) -> ObjectTable {
        let is_required = is_required || compiled.rows.switches_stacks;
        let room = self.room.take(compiled.rows.blocks.len(), compiled.rows.rows.len(), is_required);
        // The kernel may refuse memory, too.
        let Some((first_block, first_row)) = room.filter(|_| self.reserve().is_ok()) else {
            return ObjectTable { is_left_out: !is_required, ..ObjectTable::default() };
        };
        let rows = compiled.with_rules_in(&mut self.rules);
        let rules = self.rules.all();
        self.rule_map.write(self.used_rules, rules[self.used_rules..].iter().copied());
        self.used_rules = rules.len();
        self.row_table.write(first_row, &rows.rows);
        let blocks: Vec<u32> = rows.blocks.iter().map(|row| row + first_row as u32).collect();
        self.block_table.write(first_block, &blocks);
        ObjectTable {
            start: rows.start,
            blocks: rows.blocks.len() as u64 - 1,
            first_block: first_block as u64,
            switches_stacks: rows.switches_stacks,
            is_left_out: false,
        }
    }

    /// Allocates the parts of the tables that are in use.
    fn reserve(&mut self) -> Result<(), BoxError> {
        reserve([(&mut self.row_table, self.room.rows), (&mut self.block_table, self.room.blocks)])
    }
}

#[cfg(test)]
mod tests {
    use super::Room;

    #[test]
    fn a_quarter_is_kept_for_what_is_required() {
        let (max_blocks, max_rows) = (4000, 8000);
        let mut room = Room { blocks: 1, rows: 0, max_blocks, max_rows };
        assert_eq!(room.take(10, 20, false), Some((1, 0)));
        assert_eq!(room.take(5, max_rows / 4 * 3, false), None);
        assert_eq!(room.take(max_blocks / 4 * 3, 5, false), None);
        assert_eq!(room.take(5, max_rows - 20, true), Some((11, 20)));
        assert_eq!(room.take(1, 1, true), None);
    }
}
