//! Records what the critical path of a thread needs, and charges it to a recording.

use super::{PathCharge, PathThread, ThreadLogs, ThreadName};
use crate::markers;
use crate::perf::event::Stamp;
use crate::perf::recording::Recording;
use crate::profile::FrameId;
use crate::record::off_cpu::switch_event::{SwitchEvent, SwitchEventKind};

/// The events of all threads, for the path of one.
#[derive(Clone, Debug)]
pub struct PathTracker {
    thread: PathThread,
    /// The ID of the main thread.
    main: Option<u32>,
    /// The logs of all threads.
    pub logs: ThreadLogs,
}

impl PathTracker {
    /// Creates a tracker without events. `main` is the ID of the main thread of a single process.
    pub fn new(thread: PathThread, main: Option<u32>) -> Self {
        Self { thread, main, logs: ThreadLogs::default() }
    }

    /// Adds the next event, in the order of time.
    pub fn add(&mut self, event: SwitchEvent, recording: &mut Recording) {
        if event.kind == SwitchEventKind::Exited {
            self.name_thread(event.tid, event.time, recording);
        }
        self.logs.add(event);
    }

    fn name_thread(&mut self, tid: u32, time: u64, recording: &mut Recording) {
        let comm = recording.thread_comm(Stamp { tid, time, ..Stamp::default() });
        self.logs.set_name(tid, ThreadName { comm, stack: recording.intern_unknown_stack(tid, time) });
    }

    /// Charges the path from `start` to `end`. Returns a warning if there is none, or a part of it is not known.
    pub fn finish(&mut self, start: u64, end: u64, recording: &mut Recording) -> Option<String> {
        for tid in self.logs.unnamed().collect::<Vec<u32>>() {
            self.name_thread(tid, end, recording);
        }
        let (tid, name) = match &self.thread {
            PathThread::Main => (self.main, "main".to_owned()),
            PathThread::Id(tid) => (Some(*tid), tid.to_string()),
            PathThread::Named(name) => {
                let comm = FrameId::from_index(recording.intern_comm(name));
                (self.logs.find_longest(end, comm), String::from_utf8_lossy(name).into_owned())
            }
        };
        let Some(charges) = tid.and_then(|tid| self.logs.charge_path(tid, start, end)) else {
            return Some(format!("--critical-path {name}: no recorded thread has this name or ID"));
        };
        charges.iter().for_each(|charge| add_charge(charge, recording));
        let forgotten = self.logs.forgotten_since(start);
        (forgotten > 0).then(|| {
            let seconds = forgotten as f64 / 1e9;
            format!("--critical-path: the first {seconds:.3} s are not known: too many switches to keep all")
        })
    }
}

fn add_charge(charge: &PathCharge, recording: &mut Recording) {
    let PathCharge { tid, time, stack, waker, state, amount } = *charge;
    let stack = stack.unwrap_or_else(|| recording.intern_unknown_stack(tid, time));
    let waker = waker.map(|waker| waker.unwrap_or_else(|| recording.intern_waker_marker(markers::UNKNOWN)));
    recording.charge(stack, waker.as_slice(), state, amount.since(None));
}
