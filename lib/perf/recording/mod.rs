//! A recording in the making: samples added up as stacks of addresses, to be named once at the end.

mod counts;
mod jit_reuse;
mod locations;
mod options;
mod rotate;
mod stack;

use std::time::Duration;

use rustc_hash::FxHashMap;

pub use self::counts::{Counts, Tally, Truncated};
use self::locations::{Locations, Recent};
pub use self::options::{Options, ThreadBy};
pub use self::stack::Stack;
use self::stack::Waiting;
use super::event::{Event, Mmap, Sample, Stamp};
use super::location::Location;
use super::objects::registry::Objects;
use super::process::{CommId, Ended, Mapping, Processes};
use super::unwind::{Memory, Unwinder};
use crate::markers;
use crate::profile::{FrameId, Frames, Stacks};

/// No CPU has this number.
const ANY_CPU: u32 = u32::MAX;

/// A sample kept by itself.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// When, where, for whom.
    pub stamp: Stamp,
    /// The event's own count.
    pub period: u64,
    /// Its stack's number.
    pub stack: u32,
}

/// A recording in the making.
#[derive(Debug)]
pub struct Recording {
    /// How it is kept.
    pub options: Options,
    pub(super) processes: Processes,
    /// On each CPU, and on any, the process and thread that ended last.
    pub(super) exits: FxHashMap<u32, (u32, u32)>,
    /// The files whose code ran.
    pub objects: Objects,
    /// Threads' names.
    pub comms: Frames,
    pub(super) locations: Locations,
    pub(super) stacks: Stacks,
    pub(super) unwinder: Unwinder,
    pub(super) tallies: Vec<Tally>,
    /// The samples, where they are kept by themselves.
    pub kept: Vec<Kept>,
    /// What was counted.
    pub counts: Counts,
    /// Samples that the kernel dropped, event by event.
    pub(super) lost: Vec<u64>,
    pub(super) waiting: Waiting,
    pub(super) scratch: Vec<u32>,
    pub(super) recent: Recent,
}

impl Recording {
    /// Nothing yet. `memory` reads what living threads have on their stacks beyond what was copied.
    pub fn new(options: Options, memory: Option<Box<dyn Memory>>) -> Self {
        Self {
            options,
            processes: Processes::default(),
            exits: FxHashMap::default(),
            objects: Objects::default(),
            comms: Frames::new(),
            locations: Locations::default(),
            stacks: Stacks::default(),
            unwinder: Unwinder::new(memory),
            tallies: Vec::new(),
            kept: Vec::new(),
            counts: Counts::default(),
            lost: Vec::new(),
            waiting: Waiting::default(),
            scratch: Vec::new(),
            recent: Recent::default(),
        }
    }

    /// Unwinds no stack further than so many frames.
    pub fn limit_unwinding(&mut self, frames: usize) {
        self.unwinder.max_frames = frames;
    }

    /// A sample was found that will be taken in before the next look: its thread was there by then.
    pub fn foresee(&mut self, stamp: Stamp, sample: &Sample<'_>) {
        if let Some(user) = &sample.user {
            self.unwinder.foresee(stamp.tid, stamp.time, user);
        }
    }

    /// All that was foreseen has been taken in.
    pub fn forget_sightings(&mut self) {
        self.unwinder.forget_sightings();
    }

    /// What is read of living threads from now on is of this time.
    pub fn look_again(&mut self, time: u64) {
        self.unwinder.look_again(time);
    }

    /// How long samples can wait for the rest of their stacks; `None` if each is to be taken at once.
    pub fn patience(&self) -> Option<Duration> {
        self.unwinder.patience()
    }

    /// How soon living threads are to be looked at again, whether or not there are samples.
    pub fn second_look(&self) -> Option<Duration> {
        self.unwinder.second_look()
    }

    /// Takes in what a record says. Of what a sample refers to, everything must have been taken in before it.
    pub fn take(&mut self, stamp: Stamp, event: Event<'_>) {
        match event {
            Event::Sample(sample) => self.sample(stamp, &sample),
            Event::Mmap(mmap) => self.map(&mmap, stamp.time),
            Event::Comm { pid, tid, exec, comm } => {
                if exec {
                    self.processes.exec(pid, stamp.time);
                }
                self.name(tid, comm, stamp.time);
            }
            Event::Fork { pid, tid, parent_pid, parent_tid } => {
                self.processes.fork((pid, tid), (parent_pid, parent_tid), stamp.time);
            }
            Event::Exit { pid, tid } => {
                self.exits.insert(stamp.cpu, (pid, tid));
                self.exits.insert(ANY_CPU, (pid, tid));
                self.processes.exit(pid, tid, stamp.time);
            }
            Event::Throttle => self.counts.throttled += 1,
            Event::Lost(_) | Event::Switch { .. } | Event::Other => {}
        }
    }

