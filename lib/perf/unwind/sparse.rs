//! The memory of a stack of which the BPF program kept the words that unwinding can need.

use std::ops::Range;

use crate::perf::event::StackRecord;

/// The words of up to two stacks: that of the thread, and that on which a signal came which is handled on another one.
#[derive(Debug, Default)]
pub(super) struct SparseWords {
    stacks: [Region; 2],
}

/// A part of the memory. Only words that were kept are written, and wiped again.
#[derive(Debug, Default)]
struct Region {
    start: u64,
    words: Vec<u64>,
    /// Indices of the words that were kept.
    kept: Vec<u32>,
    /// The address after the last word that is known.
    end: u64,
    /// The parts that were not in memory.
    holes: Vec<Range<u64>>,
}

/// The program scans whole groups of this many bytes.
const GROUP_SIZE: u64 = 128;

/// A word is packed with the number of words between it and the one before, in the upper 16 bits.
const DISTANCE_SHIFT: u32 = 48;

/// A word of this value represents the rest of a page that was not in memory. Kept words are larger.
const HOLE: u64 = 1;

/// A word of this value represents 0.
const ZERO: u64 = 3;

/// The value of a word that was not kept: it points neither to code nor into the stack. It must not look like 0, which
/// marks the root of a stack.
const NOT_KEPT: u64 = 2;

/// The size of a page of x86-64.
const PAGE_SIZE: u64 = 4096;

/// The largest region. The program scans no larger one.
const MAX_WORDS: usize = 1 << 18;

impl SparseWords {
    /// Replaces the words by those of a record.
    pub(super) fn with_record(mut self, record: &StackRecord<'_>) -> Self {
        let first = record.second.map_or(record.words().len(), |(_, first)| first);
        self.stacks[0].fill(record.sp, record.words().take(first));
        self.stacks[0].end = self.stacks[0].end.max(if record.second.is_none() { record.scanned_end() } else { 0 });
        self.stacks[1].fill(record.second.map_or(0, |(start, _)| start), record.words().skip(first));
        self
    }

    /// Returns the word at an address, or [`NOT_KEPT`]. `None` outside of what was scanned.
    pub(super) fn read(&self, address: u64) -> Option<u64> {
        let region = self.stacks.iter().find(|region| (region.start..region.end).contains(&address))?;
        let offset = address - region.start;
        if !offset.is_multiple_of(8) || region.is_hole(address) {
            return None;
        }
        let word = region.words.get((offset / 8) as usize).copied().unwrap_or(0);
        Some(match word {
            0 => NOT_KEPT,
            ZERO => 0,
            word => word,
        })
    }

    /// True if the page of an address was not in memory.
    pub(super) fn is_hole(&self, address: u64) -> bool {
        self.stacks.iter().any(|region| region.is_hole(address))
    }

    /// The end of what was scanned.
    pub(super) fn end(&self) -> u64 {
        self.stacks[0].end
    }
}

impl Region {
    fn is_hole(&self, address: u64) -> bool {
        self.holes.iter().any(|hole| hole.contains(&address))
    }

    fn fill(&mut self, start: u64, words: impl Iterator<Item = u64>) {
        for index in self.kept.drain(..) {
            self.words[index as usize] = 0;
        }
        self.holes.clear();
        // Scanning begins at the start of the group.
        let mut address = start & !(GROUP_SIZE - 1);
        self.start = start & !7;
        self.end = self.start;
        for packed in words {
            let value = packed & ((1 << DISTANCE_SHIFT) - 1);
            address = address.saturating_add((packed >> DISTANCE_SHIFT) * 8);
            if value == HOLE {
                let end = (address & !(PAGE_SIZE - 1)).saturating_add(PAGE_SIZE);
                self.holes.push(address.max(self.start)..end);
                self.end = end;
                address = end;
                continue;
            }
            if value != 0 && address >= self.start {
                let index = ((address - self.start) / 8) as usize;
                if index >= MAX_WORDS {
                    return;
                }
                if index >= self.words.len() {
                    self.words.resize((index + 1).next_power_of_two(), 0);
                }
                self.words[index] = value;
                self.kept.push(index as u32);
                self.end = address.saturating_add(8);
            }
            address = address.saturating_add(8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HOLE, NOT_KEPT, SparseWords, ZERO};
    use crate::perf::event::StackRecordPart;

    /// Packs a word with its distance to the one before.
    fn packed(distance: u64, word: u64) -> u64 {
        distance << 48 | word
    }

    fn part(sp: u64, second: u64, second_word: u32, scanned: u32, words: &[u64]) -> Vec<u8> {
        let mut raw: Vec<u8> = [0x4000, sp, 0, second, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect();
        raw.extend([0, second_word, scanned, words.len() as u32].into_iter().flat_map(u32::to_le_bytes));
        raw.extend([0, 1, 0, 0, 0, 0, 0, 0u16].into_iter().flat_map(u16::to_le_bytes));
        raw.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        raw
    }

    #[test]
    fn reads_kept_words_and_knows_that_others_were_not_kept() {
        let words = [packed(2, 0x7777_0000), packed(0, 0x7777_0008), packed(0, ZERO), packed(2, 0x7777_0010)];
        let raw = part(0x7fff_0010, 0, 0, 0x80, &words);
        let record = StackRecordPart::parse(&raw).unwrap().record;
        let words = SparseWords::default().with_record(&record);
        // Scanning begins at the group of the stack pointer, 0x7fff_0000.
        let read = [0x10, 0x18, 0x20, 0x28, 0x38, 0x88].map(|offset| words.read(0x7fff_0000 + offset));
        assert_eq!(read, [0x7777_0000, 0x7777_0008, 0, NOT_KEPT, 0x7777_0010, NOT_KEPT].map(Some));
        assert_eq!([0x8, 0x90, 0x14].map(|offset| words.read(0x7fff_0000 + offset)), [None; 3]);
        assert_eq!(words.end(), 0x7fff_0090);
        // Another stack has nothing of the one before.
        let raw = part(0x7fff_0010, 0, 0, 0x80, &[]);
        let words = words.with_record(&StackRecordPart::parse(&raw).unwrap().record);
        assert_eq!(words.read(0x7fff_0010), Some(NOT_KEPT));
    }

    #[test]
    fn a_page_that_was_not_in_memory_cannot_be_read() {
        let words = [packed(16, 0x7777_0000), packed(495, HOLE), packed(1, 0x7777_0008)];
        let raw = part(0x7fff_0000, 0, 0, 0x3000, &words);
        let words = SparseWords::default().with_record(&StackRecordPart::parse(&raw).unwrap().record);
        let read = [0x80, 0x1000, 0x1ff8, 0x2000, 0x2008].map(|offset| words.read(0x7fff_0000 + offset));
        assert_eq!(read, [Some(0x7777_0000), None, None, Some(NOT_KEPT), Some(0x7777_0008)]);
        assert!(words.is_hole(0x7fff_1000) && !words.is_hole(0x7fff_2000));
    }

    #[test]
    fn the_interrupted_stack_is_the_second() {
        let words = [packed(0, 0x7777_0000), packed(1, 0x5555_0000)];
        let raw = part(0x6000_0000, 0x7fff_0008, 1, 0x80, &words);
        let words = SparseWords::default().with_record(&StackRecordPart::parse(&raw).unwrap().record);
        assert_eq!(words.read(0x6000_0000), Some(0x7777_0000));
        assert_eq!(words.read(0x7fff_0008), Some(0x5555_0000));
    }
}
