//! The kernel stacks of threads that sleep since before the recording.
//!
//! The kernel leaves its scheduler out of the stack of another thread: all functions in `.sched.text`, from that which waits
//! (`do_nanosleep`) to `schedule`. The stack at a switch has them. So that one wait is one stack, they are added: those that
//! stacks of switches have after the same place in the kernel, or else `schedule` alone.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Recording;
use super::stack::STACK_HEADER;
use super::wakers::is_waker;
use crate::perf::objects::registry::KERNEL;
use crate::perf::symbols::kallsyms::KernelSymbols;

/// The scheduler's functions in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerCode {
    /// The addresses of `.sched.text`.
    text: Range<u64>,
    /// The address of `schedule`.
    schedule: u64,
}

impl SchedulerCode {
    /// Finds the scheduler of the running kernel. `None` if its symbols are hidden.
    pub fn of_running_kernel() -> Option<Self> {
        let names: [&[u8]; 3] = [b"__sched_text_start", b"__sched_text_end", b"schedule"];
        let starts =
            KernelSymbols::ranges_in_running_kernel(&names).into_iter().map(|found| Some(found.first()?.start));
        let [start, end, schedule] = starts.collect::<Option<Vec<u64>>>()?.try_into().ok()?;
        (start..end).contains(&schedule).then_some(Self { text: start..end, schedule })
    }

    /// Returns the address that ends the kernel stack of a thread that slept before the recording. No function returns there.
    pub fn placeholder(&self) -> u64 {
        self.schedule + 1
    }

    fn is_placeholder(&self, address: u64) -> bool {
        // Look-ups of return addresses are one byte before.
        (self.schedule..=self.placeholder()).contains(&address)
    }
}

/// The IDs of locations in the scheduler that follow another location.
type Suffixes = FxHashMap<u32, Vec<u32>>;

impl Recording {
    /// Completes the kernel stacks that end in a placeholder for the scheduler.
    pub(super) fn complete_sleepers(&mut self) {
        let Some(scheduler) = self.options.scheduler.clone() else { return };
        let is_placeholder = self.kernel_locations(|address| scheduler.is_placeholder(address));
        if !is_placeholder.contains(&true) {
            return;
        }
        let is_scheduler =
            self.kernel_locations(|address| scheduler.text.contains(&address) && !scheduler.is_placeholder(address));
        let suffixes = self.scheduler_suffixes(&is_scheduler);
        for stack in 0..self.tallies.len() {
            let tally = self.tallies[stack];
            if tally.samples == 0 && tally.period == 0 {
                continue;
            }
            if let Some(ids) = complete(self.stacks.get(stack as u32), &is_placeholder, &suffixes) {
                self.tallies[stack] = Default::default();
                let completed = self.stacks.intern(&ids);
                self.add_to_tally(completed, tally.samples, 0);
                self.tallies[completed as usize].period += tally.period;
            }
        }
    }

    /// Returns for each location if it is in the kernel at a wanted address.
    fn kernel_locations(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<bool> {
        let all = self.locations.all().iter();
        all.map(|location| location.object == KERNEL && is_wanted(location.address)).collect()
    }

    /// Returns the functions of the scheduler that follow each location, where several may those with the largest period.
    fn scheduler_suffixes(&self, is_scheduler: &[bool]) -> Suffixes {
        let mut periods: FxHashMap<&[u32], u128> = FxHashMap::default();
        for (stack, tally) in self.tallies.iter().enumerate().filter(|(_, tally)| tally.period > 0) {
            let ids = &self.stacks.get(stack as u32)[STACK_HEADER..];
            for locations in ids.split(|id| is_waker(*id)) {
                let inner = locations.iter().rev().take_while(|id| contains(is_scheduler, **id)).count();
                if (1..locations.len()).contains(&inner) {
                    *periods.entry(&locations[locations.len() - inner - 1..]).or_default() += tally.period;
                }
            }
        }
        let mut found: Vec<(&[u32], u128)> = periods.into_iter().collect();
        found.sort_unstable_by_key(|(locations, period)| (*period, *locations));
        found.into_iter().map(|(locations, _)| (locations[0], locations[1..].to_vec())).collect()
    }
}

fn contains(locations: &[bool], id: u32) -> bool {
    locations.get(id as usize).copied().unwrap_or(false)
}

/// Returns the IDs of a stack with the scheduler's functions in place of each placeholder. `None` if nothing changes.
fn complete(ids: &[u32], is_placeholder: &[bool], suffixes: &Suffixes) -> Option<Vec<u32>> {
    let mut completed = ids[..STACK_HEADER].to_vec();
    for pair in ids[STACK_HEADER - 1..].windows(2) {
        let suffix = suffixes.get(&pair[0]).filter(|_| contains(is_placeholder, pair[1]));
        completed.extend_from_slice(suffix.map_or(&pair[1..], Vec::as_slice));
    }
    (completed != ids).then_some(completed)
}

#[cfg(test)]
mod tests {
    use super::SchedulerCode;
    use crate::perf::event::{Callchain, Sample, Stamp};
    use crate::perf::recording::{ChargedTime, Options, Recording};
    use crate::perf::thread_state::ThreadState;

    const SCHEDULER: SchedulerCode =
        SchedulerCode { text: 0xffff_ffff_8220_0000..0xffff_ffff_8221_0000, schedule: 0xffff_ffff_8220_1000 };
    const SCHEDULE: u64 = SCHEDULER.schedule + 0x20;
    const NANOSLEEP: u64 = SCHEDULER.text.start + 0x20;

    fn charge(recording: &mut Recording, kernel: &[u64], nanoseconds: u64) {
        let mut buffer = Vec::new();
        let callchain = Callchain::write(kernel, &[], &mut buffer);
        let sample = Sample { period: 1, in_kernel: true, callchain, ..Sample::default() };
        let stack = recording.intern_stack(Stamp::default(), &sample);
        recording.charge(stack, &[], ThreadState::Blocked, ChargedTime { count: 1, nanoseconds, start: None });
    }

    /// Returns the addresses of each stack that has time, and the time.
    fn charged(recording: &Recording) -> Vec<(Vec<u64>, u128)> {
        let tallies = recording.event_tallies(0).filter(|(_, tally)| tally.period > 0);
        let address = |id: &u32| recording.locations()[*id as usize].address;
        tallies.map(|(stack, tally)| (stack.locations.iter().map(address).collect(), tally.period)).collect()
    }

    #[test]
    fn sleepers_have_the_scheduler_that_switches_have() {
        let options = Options { scheduler: Some(SCHEDULER), ..Options::default() };
        let mut recording = Recording::new(options);
        let (clock, futex) = (0xffff_ffff_8100_0000, 0xffff_ffff_8100_2000);
        charge(&mut recording, &[SCHEDULER.placeholder(), clock], 5);
        charge(&mut recording, &[SCHEDULER.placeholder(), futex], 7);
        charge(&mut recording, &[SCHEDULE, NANOSLEEP, clock], 30);
        charge(&mut recording, &[SCHEDULE, clock], 20);
        recording.merge_slices();
        let charged = charged(&recording);
        let [(unknown, 7), (known, 35), (other, 20)] = &charged[..] else { panic!("{charged:x?}") };
        assert_eq!((unknown.len(), known.len(), other.len()), (2, 3, 2), "{charged:x?}");
        assert_eq!(known[1], NANOSLEEP - 1);
        assert!(SCHEDULER.is_placeholder(unknown[1]) && !SCHEDULER.is_placeholder(known[2]));
    }
}
