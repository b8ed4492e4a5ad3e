//! Finds the processes of which the kernel reports no side-band records any more, or never did.
//!
//! Side-band records come from counters of threads, which new threads inherit. There are two gaps:
//!
//! - A thread that was being created when its creator was attached to may have inherited nothing. It is reported with the first
//!   fork of its creator, unless it was found in `/proc` before.
//! - The kernel takes all counters away from a process that runs a set-user-ID program, or one that its user may not read
//!   (`begin_new_exec` in its `exec.c`). It reports that as an exit, right after the execve.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::perf::event::Event;
use crate::record::procfs;

/// A creation of a thread that was in progress at the attachment ends before this time, in nanoseconds.
const CREATION_TIME: u64 = 1_000_000_000;

/// A process to which side-band counters are to be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unattached {
    /// Its ID.
    pub pid: u32,
    /// The thread that has no counters, or that lost them.
    pub tid: u32,
    /// The time since which its records may be missing.
    pub since: u64,
    /// True if the kernel has taken all counters away from it, also those of threads that count events.
    pub has_lost_counters: bool,
}

/// Finds processes without side-band counters.
#[derive(Debug, Default)]
pub struct Attachments {
    /// The threads that were attached to and have created none since, with the time of the attachment.
    new_owners: FxHashMap<u32, u64>,
    /// Processes of which the last record is that of their execve.
    in_exec: FxHashSet<u32>,
    unattached: Vec<Unattached>,
}

impl Attachments {
    /// Notes that counters were attached to threads at `time`.
    pub fn note_attached(&mut self, tids: Vec<u32>, time: u64) {
        self.new_owners.extend(tids.into_iter().map(|tid| (tid, time)));
    }

    /// Notes a side-band record. Returns true if it tells of the end of a thread that runs on.
    pub fn note_event(&mut self, time: u64, event: &Event<'_>) -> bool {
        match *event {
            Event::Fork { pid, tid, parent_tid, .. } => {
                let attached = self.new_owners.remove(&parent_tid);
                if attached.is_some_and(|attached| time < attached + CREATION_TIME) {
                    self.unattached.push(Unattached { pid, tid, since: time, has_lost_counters: false });
                }
            }
            Event::Comm { pid, exec: true, .. } => drop(self.in_exec.insert(pid)),
            Event::Mmap(mmap) => drop(self.in_exec.remove(&mmap.pid)),
            Event::Exit { pid, tid } => {
                self.new_owners.remove(&tid);
                if self.in_exec.remove(&pid) && !procfs::is_exiting(tid) {
                    self.unattached.push(Unattached { pid, tid, since: time, has_lost_counters: true });
                    return true;
                }
            }
            _ => {}
        }
        false
    }

    /// Takes the processes out that were found since the last call.
    pub fn take_unattached(&mut self) -> Vec<Unattached> {
        std::mem::take(&mut self.unattached)
    }
}

#[cfg(test)]
mod tests {
    use super::{Attachments, CREATION_TIME, Unattached};
    use crate::perf::event::Event;

    #[test]
    fn the_first_thread_that_an_attached_one_creates_is_attached_to() {
        let mut attachments = Attachments::default();
        attachments.note_attached(vec![1, 2], 100);
        let fork = |parent_tid| Event::Fork { pid: 7, tid: 8, parent_pid: 1, parent_tid };
        assert!(!attachments.note_event(110, &fork(1)));
        // It has inherited its counters, as those of later creations.
        attachments.note_event(120, &fork(1));
        attachments.note_event(120, &fork(3));
        attachments.note_event(100 + CREATION_TIME, &fork(2));
        assert_eq!(
            attachments.take_unattached(),
            [Unattached { pid: 7, tid: 8, since: 110, has_lost_counters: false }]
        );
        assert_eq!(attachments.take_unattached(), []);
    }

    #[test]
    fn a_process_that_exits_within_its_execve_but_runs_on_is_attached_to() {
        let mut attachments = Attachments::default();
        let (pid, gone) = (std::process::id(), u32::MAX);
        let exec = |pid| Event::Comm { pid, tid: pid, exec: true, comm: b"su" };
        assert!(!attachments.note_event(10, &exec(pid)));
        assert!(attachments.note_event(11, &Event::Exit { pid, tid: pid }));
        assert!(!attachments.note_event(12, &Event::Exit { pid, tid: pid }));
        assert!(!attachments.note_event(13, &exec(gone)));
        assert!(!attachments.note_event(14, &Event::Exit { pid: gone, tid: gone }));
        assert_eq!(attachments.take_unattached(), [Unattached { pid, tid: pid, since: 11, has_lost_counters: true }]);
    }
}
