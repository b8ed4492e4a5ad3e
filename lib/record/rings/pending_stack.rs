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

    /// Adds the stack to a sample if it is of the same thread at the same place.
    pub fn join<'a>(&'a self, stamp: Stamp, sample: Sample<'a>) -> Sample<'a> {
        let Some(user) = sample.user else { return sample };
        let record = self.head.filter(|(tid, record)| {
            *tid == stamp.tid
                && self.parts_read == self.parts
                && unwind::read_position(&user) == Some((record.ip, record.sp))
        });
        let record = record.map(|(_, record)| record.with_words(&self.words));
        Sample { user: Some(UserState { record, ..user }), ..sample }
    }
}
