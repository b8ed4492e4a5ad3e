//! The user stack that the BPF program wrote into a ring before the sample that it belongs to.

use crate::perf::event::{Sample, StackRecord, StackRecordPart, Stamp, UserState};
use crate::perf::unwind;

/// The last stack of a ring, put together from its parts.
#[derive(Debug, Default)]
pub struct PendingStack {
    /// The thread, and the record without its words. `None` if parts were lost.
    head: Option<(u32, StackRecord<'static>)>,
    words: Vec<u8>,
    /// Number of parts that were read.
    parts_read: u16,
    parts: u16,
}

impl PendingStack {
    /// Adds a part. The first part begins a new stack.
    pub fn add_part(&mut self, stamp: Stamp, part: &StackRecordPart<'_>) {
        if part.part == 0 {
            *self = Self {
                head: Some((stamp.tid, part.record.with_words(&[]))),
                words: std::mem::take(&mut self.words),
                parts_read: 0,
                parts: part.parts,
            };
            self.words.clear();
        }
        let is_next = part.part == self.parts_read && part.parts == self.parts;
        self.head = self.head.filter(|(tid, _)| is_next && *tid == stamp.tid);
        self.words.extend_from_slice(part.record.bytes());
        self.parts_read = self.parts_read.saturating_add(1);
    }

    /// Forgets the stack. A record that is neither a stack nor a sample says that some were lost between, and a later
    /// sample must not get this stack even if the thread is at the same place again.
    pub fn clear(&mut self) {
        self.head = None;
    }

    /// Adds the stack to a sample if it is of the same thread at the same place. Each sample has a stack of its own.
    pub fn join<'a>(&'a mut self, stamp: Stamp, sample: Sample<'a>) -> Sample<'a> {
        let head = self.head.take();
        let Some(user) = sample.user else { return sample };
        let record = head.filter(|(tid, record)| {
            *tid == stamp.tid
                && self.parts_read == self.parts
                && unwind::read_position(&user) == Some((record.ip, record.sp))
        });
        let record = record.map(|(_, record)| record.with_words(&self.words));
        Sample { user: Some(UserState { record, ..user }), ..sample }
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::PendingStack;
    use crate::perf::event::{Sample, StackRecordPart, Stamp, UserState};
    use crate::perf::unwind::{self, REGISTERS};

    /// The registers of a sample. Their values are those of their numbers: 0, 8, 16, ...
    fn registers() -> Vec<u8> {
        (0..u64::from(REGISTERS.count_ones())).flat_map(|number| (number * 8).to_le_bytes()).collect()
    }

    fn sample(registers: &[u8]) -> Sample<'_> {
        let user = UserState { mask: REGISTERS, registers, ..UserState::default() };
        Sample { period: 1, user: Some(user), ..Sample::default() }
    }

    /// A part with one word, of the stack at which the registers of [`registers`] are.
    fn raw_part(word: u64, part: u16, parts: u16) -> Vec<u8> {
        let registers = registers();
        let (ip, sp) = unwind::read_position(&sample(&registers).user.unwrap()).unwrap();
        let mut raw: Vec<u8> = [ip, sp, 0, 0, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect();
        raw.extend([0u32, 0, 0, 1].into_iter().flat_map(u32::to_le_bytes));
        raw.extend([part, parts, 0, 0, 0, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes));
        raw.extend(word.to_le_bytes());
        raw
    }

    fn add(stack: &mut PendingStack, tid: u32, word: u64, part: u16, parts: u16) {
        let raw = raw_part(word, part, parts);
        stack.add_part(Stamp { tid, ..Stamp::default() }, &StackRecordPart::parse(&raw).unwrap());
    }

    fn joined(stack: &mut PendingStack, tid: u32) -> Option<Vec<u64>> {
        let registers = registers();
        let sample = stack.join(Stamp { tid, ..Stamp::default() }, sample(&registers));
        Some(sample.user.unwrap().record?.words().collect())
    }

    #[test]
    fn a_stack_belongs_to_one_sample() {
        let mut stack = PendingStack::default();
        assert_eq!(joined(&mut stack, 7), None);
        add(&mut stack, 7, 11, 0, 2);
        add(&mut stack, 7, 12, 1, 2);
        assert_eq!(joined(&mut stack, 7), Some(vec![11, 12]));
        assert_eq!(joined(&mut stack, 7), None);
    }

    #[test]
    fn an_incomplete_stack_and_that_of_another_thread_belong_to_none() {
        let mut stack = PendingStack::default();
        add(&mut stack, 7, 11, 0, 2);
        assert_eq!(joined(&mut stack, 7), None);
        add(&mut stack, 7, 12, 1, 2);
        assert_eq!(joined(&mut stack, 7), None);
        add(&mut stack, 8, 11, 0, 1);
        assert_eq!(joined(&mut stack, 7), None);
        add(&mut stack, 7, 11, 0, 1);
        stack.clear();
        assert_eq!(joined(&mut stack, 7), None);
    }
}
