//! The layouts of processes that the BPF program knows, and the processes that are to get one.
//!
//! A layout says where the code of a process is. Most processes of a build or a script exit without a sample, so a process
//! gets its layout after its first sample, for which the program keeps every word that may be an address; or when it
//! begins, if its stacks can only be taken with one. The program itself gives a new process the layout of its parent, and
//! takes it away at execve. The functions here count who has which, in the order of the kernel's records.

use rustc_hash::FxHashMap;

/// A layout that no process has any more is removed after this time, in nanoseconds: a walk may still use it.
const REMOVAL_DELAY: u64 = 100_000_000;

/// The number of the layout in which code may be anywhere.
pub(super) const UNKNOWN_LAYOUT: u32 = 0;

/// The layouts that are in the program's maps.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    /// The processes that are in the map.
    processes: FxHashMap<u32, ProcessLayout>,
    /// Number of processes that have each layout.
    users: FxHashMap<u32, u32>,
    /// The processes whose layout is missing or out of date.
    outdated: FxHashMap<u32, Need>,
    /// Those whose need was noted since it was last looked at. Some may be there twice, or not be outdated any more.
    noted: Vec<u32>,
    /// Layouts that no process has, with the time since when.
    unused: Vec<(u32, u64)>,
    /// The number of the latest layout.
    last: u32,
}

/// The layout of a process.
#[derive(Clone, Copy, Debug)]
struct ProcessLayout {
    /// The number of the layout; [`UNKNOWN_LAYOUT`] if it cannot be known which one the program gave the process.
    layout: u32,
    /// The time since which the process has it.
    since: u64,
}

/// When a process needs a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// It is not known yet.
    Undecided,
    /// After its next sample.
    AfterSample,
    /// Now.
    Now,
}

impl Layouts {
    /// Notes that the mappings of a process have changed.
    pub fn note_change(&mut self, pid: u32) {
        let is_needed = self.processes.contains_key(&pid) || self.outdated.get(&pid) == Some(&Need::Now);
        self.note(pid, if is_needed { Need::Now } else { Need::Undecided });
    }

    fn note(&mut self, pid: u32, need: Need) {
        self.outdated.insert(pid, need);
        self.noted.push(pid);
    }

    /// Notes that a process needs its layout now.
    pub fn note_need(&mut self, pid: u32) {
        self.note(pid, Need::Now);
    }

    /// Notes that a sample was taken of a process whose layout the program knew to be out of date, or did not know. Returns true
    /// if the process needs a layout now.
    pub fn note_sample(&mut self, pid: u32, time: u64, is_unknown: bool) -> bool {
        // The program takes a layout away at the end of execve, even if it was published for the new program.
        let is_taken_away = is_unknown && self.processes.get(&pid).is_some_and(|process| process.since < time);
        let is_needed = is_taken_away || self.outdated.contains_key(&pid);
        if is_needed {
            self.note(pid, Need::Now);
        }
        is_needed
    }

    /// Notes that a process runs another program since `time`. Returns true if the map still has its old layout.
    pub fn note_exec(&mut self, pid: u32, time: u64, now: u64) -> bool {
        let old = self.processes.remove(&pid);
        self.note(pid, Need::Undecided);
        if let Some(old) = old {
            self.release(old.layout, now);
        }
        old.is_some_and(|old| old.since >= time)
    }

    /// Notes a new process.
    pub fn note_fork(&mut self, pid: u32, parent: u32, time: u64, now: u64) {
        self.forget(pid, now);
        let inherited = self.processes.get(&parent).map(|parent| match parent.since < time {
            true => parent.layout,
            // It was published while the fork was not known: the child may have the one before.
            false => UNKNOWN_LAYOUT,
        });
        if let Some(layout) = inherited {
            *self.users.entry(layout).or_default() += 1;
            self.processes.insert(pid, ProcessLayout { layout, since: time });
        }
        let is_current = inherited.is_some_and(|layout| layout != UNKNOWN_LAYOUT);
        if !is_current || self.outdated.contains_key(&parent) {
            self.note(pid, Need::Undecided);
        }
    }

    /// Forgets a process. Returns true if it is in the map.
    pub fn forget(&mut self, pid: u32, now: u64) -> bool {
        self.outdated.remove(&pid);
        let known = self.processes.remove(&pid);
        if let Some(known) = known {
            self.release(known.layout, now);
        }
        known.is_some()
    }

