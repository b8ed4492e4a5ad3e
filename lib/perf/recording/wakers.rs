//! The wakers of blocked threads: their stacks follow that of the thread that they woke.

use super::Recording;
use super::stack::{STACK_HEADER, StackInfo};
use crate::perf::process::CommId;
use crate::perf::thread_state::ThreadState;

/// Marks an ID that begins the stack of a waker: the rest is the ID of the waker's name. IDs of locations are smaller.
const WAKER: u32 = 1 << 31;
/// Marks the beginning of a waker's stack that was cut before its root.
const TRUNCATED: u32 = 1 << 30;

/// The stack of a waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakerStack<'a> {
    /// The ID of the waker's name.
    pub comm: u32,
    /// True if the stack was cut before its root.
    pub is_truncated: bool,
    /// The IDs of its locations, root first.
    pub locations: &'a [u32],
}

/// Time that is charged to a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargedTime {
    /// Number of blocks or samples.
    pub count: u64,
    /// Their total duration.
    pub nanoseconds: u64,
    /// The time at which it began, if it was not interrupted.
    pub start: Option<u64>,
}

impl Recording {
    /// Charges time to a stack in a thread state. `wakers` are the IDs of the stacks of the thread that ended the blocks, of
    /// the one that had ended its block before, and so on.
    pub fn charge(&mut self, stack: u32, wakers: &[u32], state: ThreadState, time: ChargedTime) {
        let mut ids = std::mem::take(&mut self.scratch);
        ids.clear();
        ids.extend_from_slice(self.stacks.get(stack));
        ids[1] = StackInfo(ids[1]).with_state(state).0;
        for waker in wakers {
            let waker = self.stacks.get(*waker);
            let truncated = if StackInfo(waker[1]).is_truncated() { TRUNCATED } else { 0 };
            ids.push(WAKER | truncated | waker[0]);
            ids.extend_from_slice(&waker[STACK_HEADER..]);
        }
        let stack = self.stacks.intern(&ids);
        self.scratch = ids;
        let nanoseconds = self.charge_past_slices(stack, time);
        self.add_to_tally(stack, time.count, nanoseconds);
    }

    /// Returns the ID of the stack of a waker of which a marker tells what is known.
    pub fn intern_waker_marker(&mut self, marker: &[u8]) -> u32 {
        let comm = self.intern_comm(marker);
        self.stacks.intern(&[comm, 0])
    }
}

/// True for the ID that begins the stack of a waker.
pub(super) fn is_waker(id: u32) -> bool {
    id & WAKER != 0
}

/// Splits the IDs behind a stack's header into its own locations, and those of wakers.
pub(super) fn split_wakers(ids: &[u32]) -> (&[u32], &[u32]) {
    ids.split_at(ids.iter().position(|id| is_waker(*id)).unwrap_or(ids.len()))
}

/// Renumbers the waker's name in the ID that begins a waker's stack. `None` for the ID of a location.
pub(super) fn renumber_waker(id: u32, renumber: impl FnOnce(CommId) -> CommId) -> Option<u32> {
    let flags = id & (WAKER | TRUNCATED);
    (id & WAKER != 0).then(|| flags | renumber(id & !flags))
}

/// Iterates over the stacks of wakers in the second part of what [`split_wakers`] returns.
pub(super) fn waker_stacks(mut ids: &[u32]) -> impl Iterator<Item = WakerStack<'_>> {
    std::iter::from_fn(move || {
        let (first, rest) = ids.split_first()?;
        let (locations, others) = split_wakers(rest);
        ids = others;
        let comm: CommId = first & !(WAKER | TRUNCATED);
        Some(WakerStack { comm, is_truncated: first & TRUNCATED != 0, locations })
    })
}

#[cfg(test)]
mod tests {
    use crate::perf::recording::{ChargedTime, Options, Recording};
    use crate::perf::thread_state::ThreadState;

    fn charged(count: u64, nanoseconds: u64) -> ChargedTime {
        ChargedTime { count, nanoseconds, start: None }
    }

    #[test]
    fn stacks_of_wakers_follow_that_of_the_thread_that_they_woke() {
        let mut recording = Recording::new(Options::default());
        let stack = recording.stacks.intern(&[7, 0, 1, 2]);
        let wakers = [recording.stacks.intern(&[8, 0, 3]), recording.stacks.intern(&[9, 1])];
        recording.charge(stack, &wakers, ThreadState::Blocked, charged(1, 500));
        recording.charge(stack, &wakers[..1], ThreadState::Blocked, charged(1, 30));
        recording.charge(stack, &wakers, ThreadState::Blocked, charged(2, 20));
        let charged: Vec<(usize, u64, u128)> = recording
            .event_tallies(0)
            .filter(|(_, tally)| tally.samples > 0)
            .map(|(stack, tally)| (stack.wakers().count(), tally.samples, tally.period))
            .collect();
        assert_eq!(charged, [(2, 3, 520), (1, 1, 30)]);
        let stack = recording.stack(3);
        assert_eq!((stack.comm, stack.locations, stack.state), (7, &[1, 2][..], ThreadState::Blocked));
        let wakers: Vec<_> =
            stack.wakers().map(|waker| (waker.comm, waker.is_truncated, waker.locations.to_vec())).collect();
        assert_eq!(wakers, [(8, false, vec![3]), (9, true, vec![])]);
    }
}
