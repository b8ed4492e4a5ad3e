//! Sorts records by time.
//!
//! `perf record` empties the rings of all CPUs one after the other, again and again, and writes a `FINISHED_ROUND`
//! record after each round. Within a round, the records of one CPU follow those of another. A record that comes in a
//! later round was made after its ring was emptied in this round, so after the previous round. At the end of a round,
//! all records up to the newest one of the previous round are therefore complete and are handed out. At most two rounds
//! are held.

use super::record_reader::record_size;

/// If no round ends, the older half of the records is handed out when they take this many bytes.
const MAX_BYTES: usize = 256 << 20;

/// The records that wait for older ones.
#[derive(Debug, Default)]
pub(super) struct ReorderBuffer {
    bytes: Vec<u8>,
    /// The time of each record and its offset in `bytes`.
    records: Vec<(u64, usize)>,
    /// A buffer to which the remaining records are moved.
    spare: Vec<u8>,
    /// The time of the newest record.
    newest: u64,
    /// The time of the newest record when the last round ended.
    newest_of_round: u64,
}

impl ReorderBuffer {
    /// Adds a record.
    #[inline]
    pub(super) fn push(&mut self, record: &[u8], time: u64, emit: &mut impl FnMut(&[u8])) {
        self.records.push((time, self.bytes.len()));
        self.bytes.extend_from_slice(record);
        self.newest = self.newest.max(time);
        if self.bytes.len() >= MAX_BYTES {
            self.records.sort_by_key(|(time, _)| *time);
            let median = self.records[self.records.len() / 2].0;
            self.emit_until(median, emit);
        }
    }

    /// Emits the records that are complete at the end of a round.
    pub(super) fn end_round(&mut self, emit: &mut impl FnMut(&[u8])) {
        let until = std::mem::replace(&mut self.newest_of_round, self.newest);
        self.emit_until(until, emit);
    }

    /// Emits all records up to a time, sorted by time.
    pub(super) fn emit_until(&mut self, until: u64, emit: &mut impl FnMut(&[u8])) {
        // A stable sort: records of the same time keep their order.
        self.records.sort_by_key(|(time, _)| *time);
        let count = self.records.partition_point(|(time, _)| *time <= until);
        for (_, start) in self.records.drain(..count) {
            emit(record_at(&self.bytes, start));
        }
        self.spare.clear();
        for (_, start) in &mut self.records {
            let record = record_at(&self.bytes, *start);
            *start = self.spare.len();
            self.spare.extend_from_slice(record);
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
    }
}

fn record_at(bytes: &[u8], start: usize) -> &[u8] {
    let record = &bytes[start..];
    &record[..record_size(record).expect("whole records")]
}

#[cfg(test)]
mod tests {
    use super::ReorderBuffer;

    fn record(number: u8) -> [u8; 9] {
        [0, 0, 0, 0, 0, 0, 9, 0, number]
    }

    #[test]
    fn sorts_records_across_rounds() {
        let mut buffer = ReorderBuffer::default();
        let mut seen = Vec::new();
        let mut emit = |record: &[u8]| seen.push(record[8]);
        for round in [&[3, 5, 1, 4][..], &[6, 9, 2], &[8, 7]] {
            for time in round {
                buffer.push(&record(*time), u64::from(*time), &mut emit);
            }
            buffer.end_round(&mut emit);
        }
        buffer.push(&record(10), 0, &mut emit);
        buffer.emit_until(u64::MAX, &mut emit);
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|n| n));
    }
}
