//! A live recording or a `perf.data` file: samples added up as stacks of locations, which are named once at the end.

mod counts;
mod history;
mod jit_reuse;
mod locations;
mod options;
mod renumber;
mod root_labels;
mod rotate;
mod scripts;
mod sleepers;
mod stack;
mod wakers;

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

pub use self::counts::{Counts, Tally, Truncated};
use self::history::History;
use self::locations::{LocationCache, Locations};
pub use self::options::{Options, ScriptFrameOptions, ThreadLabel};
pub use self::renumber::StackRenumbering;
use self::root_labels::Cgroups;
pub use self::root_labels::{RootLabel, RootLabels, SEPARATOR as ROOT_SEPARATOR};
pub use self::sleepers::SchedulerCode;
use self::stack::PendingSamples;
pub use self::stack::Stack;
pub use self::wakers::{ChargedTime, WakerStack};
use super::event::{Event, Mmap, Sample, Stamp};
use super::location::Location;
use super::mappings::Mapping;
use super::objects::object::{Object, ObjectId};
use super::objects::registry::Objects;
use super::process::{CommId, Processes, ThreadExit};
use super::runtime::Runtime;
use super::runtimes::processes::{InterpreterDescription, Interpreters};
use super::thread_context::{ThreadContexts, VariableWords};
use super::unwind::Unwinder;
use crate::markers;
use crate::profile::{FrameId, Frames, Stacks};

/// The key of all CPUs together. No CPU has this number.
const ANY_CPU: u32 = u32::MAX;

/// The process ID of mappings of the kernel.
const KERNEL_PID: u32 = u32::MAX;

/// A sample that is kept.
#[derive(Clone, Copy, Debug)]
pub struct SampleRecord {
    /// The time, the thread and the CPU of the sample.
    pub stamp: Stamp,
    /// The sample's period.
    pub period: u64,
    /// The ID of its stack.
    pub stack: u32,
}

/// A recording of samples, as stacks of locations.
#[derive(Debug)]
pub struct Recording {
    /// The options of the recording.
    pub options: Options,
    pub(super) processes: Processes,
    /// The process and the thread that exited last, by CPU and for [`ANY_CPU`].
    pub(super) last_exits: FxHashMap<u32, (u32, u32)>,
    /// The objects whose code ran.
    pub objects: Objects,
    /// The names of threads.
    pub comms: Frames,
    pub(super) locations: Locations,
    pub(super) stacks: Stacks,
    pub(super) unwinder: Unwinder,
    /// The sum of the samples of each stack, by its ID.
    pub(super) tallies: Vec<Tally>,
    /// The samples that are kept: all if the options say so, else those of processes with a jitdump.
    pub sample_records: Vec<SampleRecord>,
    /// The counts of lost, skipped and truncated samples, and of other problems.
    pub counts: Counts,
    /// Number of samples that the kernel dropped, by event.
    pub(super) lost: Vec<u64>,
    pub(super) pending: PendingSamples,
    /// A buffer for the IDs of a stack; reused to save allocations.
    pub(super) scratch: Vec<u32>,
    pub(super) location_cache: LocationCache,
    /// Objects of stacks that the BPF program did not walk to their root: it had no rows for some of them.
    pub(super) sparse_objects: FxHashSet<ObjectId>,
    /// Number of stacks that end in each object, because its code has no unwind information.
    pub(super) unwind_gaps: FxHashMap<ObjectId, u64>,
    /// The runtimes of processes that have generated code.
    pub(super) runtimes: FxHashMap<u32, Runtime>,
    /// Objects that were closed, whose numbers may be given to others.
    pub(super) removed_objects: Vec<ObjectId>,
    /// The interpreters of processes.
    pub(super) interpreters: Interpreters,
    /// The cgroups of processes, if they are shown.
    cgroups: Cgroups,
    /// The contexts of threads, if they are shown.
    thread_contexts: ThreadContexts,
    /// The slices before the present one, if the recording keeps the last ones only.
    history: Option<History>,
}

