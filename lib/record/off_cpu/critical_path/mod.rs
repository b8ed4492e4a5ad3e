//! The critical path of a thread (`--critical-path`): what its elapsed time was for.
//!
//! The path is found from its end on, back in time. While the thread ran, or waited for a CPU, it is the path itself. Where it
//! was blocked until another thread woke it, what it waited for is what that thread had done: the path continues there at
//! the time of the wake-up, and stays there until that thread was woken itself, or created. So what a thread did while another
//! took longer is not part of the path, and the parts fill the elapsed time exactly. If an interrupt or an unknown thread ended
//! a block, the block itself is part of the path. It is the longest path through the graph of switches and wake-ups
//! (Yang and Miller, "Critical path analysis for the execution of parallel and distributed programs", 1988).
//!
//! Waits for another thread that end without a wake-up cannot be seen: spinning, polling, and messages through the
//! network.

mod spans;
mod thread_log;
mod tracker;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use rustc_hash::FxHashMap;

pub use self::thread_log::ThreadName;
use self::thread_log::{Activity, BlockEnd, ThreadLog};
pub use self::tracker::PathTracker;
use self::walk::{PathPart, walk};
use super::switch_event::{SwitchEvent, SwitchEventKind};
use super::totals::Amount;
use super::waker_chains::Waking;
use crate::diagnostics::printable;
use crate::perf::export::profile::comm_frame;
use crate::perf::thread_state::ThreadState;
use crate::profile::FrameId;

/// The largest number of steps and samples of all threads, of 40 bytes at most.
const MAX_ENTRIES: usize = 1 << 22;

/// The thread at whose end the path ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathThread {
    /// The main thread of the command or process.
    Main,
    /// The thread with this ID.
    Id(u32),
    /// The thread with this name; of several the one that lives longest.
    Named(Vec<u8>),
    /// The threads of the spans in this file: each span is a path of its own, from its end to its start.
    Spans(PathBuf),
}

/// Comes before the name of a file of spans.
const SPANS: &str = "spans:";

/// The length of the kernel's names of threads in bytes: it cuts longer ones.
const MAX_NAME: usize = 15;

impl PathThread {
    /// True if a thread with this name is meant: blanks are printed as `_`, and the kernel cuts long names.
    fn is_named(&self, name: &[u8]) -> bool {
        let Self::Named(wanted) = self else { return false };
        comm_frame(&wanted[..wanted.len().min(MAX_NAME)]) == comm_frame(name)
    }
}

impl std::fmt::Display for PathThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Main => f.write_str("main"),
            Self::Id(tid) => write!(f, "{tid}"),
            Self::Spans(file) => write!(f, "{SPANS}{}", file.display()),
            Self::Named(name) => f.write_str(&printable(&String::from_utf8_lossy(name))),
        }
    }
}

impl std::str::FromStr for PathThread {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            _ if text == "main" => Self::Main,
            _ if text.len() > SPANS.len() && text.starts_with(SPANS) => Self::Spans(text[SPANS.len()..].into()),
            Ok(tid) => Self::Id(tid),
            Err(_) => Self::Named(text.as_bytes().to_vec()),
        })
    }
}

/// Time on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCharge {
    /// The thread that the path was in.
    pub tid: u32,
    /// A time at which the thread existed.
    pub time: u64,
    /// Its stack, that of its name alone if it is not known otherwise; `None` if not even the name is known.
    pub stack: Option<u32>,
    /// The end of a block: the stack of the waker, or `None` if that is not known.
    pub waker: Option<Option<u32>>,
    /// The state that the thread was in.
    pub state: ThreadState,
    /// The number of parts or samples, and their time.
    pub amount: Amount,
}

/// The time in which a thread existed, within the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The ID of the thread.
    pub tid: u32,
    /// The time at which it was created or first seen.
    pub begin: u64,
    /// The time of its exit, or the end of the recording.
    pub end: u64,
}

impl Life {
    fn new(tid: u32, log: &ThreadLog, end: u64) -> Self {
        Self { tid, begin: log.begin, end: log.exit.unwrap_or(end) }
    }

