//! A recording in the making: samples added up as stacks of addresses, to be named once at the end.

use rustc_hash::FxHashMap;

use super::event::{Address, Event, Mmap, Sample, Stamp};
use super::object::{KERNEL, Object, Objects, UNKNOWN};
pub use super::places::Location;
use super::places::{Locations, Recent};
use super::process::{CommId, Ended, Mapping, Processes};
use super::state::State;
use super::unwind::{End, Memory, Moment, Unwinder};
use crate::profile::{FrameId, Frames, Stacks};

/// What a stack weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WeightBy {
    /// One a sample.
    #[default]
    Samples,
    /// The event's own count since the last sample: nanoseconds for cpu-clock.
    Period,
    /// The time, in microseconds, where that is what is recorded.
    #[value(skip)]
    Microseconds,
}

/// How a recording is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What a stack weighs.
    pub weight: WeightBy,
    /// Whether each sample is kept by itself, to be printed as `perf script` does.
    pub each_sample: bool,
    /// How many addresses the kernel writes of a stack at most.
    pub max_stack: usize,
    /// How many calls the CPU keeps at most.
    pub max_branches: usize,
    /// Whether each place in the code keeps its address in the process.
    pub addresses: bool,
    /// What a stack begins with.
    pub thread: ThreadBy,
}

impl Default for Options {
    fn default() -> Self {
        let (weight, thread) = (WeightBy::default(), ThreadBy::default());
        Self { weight, each_sample: false, max_stack: usize::MAX, max_branches: usize::MAX, addresses: false, thread }
    }
}

/// What threads are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadBy {
    /// By their names.
    #[default]
    Name,
    /// `NAME-PID`
    Pid,
    /// `NAME-PID/TID`
    Tid,
}

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

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Samples taken.
    pub samples: u64,
    /// Samples that the kernel dropped.
    pub lost: u64,
    /// Samples whose stack was cut before its root.
    pub truncated: Truncated,
    /// Stacks of programs that the kernel followed, and how many frames they have.
    pub user_stacks: u64,
    /// See there.
    pub user_frames: u64,
    /// How often the kernel held sampling back.
    pub throttled: u64,
    /// Side-band records that the kernel dropped: mappings or names may be missing.
    pub lost_side_band: u64,
    /// Switches that the kernel dropped.
    pub lost_switches: u64,
    /// Records that could not be understood.
    pub malformed: u64,
}

/// Stacks that were cut before their root, by what cut them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Truncated {
    /// The copy of the stack was too small.
    pub dump_too_small: u64,
    /// The rest of the stack had changed before it could be read.
    pub stale_tail: u64,
    /// Code without unwind information.
    pub no_unwind_information: u64,
    /// The kernel writes no more addresses, or we follow no more.
    pub too_deep: u64,
}

impl Truncated {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.dump_too_small + self.stale_tail + self.no_unwind_information + self.too_deep
    }

    fn count(&mut self, end: End) {
        match end {
            End::Root => {}
            End::DumpTooSmall => self.dump_too_small += 1,
            End::StaleTail => self.stale_tail += 1,
            End::NoUnwindInformation => self.no_unwind_information += 1,
            End::TooDeep => self.too_deep += 1,
        }
    }
}

/// What a stack's samples add up to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// How many samples there were.
    pub samples: u64,
    /// Their periods' sum.
    pub period: u128,
}

/// The number of a stack's ids that come before its addresses: the thread's name; the event, and whether it is cut.
pub(super) const HEAD: usize = 2;

/// No CPU has this number.
const ANY_CPU: u32 = u32::MAX;

/// The bit that says that a stack is cut; then the bits of the state; the others are the event's number.
const CUT: u32 = 1;
const STATE: u32 = 0b1110;
const EVENT_SHIFT: u32 = 4;

/// A distinct stack.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    /// The number of the thread's name.
    pub comm: u32,
    /// The number of the event.
    pub event: u32,
    /// Whether it is cut before its root.
    pub is_cut: bool,
    /// What the thread was doing.
    pub state: State,
    /// Its places, root first.
    pub places: &'a [u32],
}

