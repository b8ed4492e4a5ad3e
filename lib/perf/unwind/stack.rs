//! The memory of the stack of a sample.

use super::sparse::SparseWords;

/// The memory of the stack of a sample, as far as it was recorded.
#[derive(Debug)]
pub(super) struct Stack<'a> {
    memory: StackMemory<'a>,
    /// True if a word was asked for that lies beyond the end of the memory.
    has_passed_end: bool,
    /// True if a word was asked for whose page was not in memory.
    has_met_hole: bool,
}

/// The form in which the memory of a stack was recorded.
#[derive(Clone, Copy, Debug)]
enum StackMemory<'a> {
    /// A copy of all bytes from `start` on.
    Copy { start: u64, bytes: &'a [u8] },
    /// The words that the BPF program kept.
    Words(&'a SparseWords),
}

impl<'a> Stack<'a> {
    /// Creates a stack from a copy of its bytes, which starts at the stack pointer.
    pub(super) fn from_copy(start: u64, bytes: &'a [u8]) -> Self {
        Self { memory: StackMemory::Copy { start, bytes }, has_passed_end: false, has_met_hole: false }
    }

    /// Creates a stack from the words that the BPF program kept.
    pub(super) fn from_words(words: &'a SparseWords) -> Self {
        Self { memory: StackMemory::Words(words), has_passed_end: false, has_met_hole: false }
    }

    /// Returns the word at an address; `None` if it was not recorded.
    pub(super) fn read(&mut self, address: u64) -> Option<u64> {
        let word = self.memory.read(address);
        self.has_passed_end |= word.is_none() && address >= self.memory.end().saturating_sub(7);
        self.has_met_hole |= word.is_none() && self.memory.is_hole(address);
        word
    }

    /// True if a stack pointer is in what was recorded, or right behind it.
    pub(super) fn is_recorded_at(&self, stack_pointer: u64) -> bool {
        match self.memory {
            StackMemory::Copy { start, .. } => (start..=self.memory.end()).contains(&stack_pointer),
            StackMemory::Words(words) => words.read(stack_pointer).is_some(),
        }
    }

    /// True if a word was asked for whose page was not in memory.
    pub(super) fn has_met_hole(&self) -> bool {
        self.has_met_hole
    }

    /// True if a word was asked for that lies beyond the end of what was recorded.
    pub(super) fn has_passed_end(&self) -> bool {
        self.has_passed_end
    }
}

impl StackMemory<'_> {
    fn read(self, address: u64) -> Option<u64> {
        match self {
            Self::Copy { start, bytes } => {
                let offset = usize::try_from(address.checked_sub(start)?).ok()?;
                Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
            }
            Self::Words(words) => words.read(address),
        }
    }

    fn is_hole(self, address: u64) -> bool {
        matches!(self, Self::Words(words) if words.is_hole(address))
    }

    fn end(self) -> u64 {
        match self {
            Self::Copy { start, bytes } => start.saturating_add(bytes.len() as u64),
            Self::Words(words) => words.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Stack;

    #[test]
    fn reads_the_words_of_a_copy() {
        let bytes: Vec<u8> = (1..4u64).flat_map(u64::to_le_bytes).collect();
        let mut stack = Stack::from_copy(0x1000, &bytes);
        assert_eq!([0x1000, 0x1008, 0x1010].map(|address| stack.read(address)), [Some(1), Some(2), Some(3)]);
        assert_eq!((stack.read(0xff8), stack.has_passed_end()), (None, false));
        assert_eq!((stack.read(0x1011), stack.has_passed_end()), (None, true));
    }

    #[test]
    fn an_empty_copy_has_no_words() {
        let mut stack = Stack::from_copy(u64::MAX - 3, &[]);
        assert_eq!([0, u64::MAX].map(|address| stack.read(address)), [None, None]);
        assert!(stack.has_passed_end());
    }
}