    /// Returns its length.
    pub fn length(self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// The logs of all threads.
#[derive(Clone, Debug)]
pub struct ThreadLogs {
    /// By thread ID, the logs of all threads that had it.
    logs: FxHashMap<u32, Vec<ThreadLog>>,
    /// The threads that created others, by the others and their first instant.
    creators: FxHashMap<(u32, u64), u32>,
    entries: usize,
    max_entries: usize,
    /// Steps before this time are forgotten.
    known_since: u64,
}

impl Default for ThreadLogs {
    fn default() -> Self {
        let (logs, creators) = (FxHashMap::default(), FxHashMap::default());
        Self { logs, creators, entries: 0, max_entries: MAX_ENTRIES, known_since: 0 }
    }
}

impl ThreadLogs {
    /// Notes that a thread creates another.
    pub fn add_creation(&mut self, time: u64, tid: u32, creator: u32) {
        self.creators.insert((tid, time), creator);
    }

    /// Adds the next event, in the order of time.
    pub fn add(&mut self, event: SwitchEvent) {
        let is_wakeup = matches!(event.kind, SwitchEventKind::Woken(_));
        let logs = self.logs.entry(event.tid).or_default();
        match logs.last_mut() {
            Some(last) if event.kind != SwitchEventKind::Created => self.entries += last.add(event),
            // A thread that is not recorded may be woken, too.
            _ if is_wakeup => return,
            _ => {
                let mut log = ThreadLog::new(event);
                log.add(event);
                self.entries += log.len();
                logs.push(log);
            }
        }
        if self.entries > self.max_entries {
            self.forget_older_half();
        }
    }

    /// Forgets what was before the middle of all steps.
    fn forget_older_half(&mut self) {
        let mut starts: Vec<u64> = self.logs.values().flatten().flat_map(ThreadLog::starts).collect();
        let middle = starts.len() / 2;
        let (_, middle, _) = starts.select_nth_unstable(middle);
        self.known_since = *middle;
        for logs in self.logs.values_mut() {
            logs.retain(|log| log.exit.is_none_or(|exit| exit >= self.known_since));
            logs.iter_mut().for_each(|log| log.forget_before(self.known_since));
        }
        self.entries = self.logs.values().flatten().map(ThreadLog::len).sum();
        self.creators.retain(|(_, time), _| *time >= self.known_since);
    }

    /// Returns the log of the thread that had an ID right before a time, or began then.
    fn get(&self, tid: u32, time: u64) -> Option<&ThreadLog> {
        let logs = self.logs.get(&tid)?;
        let next = logs.partition_point(|log| log.begin < time);
        logs.get(next.saturating_sub(1))
    }

    /// Returns the thread that created another at a time.
    fn creator(&self, tid: u32, time: u64) -> Option<u32> {
        self.creators.get(&(tid, time)).copied()
    }

    /// Names the present thread with an ID.
    pub fn set_name(&mut self, tid: u32, name: ThreadName) {
        if let Some(log) = self.logs.get_mut(&tid).and_then(|logs| logs.last_mut()) {
            log.name = Some(name);
        }
    }

    /// Iterates over the threads that have no name yet.
    pub fn unnamed(&self) -> impl Iterator<Item = u32> {
        self.logs.iter().filter(|(_, logs)| logs.last().is_some_and(|log| log.name.is_none())).map(|(tid, _)| *tid)
    }

    /// Ends the blocks of threads that were woken, and have not run since when the recording ends.
    pub fn finish(&mut self, end: u64) {
        // A thread leaves its CPU after its exit, too.
        self.logs.values_mut().flatten().for_each(|log| log.end_block(end));
    }

    /// Returns each thread's last name and life until `end`.
    pub fn lives(&self, end: u64) -> impl Iterator<Item = (FrameId, Life)> {
        let logs = self.logs.iter().flat_map(|(tid, logs)| logs.iter().map(|log| (*tid, log)));
        logs.filter_map(move |(tid, log)| Some((log.name?.comm, Life::new(tid, log, end))))
    }

    /// Returns the life until `end` of the thread that had an ID at a time.
    pub fn life_at(&self, tid: u32, time: u64, end: u64) -> Option<Life> {
        self.get(tid, time).map(|log| Life::new(tid, log, end))
    }

    /// Returns how long a thread has been blocked at the end of `life`, if it has not exited.
    pub fn last_block(&self, life: Life) -> Option<u64> {
        let log = self.get(life.tid, life.end).filter(|log| log.exit.is_none())?;
        let (step, _) = log.step_before(life.end)?;
        let is_open = matches!(step.activity, Activity::Blocked(_, BlockEnd::Open) | Activity::Asleep);
        is_open.then(|| life.end - step.start)
    }

    /// Returns what the critical path of a thread consists of, from its beginning, or the start of the recording, to its exit or
    /// the end of the recording. The charges add up to that time.
    pub fn charge_path(&self, life: Life, start: u64) -> Vec<PathCharge> {
        self.charge_path_by_time(life, start, &[]).swap_remove(0)
    }

    /// Divides what [`ThreadLogs::charge_path`] returns by time, at `bounds` in ascending order: one more part than there are
    /// bounds.
    pub fn charge_path_by_time(&self, life: Life, start: u64, bounds: &[u64]) -> Vec<Vec<PathCharge>> {
        let Life { tid, begin, end } = life;
        let start = start.max(begin);
        let known = self.known_since.clamp(start, end.max(start));
        let mut collected = vec![CollectedCharges::default(); bounds.len() + 1];
        let mut add = |part: &PathPart, log: Option<&ThreadLog>| {
            for (range, time) in divide_time(part.time.clone(), bounds) {
                collected[range].add(&PathPart { time, ..part.clone() }, log);
            }
        };
        walk(self, tid, known..end, &mut add);
        if known > start {
            add(&PathPart { tid, activity: Activity::Blocked(None, BlockEnd::Unseen), time: start..known }, None);
        }
        collected.into_iter().map(|charges| charges.finish(self)).collect()
    }

    /// Returns how much of the time from `start` on is forgotten, in nanoseconds.
    pub fn forgotten_since(&self, start: u64) -> u64 {
        self.known_since.saturating_sub(start)
    }
}

/// Divides a time at bounds in ascending order. Returns the number of bounds up to each part, and the part.
fn divide_time(time: Range<u64>, bounds: &[u64]) -> impl Iterator<Item = (usize, Range<u64>)> {
    let first = bounds.partition_point(|bound| *bound <= time.start);
    let last = bounds.partition_point(|bound| *bound < time.end);
    (first..=last).map(move |range| {
        let from = if range == first { time.start } else { bounds[range - 1] };
        let until = if range == last { time.end } else { bounds[range] };
        (range, from..until)
    })
}

/// The charges of a part of a path.
#[derive(Clone, Debug, Default)]
struct CollectedCharges {
    charges: Vec<PathCharge>,
    /// The time that each thread ran.
    runs: BTreeMap<u32, RunTime>,
}

impl CollectedCharges {
    fn add(&mut self, part: &PathPart, log: Option<&ThreadLog>) {
        if part.activity == Activity::Running {
            self.runs.entry(part.tid).or_default().add(part, log);
        } else {
            self.charges.push(charge_part(part));
        }
    }

    /// Returns the charges. Those without a stack get that of the name of their thread.
    fn finish(self, logs: &ThreadLogs) -> Vec<PathCharge> {
        let mut charges = self.charges;
        self.runs.iter().for_each(|(tid, run)| run.charge(*tid, &mut charges));
        for charge in charges.iter_mut().filter(|charge| charge.stack.is_none()) {
            let name = logs.get(charge.tid, charge.time).and_then(|log| log.name);
            charge.stack = name.map(|name| name.stack);
        }
        charges
    }
}

/// Returns the charge of a part in which the thread did not run.
fn charge_part(part: &PathPart) -> PathCharge {
    let (stack, waker, state) = match part.activity {
        Activity::Running => (None, None, ThreadState::Unsampled),
        Activity::Runnable(Some(stack)) => (Some(stack), None, ThreadState::Runnable),
        Activity::Runnable(None) => (None, None, ThreadState::UnsampledRunnable),
        Activity::Asleep => (None, None, ThreadState::Asleep),
        Activity::Lost => (None, None, ThreadState::Lost),
        Activity::Blocked(stack, end) => {
            let waker = match end {
                BlockEnd::Open | BlockEnd::Killed => None,
                BlockEnd::Unseen => Some(None),
                BlockEnd::Woken(Waking { stack, .. }) => Some(Some(stack)),
            };
            let state = if stack.is_some() { ThreadState::Blocked } else { ThreadState::UnsampledBlocked };
            (stack, waker, state)
        }
    };
    let amount = Amount { count: 1, nanoseconds: part.time.end - part.time.start };
    PathCharge { tid: part.tid, time: part.time.end, stack, waker, state, amount }
}

/// The time that a thread ran on the path, and its samples.
#[derive(Clone, Debug, Default)]
struct RunTime {
    /// The end of the last part.
    time: u64,
    nanoseconds: u64,
    /// Number of samples of each stack.
    samples: BTreeMap<u32, u64>,
}

impl RunTime {
    fn add(&mut self, part: &PathPart, log: Option<&ThreadLog>) {
        self.time = self.time.max(part.time.end);
        self.nanoseconds += part.time.end - part.time.start;
        for sample in log.iter().flat_map(|log| log.samples(part.time.clone())) {
            *self.samples.entry(sample.stack).or_default() += 1;
        }
    }

    /// Divides the time among the samples. Nothing is left over.
    fn charge(&self, tid: u32, charges: &mut Vec<PathCharge>) {
        let (time, all) = (self.time, self.samples.values().sum::<u64>());
        let (mut count, mut charged) = (0, 0);
        for (stack, samples) in &self.samples {
            count += samples;
            let until = super::multiply_ratio(self.nanoseconds, count, all);
            let amount = Amount { count: *samples, nanoseconds: until - charged };
            charged = until;
            charges.push(PathCharge {
                tid,
                time,
                stack: Some(*stack),
                waker: None,
                state: ThreadState::Running,
                amount,
            });
        }
        if all == 0 && self.nanoseconds > 0 {
            let amount = Amount { count: 1, nanoseconds: self.nanoseconds };
            charges.push(PathCharge { tid, time, stack: None, waker: None, state: ThreadState::Unsampled, amount });
        }
    }
}
