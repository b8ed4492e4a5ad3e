//! The processes whose side-band records are used.

use rustc_hash::FxHashSet;

use crate::perf::event::{Event, Stamp};

/// The processes whose side-band records are used, where those of other processes may be reported too.
#[derive(Debug)]
pub struct Followed {
    processes: FxHashSet<u32>,
    /// True if the processes that they create are followed too.
    with_children: bool,
}

impl Followed {
    /// Follows these processes.
    pub fn new(processes: impl IntoIterator<Item = u32>, with_children: bool) -> Self {
        Self { processes: processes.into_iter().collect(), with_children }
    }

    /// True if a side-band record is of a process that is followed, or will be.
    pub fn includes(&mut self, stamp: Stamp, event: &Event<'_>) -> bool {
        match event {
            Event::Fork { pid, parent_pid, .. } => {
                let is_wanted = self.processes.contains(parent_pid) && (self.with_children || pid == parent_pid);
                if is_wanted {
                    self.processes.insert(*pid);
                }
                is_wanted
            }
            Event::Mmap(mmap) => self.processes.contains(&mmap.pid),
            Event::Comm { pid, .. } | Event::Exit { pid, .. } => self.processes.contains(pid),
            _ => self.processes.contains(&stamp.pid),
        }
    }

    /// Forgets a process that is gone.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }
}

#[cfg(test)]
mod tests {
    use super::Followed;
    use crate::perf::event::{Event, Stamp};

    fn fork(pid: u32, parent_pid: u32) -> Event<'static> {
        Event::Fork { pid, tid: pid + 10, parent_pid, parent_tid: parent_pid }
    }

    #[test]
    fn a_process_that_is_gone_is_not_followed() {
        let mut followed = Followed::new([1], true);
        assert!(followed.includes(Stamp::default(), &fork(2, 1)));
        assert!(followed.includes(Stamp::default(), &fork(4, 2)));
        followed.forget(2);
        // Its ID belongs to the child of somebody else.
        assert!(!followed.includes(Stamp::default(), &fork(2, 3)));
        assert!(!followed.includes(Stamp::default(), &Event::Exit { pid: 2, tid: 2 }));
    }

    #[test]
    fn threads_alone_are_followed_without_children() {
        let mut followed = Followed::new([1], false);
        assert!(!followed.includes(Stamp::default(), &fork(2, 1)));
        assert!(!followed.includes(Stamp::default(), &Event::Exit { pid: 2, tid: 2 }));
        assert!(followed.includes(Stamp::default(), &fork(1, 1)));
    }
}
