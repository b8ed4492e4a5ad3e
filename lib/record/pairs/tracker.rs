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
    /// The pairs that were thinned out, by stack: those that were sent, and those that they represent.
    sparse: FxHashMap<u32, PairTime>,
    /// A buffer for a callchain.
    callchain: Vec<u8>,
    /// The largest number of pairs that one represented.
    pub represented: u64,
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
        self.represented = self.represented.max(event.count);
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
        let total = sums.map_or_else(
            || sum(&self.sparse),
            |sums| PairTime {
                count: sums.pairs.saturating_sub(self.charged.count),
                nanoseconds: sums.nanoseconds.saturating_sub(self.charged.nanoseconds),
            },
        );
        if self.sparse.is_empty() && total.count > 0 {
            let unknown = recording.intern_unknown_stack(0, 0);
            charge_in_state(recording, unknown, ThreadState::Lost, total);
        }
        for (stack, time) in share(total, &self.sparse) {
            self.charged += time;
            charge(recording, stack, time);
        }
        self.sparse.clear();
        if let Some(PairSums { pairs, unfinished, .. }) = sums {
            let halves = self.ended.len() as u64 + (self.begun.len() as u64).saturating_sub(unfinished);
            self.unmatched += halves.max(pairs.saturating_sub(self.charged.count));
        }
    }
}

fn sum(represented: &FxHashMap<u32, PairTime>) -> PairTime {
    let mut all = PairTime::default();
    represented.values().for_each(|time| all += *time);
    all
}

/// Shares pairs among stacks in proportion to the pairs that they represent. The sum of the shares is exact.
fn share(total: PairTime, represented: &FxHashMap<u32, PairTime>) -> Vec<(u32, PairTime)> {
    let all = sum(represented);
    let mut stacks: Vec<(u32, PairTime)> = represented.iter().map(|(stack, time)| (*stack, *time)).collect();
    stacks.sort_unstable_by_key(|(stack, _)| *stack);
    let (mut before, mut shared) = (PairTime::default(), PairTime::default());
    for (_, time) in &mut stacks {
        before += *time;
        let until = PairTime {
            count: multiply_ratio(total.count, before.count, all.count),
            nanoseconds: multiply_ratio(total.nanoseconds, before.nanoseconds, all.nanoseconds),
        };
        *time = PairTime { count: until.count - shared.count, nanoseconds: until.nanoseconds - shared.nanoseconds };
        shared = until;
    }
    stacks
}

fn charge(recording: &mut Recording, stack: u32, time: PairTime) {
    charge_in_state(recording, stack, ThreadState::Running, time);
}

fn charge_in_state(recording: &mut Recording, stack: u32, state: ThreadState, time: PairTime) {
    let PairTime { count, nanoseconds } = time;
    recording.charge(stack, &[], state, ChargedTime { count, nanoseconds, start: None });
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashMap;

    use super::{PairTime, share};

    #[test]
    fn shares_every_pair() {
        let represented: FxHashMap<u32, PairTime> =
            (0..7).map(|stack| (stack, PairTime { count: 17, nanoseconds: 1000 + u64::from(stack) })).collect();
        let shares = share(PairTime { count: 100, nanoseconds: 9999 }, &represented);
        let count: u64 = shares.iter().map(|(_, time)| time.count).sum();
        let nanoseconds: u64 = shares.iter().map(|(_, time)| time.nanoseconds).sum();
        assert_eq!((count, nanoseconds), (100, 9999));
        assert!(shares.iter().all(|(_, time)| (14..=15).contains(&time.count)), "{shares:?}");
    }
}