/// A recording in the making.
#[derive(Debug)]
pub struct Recording {
    /// How it is kept.
    pub options: Options,
    pub(super) processes: Processes,
    /// On each CPU, the process and thread that ended last.
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
            scratch: Vec::new(),
            recent: Recent::default(),
        }
    }

    /// Unwinds no stack further than so many frames.
    pub fn limit_unwinding(&mut self, frames: usize) {
        self.unwinder.deepest = frames;
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
        let object = self.objects.of_mapping(mmap);
        self.processes.map(mmap.pid, Mapping { start: mmap.start, end, offset: mmap.offset, object }, time);
    }

    /// A thread's name from `time` on.
    pub fn name(&mut self, tid: u32, comm: &[u8], time: u64) {
        let comm = self.comm_of(comm);
        self.processes.name(tid, comm, time);
    }

    fn comm_of(&mut self, name: &[u8]) -> CommId {
        // A thread may call itself nothing, or blanks, which no text could show.
        let name = Some(name.trim_ascii()).filter(|name| !name.is_empty()).unwrap_or(b"[unknown]");
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
        let number = self.intern_stack(stamp, sample);
        self.add(number, (1, sample.period));
        // What code was where at its time is known at the end.
        if self.options.each_sample || self.objects.jit_code.dump(stamp.pid).is_some() {
            self.kept.push(Kept { stamp, period: sample.period, stack: number });
        }
    }

    /// The number of a sample's stack, for one that is to be charged later.
    pub fn intern_stack(&mut self, stamp: Stamp, sample: &Sample<'_>) -> u32 {
        let comm = self.thread(stamp);
        self.intern_stack_of(comm, stamp, sample)
    }

    /// The number of the stack of some thread of that name, whichever.
    pub fn intern_stack_by_name(&mut self, name: &[u8], stamp: Stamp, sample: &Sample<'_>) -> u32 {
        let comm = self.comm_of(name);
        self.intern_stack_of(comm, stamp, sample)
    }

    fn intern_stack_of(&mut self, comm: CommId, stamp: Stamp, sample: &Sample<'_>) -> u32 {
        self.counts.samples += 1;
        let mut stack = std::mem::take(&mut self.scratch);
        stack.clear();
        let end = self.find_stack(stamp, sample, &mut stack);
        self.counts.truncated.count(end);
        stack.extend([sample.event << EVENT_SHIFT | if end == End::Root { 0 } else { CUT }, comm]);
        stack.reverse();
        let number = self.stacks.intern(&stack);
        self.scratch = stack;
        number
    }

    /// The number of a stack of which nothing is known but the thread's name.
    pub fn intern_bare(&mut self, tid: u32, time: u64) -> u32 {
        let comm = self.thread(Stamp { tid, time, ..Stamp::default() });
        self.stacks.intern(&[comm, 0])
    }

    /// Charges a stack with so many blocks or samples of so many nanoseconds, in a state.
    pub fn charge(&mut self, stack: u32, state: State, (count, nanoseconds): (u64, u64)) {
        let mut ids = std::mem::take(&mut self.scratch);
        ids.clear();
        ids.extend_from_slice(self.stacks.get(stack));
        ids[1] |= state.number() << 1;
        let number = self.stacks.intern(&ids);
        self.scratch = ids;
        self.add(number, (count, nanoseconds));
    }

    fn add(&mut self, stack: u32, (samples, period): (u64, u64)) {
        if stack as usize >= self.tallies.len() {
            self.tallies.resize(stack as usize + 1, Tally::default());
        }
        let tally = &mut self.tallies[stack as usize];
        tally.samples += samples;
        tally.period += u128::from(period);
    }

    /// Nothing more will come. Code that was made at run time may have been replaced: each sample's places get those of
    /// its own time.
    pub fn finish(&mut self) {
        self.objects.jit_code.read_dumps();
        let mut reused = FxHashMap::default();
        for index in 0..self.kept.len() {
            let Kept { stamp, period, stack } = self.kept[index];
            let mut ids = self.stacks.get(stack).to_vec();
            let mut differs = false;
            for id in &mut ids[HEAD..] {
                let location = self.locations.all()[*id as usize];
                let Object::Jit { pid, .. } = self.objects.get(location.object) else { continue };
                let Some(dump) = self.objects.jit_code.dump(*pid) else { continue };
                if *reused.entry(*id).or_insert_with(|| dump.is_reused(location.address))
                    && let Some(function) = dump.find(location.address, stamp.time)
                {
                    *id = self.locations.intern(Location { since: function.since, ..location });
                    differs = true;
                }
            }
            if differs {
                let old = &mut self.tallies[stack as usize];
                old.samples -= 1;
                old.period -= u128::from(period);
                let number = self.stacks.intern(&ids);
                self.add(number, (1, period));
                self.kept[index].stack = number;
            }
        }
    }

    /// What a thread was called when a sample was taken.
    pub fn comm_at(&mut self, stamp: Stamp) -> FrameId {
        match self.processes.comm(stamp.tid, stamp.time) {
            Some(comm) => FrameId::from_index(comm),
            None => self.comms.intern(format!(":{}", stamp.tid.cast_signed()).as_bytes()),
        }
    }

    /// What a thread's stacks begin with.
    fn thread(&mut self, stamp: Stamp) -> CommId {
        let comm = self.comm_at(stamp);
        let suffix = match self.options.thread {
            ThreadBy::Name => return comm.index() as CommId,
            ThreadBy::Pid => format!("-{}", stamp.pid.cast_signed()),
            ThreadBy::Tid => format!("-{}/{}", stamp.pid.cast_signed(), stamp.tid.cast_signed()),
        };
        let name = [self.comms.name(comm), suffix.as_bytes()].concat();
        self.comms.intern(&name).index() as CommId
    }

    /// Finds the places on a sample's stack, innermost first: what the kernel wrote, and what unwinding finds.
    fn find_stack(&mut self, stamp: Stamp, sample: &Sample<'_>, stack: &mut Vec<u32>) -> End {
        let state = self.processes.state(stamp.pid, stamp.time);
        for address in sample.addresses() {
            let state = if address.in_kernel { Some(0) } else { state };
            self.counts.user_frames += u64::from(!address.in_kernel);
            self.counts.user_stacks += u64::from(!address.in_kernel && address.exact);
            stack.push(self.recent.get(address, state).unwrap_or_else(|| {
                let mapping = if address.in_kernel { None } else { self.find(stamp, address) };
                let place = self.locate(stamp.pid, address, mapping);
                self.recent.put(address, state, place);
                place
            }));
        }
        let is_full = stack.len() >= self.options.max_stack || sample.branches.len() >= self.options.max_branches;
        let mut end = if is_full { End::TooDeep } else { End::Root };
        self.objects.jit_code.read_dump(stamp.pid);
        if let Some(user) = &sample.user {
            let (processes, objects) = (&self.processes, &self.objects);
            let moment = Moment { pid: stamp.pid, time: stamp.time, processes, objects };
            let unwound = self.unwinder.unwind(moment, user);
            end = if end == End::Root { unwound } else { end };
            for index in 0..self.unwinder.steps.len() {
                let step = self.unwinder.steps[index];
                stack.push(self.locate(stamp.pid, step.address, step.mapping));
            }
        }
        if stack.is_empty() && sample.ip != 0 {
            let address = Address { value: sample.ip, in_kernel: sample.in_kernel, exact: true };
            let mapping = if address.in_kernel { None } else { self.find(stamp, address) };
            stack.push(self.locate(stamp.pid, address, mapping));
        }
        end
    }

    /// A thread on the last steps of its end has no number any more: it is the last that has ended on its CPU, or if none
    /// has, the last of all.
    fn with_owner(&self, stamp: Stamp) -> Stamp {
        match self.exits.get(&stamp.cpu).or_else(|| self.exits.get(&ANY_CPU)) {
            Some(&(pid, tid)) if stamp.tid == u32::MAX => Stamp { pid, tid, ..stamp },
            _ => stamp,
        }
    }

    fn find(&self, stamp: Stamp, address: Address) -> Option<Mapping> {
        self.processes.find(stamp.pid, address.lookup(), stamp.time)
    }

    fn locate(&mut self, pid: u32, address: Address, mapping: Option<Mapping>) -> u32 {
        let ip = if self.options.addresses { address.value } else { 0 };
        let lookup = address.lookup();
        let (object, address) = match mapping {
            _ if address.in_kernel => (KERNEL, lookup),
            None if lookup < 4096 => (UNKNOWN, lookup),
            // Compilers' code may lie where no mapping was reported.
            None => (self.objects.jit(pid, false), lookup),
            Some(mapping) => {
                let offset = (lookup - mapping.start).wrapping_add(mapping.offset);
                let address = match self.objects.get(mapping.object) {
                    Object::Elf(elf) => elf.address_of(offset).unwrap_or(offset),
                    Object::Jit { .. } => lookup,
                    _ => offset,
                };
                (mapping.object, address)
            }
        };
        self.locations.intern(Location { object, address, ip, since: 0 })
    }

    /// The distinct places in the code.
    pub fn locations(&self) -> &[Location] {
        self.locations.all()
    }

    /// What the samples of each stack add up to, by the stack's number.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// What is known of a stack.
    pub fn stack(&self, number: u32) -> Stack<'_> {
        let ids = self.stacks.get(number);
        Stack {
            comm: ids[0],
            event: ids[1] >> EVENT_SHIFT,
            is_cut: ids[1] & CUT != 0,
            state: State::of((ids[1] & STATE) >> 1),
            places: &ids[HEAD..],
        }
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