impl Recording {
    /// Creates an empty recording.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            processes: Processes::default(),
            last_exits: FxHashMap::default(),
            objects: Objects::default(),
            comms: Frames::new(),
            locations: Locations::default(),
            stacks: Stacks::default(),
            unwinder: Unwinder::default(),
            tallies: Vec::new(),
            sample_records: Vec::new(),
            counts: Counts::default(),
            lost: Vec::new(),
            pending: PendingSamples::default(),
            scratch: Vec::new(),
            location_cache: LocationCache::default(),
            sparse_objects: FxHashSet::default(),
            unwind_gaps: FxHashMap::default(),
            runtimes: FxHashMap::default(),
            removed_objects: Vec::new(),
            interpreters: Interpreters::default(),
            cgroups: Cgroups::default(),
            thread_contexts: ThreadContexts::default(),
            history: None,
        }
    }

    /// Sets the maximum number of frames per unwound stack.
    pub fn set_max_frames(&mut self, frames: usize) {
        self.unwinder.max_frames = frames;
    }

    /// Handles an event. All events that a sample depends on must have been handled before it.
    pub fn handle_event(&mut self, stamp: Stamp, event: Event<'_>) {
        self.cgroups.note_event(&event);
        self.thread_contexts.note_event(&event);
        match event {
            Event::Sample(sample) => self.handle_sample(stamp, &sample),
            Event::Mmap(mmap) => self.map(&mmap, stamp.time),
            Event::Comm { pid, tid, exec, comm } => {
                if exec {
                    self.processes.exec(pid, stamp.time);
                }
                self.set_comm(tid, comm, stamp.time);
            }
            Event::Fork { pid, tid, parent_pid, parent_tid } => {
                self.counts.new_threads += 1;
                self.processes.fork((pid, tid), (parent_pid, parent_tid), stamp.time);
            }
            Event::Exit { pid, tid } => {
                self.last_exits.insert(stamp.cpu, (pid, tid));
                self.last_exits.insert(ANY_CPU, (pid, tid));
                self.processes.exit(pid, tid, stamp.time);
            }
            Event::Throttle => self.counts.throttled += 1,
            Event::Lost(_) | Event::Switch { .. } | Event::Other => {}
        }
    }

    /// Adds a mapping of a user process that exists from `time` on, if it is executable.
    pub fn map(&mut self, mmap: &Mmap<'_>, time: u64) {
        if !mmap.executable || mmap.pid == KERNEL_PID {
            return;
        }
        let Some(end) = mmap.start.checked_add(mmap.length) else { return };
        let object = self.objects.open_mapping_of_child(mmap, self.processes.ancestors(mmap.pid));
        let Mmap { start, offset, writable: is_writable, .. } = *mmap;
        self.processes.map(mmap.pid, Mapping { start, end, offset, object, is_writable }, time);
    }

    /// Iterates over the mappings that a process has now, by their addresses.
    pub fn mappings(&self, pid: u32) -> impl Iterator<Item = Mapping> + '_ {
        self.processes.mappings(pid)
    }

    /// Returns the description of a process for the BPF program that walks script frames. `None` if it runs no interpreter
    /// that is known.
    pub fn describe_interpreter(&mut self, pid: u32) -> Option<InterpreterDescription> {
        let mappings: Vec<Mapping> = self.processes.mappings(pid).collect();
        let (memory, with_tasks) = (self.memory(pid), self.options.roots.has_task());
        self.interpreters.describe(&mappings, &self.objects, memory, with_tasks)
    }

    /// Describes for the BPF program where the threads of a process publish their contexts. `None` if they do not.
    pub fn describe_thread_context(&mut self, pid: u32) -> Option<VariableWords> {
        let mappings: Vec<Mapping> = self.processes.mappings(pid).collect();
        let memory = self.memory(pid);
        self.thread_contexts.describe(&mappings, &self.objects, memory)
    }

    /// True if a process runs an interpreter that is known.
    pub fn runs_interpreter(&mut self, pid: u32) -> bool {
        self.interpreters.find(self.processes.mappings(pid), &self.objects).is_some()
    }

    /// True if the threads of a process publish their contexts.
    pub fn publishes_contexts(&mut self, pid: u32) -> bool {
        let mappings: Vec<Mapping> = self.processes.mappings(pid).collect();
        self.thread_contexts.has_variable(&mappings, &self.objects)
    }

    /// True if a process that was met publishes the contexts of its threads.
    pub fn has_thread_contexts(&self) -> bool {
        self.thread_contexts.is_published
    }

    /// Returns the path of a file that has the variable with the contexts of threads, but does not export it.
    pub fn hidden_thread_context(&self) -> Option<&[u8]> {
        self.thread_contexts.hidden_in.as_deref()
    }

    /// Returns the interpreters that were met and cannot be walked, in words.
    pub fn unsupported_interpreters(&self) -> impl Iterator<Item = &str> {
        self.interpreters.unsupported()
    }

    /// Returns the interpreters that were met and do not tell which task a thread runs, in words.
    pub fn interpreters_without_tasks(&self) -> impl Iterator<Item = &str> {
        self.interpreters.without_tasks()
    }

    /// Takes out the objects of stacks that the BPF program did not walk to their root.
    pub fn take_sparse_objects(&mut self) -> FxHashSet<ObjectId> {
        std::mem::take(&mut self.sparse_objects)
    }

    /// Opens a program that no process has mapped yet.
    pub fn open_program(&mut self, path: &Path) -> ObjectId {
        let path = path.as_os_str().as_encoded_bytes();
        let pid = std::process::id();
        let mmap = Mmap {
            pid,
            start: 0,
            length: 0,
            offset: 0,
            inode: None,
            build_id: None,
            executable: true,
            writable: false,
            path,
        };
        self.objects.open_mapping(&mmap)
    }

    /// Takes out the objects that were closed.
    pub fn take_removed_objects(&mut self) -> Vec<ObjectId> {
        std::mem::take(&mut self.removed_objects)
    }

    /// Names a thread from `time` on.
    pub fn set_comm(&mut self, tid: u32, comm: &[u8], time: u64) {
        let comm = self.intern_comm(comm);
        self.processes.set_comm(tid, comm, time);
    }

    /// Returns the ID of a thread's name.
    pub fn intern_comm(&mut self, name: &[u8]) -> CommId {
        // A thread may have an empty name, or one of blanks, which no text format could show.
        let name = Some(name.trim_ascii()).filter(|name| !name.is_empty()).unwrap_or(markers::UNKNOWN);
        self.comms.intern(name).index() as CommId
    }

    /// True if a thread's name is known, or if the thread has no ID any more.
    pub fn knows_thread(&self, tid: u32) -> bool {
        tid == u32::MAX || self.processes.comm(tid, u64::MAX - 1).is_some()
    }

    /// True if a mapping of a process is known.
    pub fn knows_process(&self, pid: u32) -> bool {
        self.processes.contains(pid)
    }

    /// Names a thread from the start of the recording on, unless a name is known.
    pub fn set_initial_comm(&mut self, tid: u32, comm: &[u8]) {
        if self.processes.comm(tid, u64::MAX - 1).is_none() {
            self.set_comm(tid, comm, 0);
        }
    }

    /// Names a thread from `time` on, if it has another name then.
    pub fn update_comm(&mut self, tid: u32, comm: &[u8], time: u64) {
        let comm = self.intern_comm(comm);
        if self.processes.comm(tid, time) != Some(comm) {
            self.processes.set_comm(tid, comm, time);
        }
    }

    /// Removes and returns the threads that exited before `time` and do not run any more.
    ///
    /// The thread that exited last on a CPU stays: samples without a thread ID may still belong to it.
    pub fn take_exited_before(&mut self, time: u64, is_running: impl Fn(u32) -> bool) -> Vec<ThreadExit> {
        let last_exits = &self.last_exits;
        self.processes
            .take_exited_before(time, |tid| last_exits.values().any(|(_, last)| *last == tid) || is_running(tid))
    }

    /// Drops the mappings and names that only samples before `time`, or samples of the `exited` threads, can refer to.
    pub fn forget_before(&mut self, time: u64, exited: Vec<ThreadExit>) {
        self.processes.forget_before(time, exited);
    }

    fn handle_sample(&mut self, stamp: Stamp, sample: &Sample<'_>) {
        let stamp = self.with_exited_thread(stamp);
        // Samples of a process with a jitdump are kept because it is known only at the end which code ran at their time.
        let is_kept = self.options.keep_samples || self.objects.jit_code.jitdump(stamp.pid).is_some();
        if !is_kept {
            self.queue_sample(stamp, sample);
            return;
        }
        let stack = self.intern_stack(stamp, sample);
        self.add_to_tally(stack, 1, sample.period);
        self.sample_records.push(SampleRecord { stamp, period: sample.period, stack });
    }

    fn add_to_tally(&mut self, stack: u32, samples: u64, period: u64) {
        if stack as usize >= self.tallies.len() {
            self.tallies.resize(stack as usize + 1, Tally::default());
        }
        let tally = &mut self.tallies[stack as usize];
        tally.samples += samples;
        tally.period += u128::from(period);
    }

    /// The distinct locations, by ID.
    pub fn locations(&self) -> &[Location] {
        self.locations.all()
    }

    /// The sum of the samples of each stack, by its ID.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// Iterates over the stacks of an event.
    pub fn event_tallies(&self, event: u32) -> impl Iterator<Item = (Stack<'_>, &Tally)> {
        let stacks = self.tallies.iter().enumerate().map(|(id, tally)| (self.stack(id as u32), tally));
        stacks.filter(move |(stack, _)| stack.event == event)
    }

    /// Returns the sum of an event's samples.
    pub fn total(&self, event: u32) -> Tally {
        self.event_tallies(event).fold(Tally::default(), |sum, (_, tally)| Tally {
            samples: sum.samples + tally.samples,
            period: sum.period + tally.period,
        })
    }

    /// Returns the number of stacks that end in each object because its code has no unwind information, the most first.
    pub fn unwind_gaps(&self) -> Vec<(&Object, u64)> {
        let mut gaps: Vec<_> = self.unwind_gaps.iter().collect();
        gaps.sort_unstable_by_key(|(id, stacks)| (std::cmp::Reverse(**stacks), **id));
        gaps.into_iter().map(|(id, stacks)| (self.objects.get(*id), *stacks)).collect()
    }

    /// Returns the runtime of a process that has generated code, if it is a known one.
    pub fn runtime(&self, pid: u32) -> Option<Runtime> {
        self.runtimes.get(&pid).copied()
    }

    /// Returns the processes that have generated code with a runtime.
    pub fn processes_with(&self, runtime: Runtime) -> Vec<u32> {
        let found = self.runtimes.iter().filter(|(_, found)| **found == runtime);
        let mut pids: Vec<u32> = found.map(|(pid, _)| *pid).collect();
        pids.sort_unstable();
        pids
    }

    /// Finds the runtimes of the processes that have generated code.
    fn find_runtimes(&self) -> FxHashMap<u32, Runtime> {
        let processes = self.objects.jit.keys().filter_map(|(pid, _)| {
            let mut objects = self.processes.mappings(*pid).map(|mapping| self.objects.get(mapping.object));
            Some((*pid, objects.find_map(|object| Runtime::from_path(object.path()))?))
        });
        processes.collect()
    }

    /// Returns the name of a stack's thread.
    pub fn comm(&self, stack: &Stack<'_>) -> &[u8] {
        self.comms.name(FrameId::from_index(stack.comm))
    }

    /// Sets the number of lost samples by event, as read from the counters.
    ///
    /// The counters also know the losses after the last record, which no record in the ring reports. `by_event` is
    /// `None` if the kernel does not count losses: the losses that the ring reports are then those of the first event.
    pub fn set_lost(&mut self, by_event: Option<Vec<u64>>) {
        self.lost = by_event.unwrap_or_else(|| vec![self.counts.lost]);
        self.counts.lost = self.lost.iter().sum();
    }
}
