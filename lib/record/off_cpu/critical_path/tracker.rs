//! Records what the critical path of a thread needs, and charges it to a recording.

use super::{Life, PathCharge, PathThread, ThreadLogs, ThreadName};
use crate::diagnostics::printable;
use crate::markers;
use crate::perf::event::Stamp;
use crate::perf::recording::Recording;
use crate::profile::FrameId;
use crate::record::off_cpu::switch_event::{SwitchEvent, SwitchEventKind};

/// A part of this size of a path that is a wait without an end is told.
const TOLD_SHARE: u64 = 10;

/// The largest number of names in a message.
const MAX_NAMES: usize = 5;

/// The events of all threads, for the path of one.
#[derive(Clone, Debug)]
pub struct PathTracker {
    thread: PathThread,
    /// The ID of the main thread.
    main: Option<u32>,
    /// The logs of all threads.
    pub logs: ThreadLogs,
    /// The threads that had the wanted name at a time, perhaps before another name.
    named: Vec<(u32, u64)>,
}

impl PathTracker {
    /// Creates a tracker without events. `main` is the ID of the main thread of a single process.
    pub fn new(thread: PathThread, main: Option<u32>) -> Self {
        Self { thread, main, logs: ThreadLogs::default(), named: Vec::new() }
    }

    /// Adds the next event, in the order of time.
    pub fn add(&mut self, event: SwitchEvent, recording: &mut Recording) {
        let SwitchEvent { time, tid, kind } = event;
        match kind {
            SwitchEventKind::Exited => self.name_thread(tid, time, recording),
            SwitchEventKind::Created | SwitchEventKind::Existing if matches!(self.thread, PathThread::Named(_)) => {
                let comm = recording.thread_comm(Stamp { tid, time, ..Stamp::default() });
                self.add_name(tid, time, recording.comms.name(comm));
            }
            _ => {}
        }
        self.logs.add(event);
    }

    /// Notes that a thread has a name from a time on.
    pub fn add_name(&mut self, tid: u32, time: u64, name: &[u8]) {
        if self.thread.is_named(name) {
            self.named.push((tid, time));
        }
    }

    fn name_thread(&mut self, tid: u32, time: u64, recording: &mut Recording) {
        let comm = recording.thread_comm(Stamp { tid, time, ..Stamp::default() });
        self.logs.set_name(tid, ThreadName { comm, stack: recording.intern_unknown_stack(tid, time) });
    }

    /// Returns the thread that is meant.
    fn find(&self, end: u64, recording: &Recording) -> Option<Life> {
        let tid = match &self.thread {
            PathThread::Main => self.main?,
            PathThread::Id(tid) => *tid,
            PathThread::Spans(_) => return None,
            PathThread::Named(_) => {
                let now = self.logs.lives(end).filter(|(comm, _)| self.thread.is_named(recording.comms.name(*comm)));
                let now = now.map(|(_, life)| life);
                let before = self.named.iter().filter_map(|(tid, time)| self.logs.life_at(*tid, *time, end));
                return longest(now).or_else(|| longest(before));
            }
        };
        self.logs.life_at(tid, end, end)
    }

    /// Returns the names of other threads, those that live longest first.
    fn names(&self, but: Option<u32>, end: u64, recording: &Recording) -> Vec<String> {
        let mut lives: Vec<(FrameId, Life)> = self.logs.lives(end).filter(|(_, life)| Some(life.tid) != but).collect();
        lives.sort_by_key(|(comm, life)| (std::cmp::Reverse(life.length()), *comm));
        let mut names: Vec<String> = Vec::new();
        for (comm, _) in lives {
            let name = printable(&String::from_utf8_lossy(recording.comms.name(comm)));
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Charges the path from `start` to `end`. Returns warnings about parts of it that are not known.
    ///
    /// # Errors
    /// The reason why there is no path.
    pub fn finish(&mut self, start: u64, end: u64, recording: &mut Recording) -> Result<Vec<String>, String> {
        self.logs.finish(end);
        for tid in self.logs.unnamed().collect::<Vec<u32>>() {
            self.name_thread(tid, end, recording);
        }
        if let PathThread::Spans(file) = &self.thread {
            let warnings = self.logs.charge_spans(file, start..end, recording);
            return warnings.map_err(|reason| format!("--critical-path {}: {reason}", self.thread));
        }
        let Some(life) = self.find(end, recording) else {
            let names = join_names(&self.names(None, end, recording));
            let recorded = if names.is_empty() { String::new() } else { format!("; recorded: {names}") };
            return Err(format!("--critical-path {}: no recorded thread has this name or ID{recorded}", self.thread));
        };
        self.logs.charge_path(life, start).iter().for_each(|charge| add_charge(charge, &[], recording));
        let forgotten = self.logs.forgotten_since(start);
        let forgotten = (forgotten > 0).then(|| {
            let seconds = forgotten as f64 / 1e9;
            format!("--critical-path: the first {seconds:.3} s are not known: too many switches to keep all")
        });
        Ok(self.describe_last_block(life, start, recording).into_iter().chain(forgotten).collect())
    }

    /// Says that the thread waits at the end, if that is much of its path: nothing tells for whom.
    fn describe_last_block(&self, life: Life, start: u64, recording: &Recording) -> Option<String> {
        let waited = self.logs.last_block(life)?.min(life.end - start);
        let names = join_names(&self.names(Some(life.tid), life.end, recording));
        let others = if names.is_empty() { String::new() } else { format!(", or name another thread: {names}") };
        (waited > life.end.saturating_sub(start.max(life.begin)) / TOLD_SHARE).then(|| {
            let seconds = waited as f64 / 1e9;
            format!(
                "--critical-path {}: it waits at the end, for {seconds:.3} s so far, so the path is not known; \
                 record until the wait ends{others}",
                self.thread
            )
        })
    }
}

fn longest(lives: impl Iterator<Item = Life>) -> Option<Life> {
    lives.max_by_key(|life| (life.length(), life.tid))
}

/// Returns the first names, and the number of others.
fn join_names(names: &[String]) -> String {
    let (first, others) = names.split_at(names.len().min(MAX_NAMES));
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    first.join(", ") + &more
}

/// Adds a charge to a recording, below root frames, of which the outermost is the first.
pub(super) fn add_charge(charge: &PathCharge, roots: &[&[u8]], recording: &mut Recording) {
    let PathCharge { tid, time, stack, waker, state, amount } = *charge;
    let stack = stack.unwrap_or_else(|| recording.intern_unknown_stack(tid, time));
    let stack = roots.iter().rev().fold(stack, |stack, root| recording.intern_below_root(root, stack));
    let waker = waker.map(|waker| waker.unwrap_or_else(|| recording.intern_waker_marker(markers::UNKNOWN)));
    recording.charge(stack, waker.as_slice(), state, amount.since(None));
}