    /// A mapping that stands from `time` on.
    pub fn map(&mut self, mmap: &Mmap<'_>, time: u64) {
        if !mmap.executable || mmap.pid == u32::MAX {
            return;
        }
        let Some(end) = mmap.start.checked_add(mmap.length) else { return };
        let object = self.objects.open_mapping(mmap);
        self.processes.map(mmap.pid, Mapping { start: mmap.start, end, offset: mmap.offset, object }, time);
    }

    /// A thread's name from `time` on.
    pub fn name(&mut self, tid: u32, comm: &[u8], time: u64) {
        let comm = self.comm_of(comm);
        self.processes.name(tid, comm, time);
    }

    /// The number of a thread's name.
    fn comm_of(&mut self, name: &[u8]) -> CommId {
        // A thread may call itself nothing, or blanks, which no text could show.
        let name = Some(name.trim_ascii()).filter(|name| !name.is_empty()).unwrap_or(markers::UNKNOWN);
        self.comms.intern(name).index() as CommId
    }

    /// Whether a thread's name is known; or need not be, since it has no number any more.
    pub fn knows_thread(&self, tid: u32) -> bool {
        tid == u32::MAX || self.processes.comm(tid, u64::MAX - 1).is_some()
    }

    /// Whether anything is known of what a process has mapped.
    pub fn knows_process(&self, pid: u32) -> bool {
        self.processes.knows(pid)
    }

    /// A thread's name from the beginning of time, unless another is known.
    pub fn name_if_new(&mut self, tid: u32, comm: &[u8]) {
        if self.processes.comm(tid, u64::MAX - 1).is_none() {
            self.name(tid, comm, 0);
        }
    }

    /// The threads that ended before `time` and run no more; but those stay of which nameless samples may still come.
    pub fn over_before(&mut self, time: u64, runs: impl Fn(u32) -> bool) -> Vec<Ended> {
        let exits = &self.exits;
        self.processes.over_before(time, |tid| exits.values().any(|(_, last)| *last == tid) || runs(tid))
    }

    /// No sample older than `time` will come, nor of those that are `over`.
    pub fn forget_before(&mut self, time: u64, over: Vec<Ended>) {
        self.processes.forget_before(time, over);
    }

    fn sample(&mut self, stamp: Stamp, sample: &Sample<'_>) {
        let stamp = self.with_owner(stamp);
        let is_kept = self.options.each_sample || self.objects.jit_code.jitdump(stamp.pid).is_some();
        if !is_kept {
            self.add_later(stamp, sample);
            return;
        }
        let number = self.intern_stack(stamp, sample);
        self.add(number, (1, sample.period));
        // What code was where at its time is known at the end.
        self.kept.push(Kept { stamp, period: sample.period, stack: number });
    }

    fn add(&mut self, stack: u32, (samples, period): (u64, u64)) {
        if stack as usize >= self.tallies.len() {
            self.tallies.resize(stack as usize + 1, Tally::default());
        }
        let tally = &mut self.tallies[stack as usize];
        tally.samples += samples;
        tally.period += u128::from(period);
    }

    /// The distinct places in the code.
    pub fn locations(&self) -> &[Location] {
        self.locations.all()
    }

    /// What the samples of each stack add up to, by the stack's number.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// The sum of the periods of an event's samples.
    pub fn total_period(&self, event: u32) -> u128 {
        let of_event = |(number, _): &(usize, &Tally)| self.stack(*number as u32).event == event;
        self.tallies.iter().enumerate().filter(of_event).map(|(_, tally)| tally.period).sum()
    }

    /// The thread's name of a stack.
    pub fn comm(&self, stack: &Stack<'_>) -> &[u8] {
        self.comms.name(FrameId::from_index(stack.comm))
    }

    /// What the counters know of samples that were dropped, event by event: more than the ring, in which the kernel tells
    /// of losses only before the next record.
    pub fn set_lost(&mut self, by_event: Option<Vec<u64>>) {
        self.lost = by_event.unwrap_or_else(|| vec![self.counts.lost]);
        self.counts.lost = self.lost.iter().sum();
    }
}
