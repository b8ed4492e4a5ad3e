//! Charges the time of pairs to their stacks.

use rustc_hash::FxHashMap;

use super::PairSums;
use crate::perf::event::{Callchain, Sample, Stamp};
use crate::perf::recording::{ChargedTime, Recording};
use crate::perf::thread_state::ThreadState;
use crate::record::event_record::{EventKind, EventRecord};
use crate::record::off_cpu::multiply_ratio;

/// The largest number of pairs that wait for their other half. The program has room for as many that have begun.
const MAX_WAITING: usize = 65_536;

/// Charges the pairs that the BPF program sends.
#[derive(Debug, Default)]
pub struct PairTracker {
    /// The stacks of pairs that have begun, by their numbers.
    begun: FxHashMap<u64, u32>,
    /// The ends of pairs whose beginning was not read yet, because it is in the ring of another CPU.
    ended: FxHashMap<u64, PairTime>,
    /// The pairs that were charged one by one.
    charged: PairTime,
    /// The pairs that were sent and those that they represent, by the stacks of the former.
    sparse: FxHashMap<u32, PairTime>,
    /// A buffer for a callchain.
    callchain: Vec<u8>,
    /// True if at any time not every pair was sent.
    pub is_sparse: bool,
    /// Number of pairs whose other half was lost.
    pub unmatched: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct PairTime {
    /// Number of pairs; 0 for a pair that is too short.
    count: u64,
    /// The time of all.
    nanoseconds: u64,
}

impl std::ops::AddAssign for PairTime {
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.nanoseconds = self.nanoseconds.saturating_add(other.nanoseconds);
    }
}

impl PairTracker {
    /// Adds an event of a pair. The sample contains its user stack.
    pub fn add(&mut self, stamp: Stamp, event: &EventRecord, sample: Sample<'_>, recording: &mut Recording) {
        let end = PairTime { count: event.count, nanoseconds: event.nanoseconds.saturating_mul(event.count) };
        if event.kind == EventKind::PairEnd {
            match self.begun.remove(&event.subject) {
                Some(stack) => self.charge(recording, stack, end),
                None => self.wait_for_begin(event.subject, end),
            }
            return;
        }
        self.is_sparse |= event.count > 1;
        let sample = Sample { callchain: Callchain::write(&event.kernel, &[], &mut self.callchain), ..sample };
        let stack = recording.intern_stack(stamp, &sample);
        if event.kind == EventKind::Pair {
            return self.charge(recording, stack, end);
        }
        match self.ended.remove(&event.subject) {
            Some(end) => self.charge(recording, stack, end),
            None => {
                if self.begun.len() >= MAX_WAITING {
                    self.unmatched += self.begun.len() as u64;
                    self.begun.clear();
                }
                self.begun.insert(event.subject, stack);
            }
        }
    }

    fn wait_for_begin(&mut self, number: u64, end: PairTime) {
        if self.ended.len() >= MAX_WAITING {
            self.unmatched += self.ended.len() as u64;
            self.ended.clear();
        }
        self.ended.insert(number, end);
    }

    fn charge(&mut self, recording: &mut Recording, stack: u32, time: PairTime) {
        if time.count > 1 {
            *self.sparse.entry(stack).or_default() += time;
        } else if time.count > 0 {
            self.charged += time;
            charge(recording, stack, time);
        }
    }

    /// Charges the pairs that represent others. If the sums of all pairs are known, they share the time that is left. If no
    /// pair represents others, that time was lost.
    pub fn finish(&mut self, sums: Option<PairSums>, recording: &mut Recording) {
        let mut all = PairTime::default();
        self.sparse.values().for_each(|time| all += *time);
        let total = sums.map_or(all, |sums| PairTime {
            count: sums.pairs.saturating_sub(self.charged.count),
            nanoseconds: sums.nanoseconds.saturating_sub(self.charged.nanoseconds),
        });
        if self.sparse.is_empty() && total.count > 0 {
            let unknown = recording.intern_unknown_stack(0, 0);
            charge_in_state(recording, unknown, ThreadState::Lost, total);
        }
        for (stack, time) in self.sparse.drain() {
            let time = PairTime {
                count: multiply_ratio(total.count, time.count, all.count),
                nanoseconds: multiply_ratio(total.nanoseconds, time.nanoseconds, all.nanoseconds),
            };
            self.charged += time;
            charge(recording, stack, time);
        }
        if let Some(PairSums { pairs, open, .. }) = sums {
            let halves = self.ended.len() as u64 + (self.begun.len() as u64).saturating_sub(open);
            self.unmatched += halves.max(pairs.saturating_sub(self.charged.count));
        }
    }
}

fn charge(recording: &mut Recording, stack: u32, time: PairTime) {
    charge_in_state(recording, stack, ThreadState::Running, time);
}

fn charge_in_state(recording: &mut Recording, stack: u32, state: ThreadState, time: PairTime) {
    let PairTime { count, nanoseconds } = time;
    recording.charge(stack, &[], state, ChargedTime { count, nanoseconds, start: None });
}
