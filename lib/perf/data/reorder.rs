//! Records in the order of their times.
//!
//! `perf record` empties the rings of all CPUs in turn, again and again, and writes FINISHED_ROUND after each turn. Within
//! a round the CPUs' records stand one after the other; what comes in a later round was written after the one before had
//! ended. So at the end of a round everything that is not newer than the newest record of the round before it is
//! complete, and is handed out. No more than two rounds are held at a time.

use super::record_reader::RECORD_HEADER;

/// A recording that never ends a round is held so far, then its older half is let go.
const MOST: usize = 256 << 20;

/// The records that wait for older ones.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    records: Vec<(u64, usize)>,
    /// Room for what stays.
    spare: Vec<u8>,
    /// The newest time so far, and when the last round ended.
    newest: u64,
    complete: u64,
}

impl Window {
    /// Takes a record in.
    #[inline]
    pub(super) fn push(&mut self, record: &[u8], time: u64, give: &mut impl FnMut(&[u8])) {
        self.records.push((time, self.bytes.len()));
        self.bytes.extend_from_slice(record);
        self.newest = self.newest.max(time);
        if self.bytes.len() >= MOST {
            self.records.sort_by_key(|(time, _)| *time);
            let median = self.records[self.records.len() / 2].0;
            self.hand_out(median, give);
        }
    }

    /// A round has ended.
    pub(super) fn end_round(&mut self, give: &mut impl FnMut(&[u8])) {
        let complete = std::mem::replace(&mut self.complete, self.newest);
        self.hand_out(complete, give);
    }

    /// Hands all out that is not newer than `until`.
    pub(super) fn hand_out(&mut self, until: u64, give: &mut impl FnMut(&[u8])) {
        // Stable: what was written at the same time stays as it stands.
        self.records.sort_by_key(|(time, _)| *time);
        let count = self.records.partition_point(|(time, _)| *time <= until);
        for (_, start) in self.records.drain(..count) {
            give(record_at(&self.bytes, start));
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
    let header = &bytes[start..start + RECORD_HEADER];
    &bytes[start..start + usize::from(u16::from_le_bytes([header[6], header[7]]))]
}

#[cfg(test)]
mod tests {
    use super::Window;

    fn record(number: u8) -> [u8; 9] {
        [0, 0, 0, 0, 0, 0, 9, 0, number]
    }

    #[test]
    fn what_is_complete_comes_in_order() {
        let mut window = Window::default();
        let mut seen = Vec::new();
        let mut take = |record: &[u8]| seen.push(record[8]);
        for round in [&[3, 5, 1, 4][..], &[6, 9, 2], &[8, 7]] {
            for time in round {
                window.push(&record(*time), u64::from(*time), &mut take);
            }
            window.end_round(&mut take);
        }
        window.push(&record(10), 0, &mut take);
        window.hand_out(u64::MAX, &mut take);
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|n| n));
    }
}