    /// Iterates over the processes that are in the map.
    pub fn processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.keys().copied()
    }

    /// Takes out the processes that need a layout now. `is_early` tells those that need it before their first sample.
    pub fn take_needed(&mut self, mut is_early: impl FnMut(u32) -> bool) -> Vec<u32> {
        let mut needed = Vec::new();
        for pid in std::mem::take(&mut self.noted) {
            match self.outdated.get_mut(&pid) {
                Some(need @ Need::Undecided) if !is_early(pid) => *need = Need::AfterSample,
                Some(Need::Undecided | Need::Now) => {
                    self.outdated.remove(&pid);
                    needed.push(pid);
                }
                Some(Need::AfterSample) | None => {}
            }
        }
        needed
    }

    /// Returns the number of a new layout.
    pub fn new_layout(&mut self) -> u32 {
        // A layout is gone long before its number is given again.
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.last
    }

    /// Notes that a process has a layout since `now`.
    pub fn note_published(&mut self, pid: u32, layout: u32, now: u64) {
        *self.users.entry(layout).or_default() += 1;
        if let Some(old) = self.processes.insert(pid, ProcessLayout { layout, since: now }) {
            self.release(old.layout, now);
        }
    }

    fn release(&mut self, layout: u32, now: u64) {
        if let Some(users) = self.users.get_mut(&layout) {
            *users -= 1;
            if *users == 0 {
                self.users.remove(&layout);
                if layout != UNKNOWN_LAYOUT {
                    self.unused.push((layout, now));
                }
            }
        }
    }

    /// Takes out the layouts that can be removed from the map.
    pub fn take_unused(&mut self, now: u64) -> Vec<u32> {
        let unused = self.unused.extract_if(.., |(_, since)| *since + REMOVAL_DELAY < now);
        unused.map(|(layout, _)| layout).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Layouts, REMOVAL_DELAY};

    fn publish(layouts: &mut Layouts, pid: u32, now: u64) -> u32 {
        let layout = layouts.new_layout();
        layouts.note_published(pid, layout, now);
        layout
    }

    #[test]
    fn a_process_gets_a_layout_when_it_is_sampled() {
        let mut layouts = Layouts::default();
        layouts.note_fork(7, 1, 10, 10);
        layouts.note_exec(7, 11, 11);
        layouts.note_change(7);
        assert!(layouts.take_needed(|_| false).is_empty());
        // It was looked at.
        assert!(layouts.take_needed(|_| true).is_empty());
        assert!(layouts.note_sample(7, 12, true));
        assert_eq!(layouts.take_needed(|_| false), [7]);
        publish(&mut layouts, 7, 20);
        // The sample is older than the layout.
        assert!(!layouts.note_sample(7, 19, true));
        assert!(layouts.take_needed(|_| true).is_empty());
        // From then on it has one always.
        layouts.note_change(7);
        assert_eq!(layouts.take_needed(|_| false), [7]);
        publish(&mut layouts, 7, 30);
        assert!(!layouts.note_exec(7, 40, 41));
        assert!(layouts.take_needed(|_| false).is_empty());
    }

    #[test]
    fn a_layout_that_the_program_took_away_is_published_again() {
        let mut layouts = Layouts::default();
        layouts.note_exec(7, 10, 11);
        layouts.note_need(7);
        assert_eq!(layouts.take_needed(|_| false), [7]);
        publish(&mut layouts, 7, 12);
        layouts.note_sample(7, 13, false);
        assert!(layouts.take_needed(|_| true).is_empty());
        layouts.note_sample(7, 13, true);
        assert_eq!(layouts.take_needed(|_| false), [7]);
        // Nothing is known of a process that has exited.
        layouts.forget(7, 20);
        layouts.note_sample(7, 14, true);
        assert!(layouts.take_needed(|_| true).is_empty());
    }

    #[test]
    fn a_process_may_need_a_layout_before_it_is_sampled() {
        let mut layouts = Layouts::default();
        layouts.note_exec(7, 10, 10);
        layouts.note_exec(8, 10, 10);
        assert_eq!(layouts.take_needed(|pid| pid == 8), [8]);
        // A library was loaded.
        layouts.note_change(7);
        assert_eq!(layouts.take_needed(|_| true), [7]);
        layouts.note_need(9);
        assert_eq!(layouts.take_needed(|_| false), [9]);
    }

    #[test]
    fn a_process_that_exits_before_it_is_published_is_not_published() {
        let mut layouts = Layouts::default();
        layouts.note_need(7);
        assert!(!layouts.forget(7, 10));
        assert!(layouts.take_needed(|_| true).is_empty());
    }

    #[test]
    fn a_new_process_has_the_layout_of_its_parent() {
        let mut layouts = Layouts::default();
        let layout = publish(&mut layouts, 1, 10);
        layouts.note_fork(2, 1, 20, 21);
        assert!(layouts.take_needed(|_| true).is_empty());
        assert!(layouts.forget(1, 30));
        assert!(layouts.take_unused(30 + 2 * REMOVAL_DELAY).is_empty());
        // Two mappings changed, and the child of a child has one of them.
        layouts.note_change(2);
        layouts.note_fork(3, 2, 40, 41);
        assert_eq!(layouts.take_needed(|_| false), [2]);
        publish(&mut layouts, 2, 50);
        layouts.note_sample(3, 45, false);
        assert_eq!(layouts.take_needed(|_| false), [3]);
        publish(&mut layouts, 3, 60);
        assert!(layouts.take_unused(60 + REMOVAL_DELAY).is_empty());
        assert_eq!(layouts.take_unused(61 + REMOVAL_DELAY), [layout]);
    }

    #[test]
    fn a_layout_that_was_published_after_a_fork_is_not_that_of_the_child() {
        let mut layouts = Layouts::default();
        publish(&mut layouts, 1, 10);
        publish(&mut layouts, 1, 30);
        layouts.note_fork(2, 1, 20, 31);
        layouts.note_sample(2, 32, true);
        assert_eq!(layouts.take_needed(|_| false), [2]);
        publish(&mut layouts, 2, 40);
        // The program took it away only if it was there.
        assert!(layouts.note_exec(2, 35, 50));
        assert!(!layouts.note_exec(1, 60, 61));
    }
}
