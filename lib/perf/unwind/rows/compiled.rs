//! The rows of an object.

use super::{Rules, compile};
use crate::perf::objects::object::Elf;

/// The rows of an object.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The address of the first block, in the object's own address space (SVMA). A multiple of `BLOCK_SIZE`.
    pub start: u64,
    /// For each block the index of its first row, and the number of all rows at the end.
    pub blocks: Vec<u32>,
    /// The byte of its block from which a row holds in the upper 8 bits, the number of its rule in the lower 24.
    pub rows: Vec<u32>,
    /// True if a stack may go on where only the BPF program can follow: on that of another goroutine.
    pub switches_stacks: bool,
}

/// The rows of an object, with rules that are numbered for them alone.
#[derive(Debug)]
pub struct CompiledRows {
    /// The rows.
    pub rows: Rows,
    rules: Rules,
}

impl CompiledRows {
    /// Makes the rows of an object. `None` if it has no unwind information, or is not for x86-64.
    pub fn compile(elf: &Elf) -> Option<Self> {
        let mut rules = Rules::default();
        compile(elf, &mut rules).map(|rows| Self { rows, rules })
    }

    /// Returns the rows with the numbers of common rules.
    pub fn with_rules_in(self, rules: &mut Rules) -> Rows {
        let Self { rows: mut all, rules: own } = self;
        let numbers: Vec<u32> = own.all().iter().map(|rule| rules.intern(*rule)).collect();
        for row in &mut all.rows {
            *row = *row & !RULE_MASK | numbers[(*row & RULE_MASK) as usize];
        }
        all
    }
}

/// The bits of a row that are the number of its rule.
pub(super) const RULE_MASK: u32 = 0xff_ffff;

#[cfg(test)]
impl Rows {
    /// Returns the number of the rule that the BPF program finds at an address.
    pub(super) fn find(&self, address: u64) -> u32 {
        use super::BLOCK_SIZE;
        let offset = address - self.start;
        let block = (offset / BLOCK_SIZE) as usize;
        let rows = &self.rows[self.blocks[block] as usize..self.blocks[block + 1] as usize];
        let after = rows.partition_point(|row| u64::from(row >> 24) <= offset % BLOCK_SIZE);
        rows[after - 1] & RULE_MASK
    }
}
