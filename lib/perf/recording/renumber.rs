//! Forgets the stacks, locations and names of threads that are not in use any more, and renumbers the others.

use rustc_hash::{FxHashMap, FxHashSet};

use super::locations::Locations;
use super::stack::STACK_HEADER;
use super::wakers::{renumber_waker, split_wakers};
use super::{LocationCache, Recording};
use crate::perf::objects::object::ObjectId;
use crate::perf::process::CommId;
use crate::profile::{FrameId, Frames, Stacks};

/// Gives new IDs to the stacks that are asked for.
pub struct StackRenumbering {
    old: Tables,
    new: Tables,
    /// The new IDs, by the old ones.
    stacks: FxHashMap<u32, u32>,
}

#[derive(Default)]
struct Tables {
    stacks: Stacks,
    locations: Locations,
    comms: Frames,
}

impl StackRenumbering {
    /// Returns the new ID of a stack.
    pub fn renumber(&mut self, stack: u32) -> u32 {
        if let Some(known) = self.stacks.get(&stack) {
            return *known;
        }
        let mut ids = self.old.stacks.get(stack).to_vec();
        ids[0] = self.renumber_comm(ids[0]);
        let wakers = STACK_HEADER + split_wakers(&ids[STACK_HEADER..]).0.len();
        for (index, id) in ids.iter_mut().enumerate().skip(STACK_HEADER) {
            let waker = if index < wakers { None } else { renumber_waker(*id, |comm| self.renumber_comm(comm)) };
            *id = waker.unwrap_or_else(|| self.new.locations.intern(self.old.locations.all()[*id as usize]));
        }
        let new = self.new.stacks.intern(&ids);
        self.stacks.insert(stack, new);
        new
    }

    fn renumber_comm(&mut self, comm: CommId) -> CommId {
        self.new.comms.intern(self.old.comms.name(FrameId::from_index(comm))).index() as CommId
    }
}

impl Recording {
    /// Forgets the stacks that neither the past slices nor others use, and all that only these stacks need. The present
    /// slice has only begun. `renumber_others` is to ask for the new ID of each stack that it uses.
    pub fn forget_unused_stacks(&mut self, renumber_others: impl FnOnce(&mut StackRenumbering)) {
        let old = Tables {
            stacks: std::mem::take(&mut self.stacks),
            locations: std::mem::take(&mut self.locations),
            comms: std::mem::take(&mut self.comms),
        };
        let mut renumbering = StackRenumbering { old, new: Tables::default(), stacks: FxHashMap::default() };
        renumber_others(&mut renumbering);
        self.renumber_history(|stack| renumbering.renumber(stack));
        self.processes.renumber_comms(|comm| renumbering.renumber_comm(comm));
        Tables { stacks: self.stacks, locations: self.locations, comms: self.comms } = renumbering.new;
        self.location_cache = LocationCache::default();
        let used: FxHashSet<ObjectId> = self.locations.all().iter().map(|location| location.object).collect();
        self.forget_unused_objects(&used);
    }
}

#[cfg(test)]
mod tests {
    use crate::perf::recording::{ChargedTime, Options, Recording};
    use crate::perf::thread_state::ThreadState;
    use crate::profile::FrameId;

    fn charge(recording: &mut Recording, stack: u32, wakers: &[u32], (start, nanoseconds): (u64, u64)) {
        let time = ChargedTime { count: 1, nanoseconds, start: Some(start) };
        recording.charge(stack, wakers, ThreadState::Blocked, time);
    }

    fn comm_name(recording: &Recording, comm: u32) -> Vec<u8> {
        recording.comms.name(FrameId::from_index(comm)).to_vec()
    }

    /// Returns the name, the name of the first waker, and the time of each stack with time.
    fn times(recording: &Recording) -> Vec<(Vec<u8>, Option<Vec<u8>>, u128)> {
        let tallies = recording.event_tallies(0).filter(|(_, tally)| tally.period > 0);
        let mut times: Vec<_> = tallies
            .map(|(stack, tally)| {
                let waker = stack.wakers().next().map(|waker| comm_name(recording, waker.comm));
                (comm_name(recording, stack.comm), waker, tally.period)
            })
            .collect();
        times.sort();
        times
    }

    fn recording() -> Recording {
        let mut recording = Recording::new(Options::default());
        recording.keep_last(30, 100);
        recording
    }

    #[test]
    fn a_block_is_divided_among_the_slices_in_which_it_lasted() {
        let mut recording = recording();
        let stack = recording.intern_unknown_stack(7, 0);
        [110, 120, 130].into_iter().for_each(|time| recording.end_slice(time));
        // From before the first slice until now, of which 120 to 135 are 15.
        charge(&mut recording, stack, &[], (90, 45));
        charge(&mut recording, stack, &[], (131, 2));
        assert_eq!(recording.start_of_slices(), 100);
        recording.end_slice(140);
        recording.end_slice(150);
        let mut copy = recording.copy_slices();
        assert_eq!(copy.start_of_slices(), 120);
        copy.merge_slices();
        assert_eq!(times(&copy), [(b":7".to_vec(), None, 17)]);
        assert_eq!(copy.total(0).samples, 2);
    }

    #[test]
    fn what_is_in_use_stays_when_the_rest_is_forgotten() {
        let mut recording = recording();
        for tid in 0..1000 {
            let stack = recording.intern_unknown_stack(tid, 0);
            charge(&mut recording, stack, &[], (105, 1));
        }
        recording.end_slice(110);
        let [waiter, waker] = [7, 9].map(|tid| recording.intern_unknown_stack(tid, 0));
        let mut open = recording.intern_unknown_stack(2000, 0);
        recording.end_slice(145);
        charge(&mut recording, waiter, &[waker], (145, 3));
        recording.end_slice(150);
        recording.forget_unused_stacks(|renumbering| open = renumbering.renumber(open));
        assert!(recording.comms.len() < 10 && recording.stacks.len() < 10, "{recording:?}");
        charge(&mut recording, open, &[], (150, 5));
        let mut copy = recording.copy_slices();
        copy.merge_slices();
        assert_eq!(times(&copy), [(b":2000".to_vec(), None, 5), (b":7".to_vec(), Some(b":9".to_vec()), 3)]);
    }
}
