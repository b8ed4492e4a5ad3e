//! The stacks of samples, as locations: what the kernel wrote, and what unwinding finds.

use super::scripts::MergedLocation;
use super::wakers::{self, WakerStack};
use super::{ANY_CPU, Recording, ThreadLabel};
use crate::perf::event::{Address, Sample, Stamp, UserState};
use crate::perf::location::Location;
use crate::perf::mappings::Mapping;
use crate::perf::objects::object::{JitMemory, Object};
use crate::perf::objects::registry::{KERNEL, UNKNOWN};
use crate::perf::objects::vsyscall::is_vsyscall;
use crate::perf::process::CommId;
use crate::perf::stop_reason::StopReason;
use crate::perf::thread_state::ThreadState;
use crate::perf::unwind::ProcessSnapshot;
use crate::profile::FrameId;
use crate::profile::stacks::{Candidate, hash_ids};

/// Number of a stack's IDs that come before its locations: the ID of the thread's name, then [`StackInfo`].
pub(super) const STACK_HEADER: usize = 2;

/// The second ID of a stack. Its bits are the event, the thread's state, and whether the stack was cut.
#[derive(Clone, Copy)]
pub(super) struct StackInfo(pub(super) u32);

impl StackInfo {
    const TRUNCATED: u32 = 1;
    const STATE_SHIFT: u32 = 1;
    const STATE_MASK: u32 = 0b111;
    const EVENT_SHIFT: u32 = 4;

    fn new(event: u32, is_truncated: bool) -> Self {
        Self(event << Self::EVENT_SHIFT | u32::from(is_truncated))
    }

    pub(super) fn is_truncated(self) -> bool {
        self.0 & Self::TRUNCATED != 0
    }

    /// Adds the state of a stack whose state is not known yet.
    pub(super) fn with_state(self, state: ThreadState) -> Self {
        Self(self.0 | state.to_number() << Self::STATE_SHIFT)
    }

    fn state(self) -> ThreadState {
        ThreadState::from_number(self.0 >> Self::STATE_SHIFT & Self::STATE_MASK)
    }

    fn event(self) -> u32 {
        self.0 >> Self::EVENT_SHIFT
    }
}

/// A distinct stack.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    /// The ID of the thread's name.
    pub comm: u32,
    /// The index of the event.
    pub event: u32,
    /// True if the stack was cut before its root.
    pub is_truncated: bool,
    /// The state of the thread.
    pub state: ThreadState,
    /// The IDs of its locations, root first.
    pub locations: &'a [u32],
    /// The IDs of the stacks of wakers.
    wakers: &'a [u32],
}

impl<'a> Stack<'a> {
    /// Iterates over the stacks of those that ended the thread's block: its waker, the waker's waker, and so on.
    pub fn wakers(&self) -> impl Iterator<Item = WakerStack<'a>> + use<'a> {
        wakers::waker_stacks(self.wakers)
    }
}

/// Number of samples that are added together, so that the cache misses of their look-ups overlap.
const PENDING_SAMPLES: usize = 64;

/// Samples whose stacks are collected but not yet looked up and added.
#[derive(Debug, Default)]
pub(in crate::perf) struct PendingSamples {
    /// The IDs of their stacks, one after the other.
    ids: Vec<u32>,
    samples: Vec<PendingSample>,
    /// A buffer for the results of the look-ups.
    candidates: Vec<Option<Candidate>>,
}

#[derive(Debug)]
struct PendingSample {
    hash: u32,
    /// The end of its stack in the IDs.
    end: usize,
    period: u64,
}

impl Recording {
    /// Queues a sample, to be added together with others.
    pub(super) fn queue_sample(&mut self, stamp: Stamp, sample: &Sample<'_>) {
        let comm = self.root_comm(stamp, Some(sample));
        let stack = self.collect_stack(comm, stamp, sample);
        let pending = &mut self.pending;
        pending.ids.extend_from_slice(&stack);
        let (hash, end) = (hash_ids(&stack), pending.ids.len());
        pending.samples.push(PendingSample { hash, end, period: sample.period });
        self.scratch = stack;
        if self.pending.samples.len() >= PENDING_SAMPLES {
            self.flush_pending_samples();
        }
    }

    /// Adds all samples that are pending.
    pub(super) fn flush_pending_samples(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.candidates.extend(pending.samples.iter().map(|sample| self.stacks.candidate(sample.hash)));
        let mut start = 0;
        for (sample, candidate) in pending.samples.drain(..).zip(pending.candidates.drain(..)) {
            let ids = &pending.ids[start..sample.end];
            let known = candidate.and_then(|candidate| self.stacks.confirm(candidate, ids));
            let stack = known.unwrap_or_else(|| self.stacks.intern_hashed(sample.hash, ids));
            self.add_to_tally(stack, 1, sample.period);
            start = sample.end;
        }
        pending.ids.clear();
        self.pending = pending;
    }

    /// Returns the ID of a sample's stack, for a sample that is to be charged later.
    pub fn intern_stack(&mut self, stamp: Stamp, sample: &Sample<'_>) -> u32 {
        let comm = self.root_comm(stamp, Some(sample));
        self.intern_stack_of_comm(comm, stamp, sample)
    }

    /// Returns the ID of a sample's stack, whose thread is known by name only.
    pub fn intern_stack_with_comm(&mut self, comm: &[u8], stamp: Stamp, sample: &Sample<'_>) -> u32 {
        let comm = self.intern_comm(comm);
        self.intern_stack_of_comm(comm, stamp, sample)
    }

    fn intern_stack_of_comm(&mut self, comm: CommId, stamp: Stamp, sample: &Sample<'_>) -> u32 {
        let ids = self.collect_stack(comm, stamp, sample);
        let stack = self.stacks.intern(&ids);
        self.scratch = ids;
        stack
    }

    /// Collects the IDs of a sample's stack: the header, then its locations.
    fn collect_stack(&mut self, comm: CommId, stamp: Stamp, sample: &Sample<'_>) -> Vec<u32> {
        self.counts.samples += 1;
        let mut ids = std::mem::take(&mut self.scratch);
        ids.clear();
        let stop = self.collect_locations(stamp, sample, &mut ids);
        self.counts.truncated.count(stop);
        self.counts.execve += u64::from(stop == StopReason::Execve);
        // Collected from the innermost location on, and stored from the root on.
        ids.extend([StackInfo::new(sample.event, stop.is_truncated()).0, comm]);
        ids.reverse();
        ids
    }

    /// Returns the ID of a stack of which nothing is known but the thread.
    pub fn intern_unknown_stack(&mut self, tid: u32, time: u64) -> u32 {
        let pid = self.processes.of_thread(tid).unwrap_or_default();
        let comm = self.root_comm(Stamp { pid, tid, time, ..Stamp::default() }, None);
        self.stacks.intern(&[comm, 0])
    }

    /// Returns the name that a thread had when a record was written, or `:TID` if it is unknown.
    pub fn thread_comm(&mut self, stamp: Stamp) -> FrameId {
        match self.processes.comm(stamp.tid, stamp.time) {
            Some(comm) => FrameId::from_index(comm),
            None => self.comms.intern(format!(":{}", stamp.tid.cast_signed()).as_bytes()),
        }
    }

    /// Returns the root frame of a thread's stack, which has labels of its sample.
    fn root_comm(&mut self, stamp: Stamp, sample: Option<&Sample<'_>>) -> CommId {
        let comm = self.thread_comm(stamp);
        if !self.options.roots.is_empty() {
            let name = self.comms.name(comm).to_vec();
            let root = self.label_root(stamp, sample, &name);
            return self.comms.intern(&root).index() as CommId;
        }
        let suffix = match self.options.thread {
            ThreadLabel::Name => return comm.index() as CommId,
            ThreadLabel::Pid => format!("-{}", stamp.pid.cast_signed()),
            ThreadLabel::Tid => format!("-{}/{}", stamp.pid.cast_signed(), stamp.tid.cast_signed()),
        };
        let name = [self.comms.name(comm), suffix.as_bytes()].concat();
        self.comms.intern(&name).index() as CommId
    }

    /// Collects the locations of a sample's stack, innermost first.
    fn collect_locations(&mut self, stamp: Stamp, sample: &Sample<'_>, locations: &mut Vec<u32>) -> StopReason {
        let user = sample.user.as_ref().filter(|_| self.options.unwind);
        self.collect_callchain(stamp, sample, user.is_none(), locations);
        let is_full = locations.len() >= self.options.max_stack || sample.branches.len() >= self.options.max_branches;
        let mut stop = if is_full { StopReason::TooDeep } else { StopReason::Root };
        self.objects.jit_code.read_jitdump(stamp.pid);
        let unwound = match user {
            Some(user) => self.collect_unwound(stamp, user, locations),
            None if sample.user.is_some() => StopReason::NoUnwindInformation,
            None => StopReason::Root,
        };
        stop = if stop == StopReason::Root { unwound } else { stop };
        if locations.is_empty() && sample.ip != 0 {
            let address = Address { value: sample.ip, in_kernel: sample.in_kernel, exact: true };
            let mapping = self.find_mapping(stamp, address);
            locations.push(self.intern_location(stamp.pid, address, mapping));
        }
        stop
    }

    /// Collects the locations of the callchain and of the branch records: of kernel code, and of user code if
    /// `with_user`.
    ///
    /// User addresses are left out if the user stack is unwound. They may still be there: if several recorders sample
    /// the same switch, the kernel may write the callchain of another one.
    fn collect_callchain(&mut self, stamp: Stamp, sample: &Sample<'_>, with_user: bool, locations: &mut Vec<u32>) {
        let version = self.processes.version(stamp.pid, stamp.time);
        for address in sample.addresses().filter(|address| address.in_kernel || with_user) {
            self.counts.user_frames += u64::from(!address.in_kernel);
            self.counts.user_stacks += u64::from(!address.in_kernel && address.exact);
            locations.push(self.location_cache.get(address, version).unwrap_or_else(|| {
                let mapping = self.find_mapping(stamp, address);
                let location = self.intern_location(stamp.pid, address, mapping);
                self.location_cache.put(address, version, location);
                location
            }));
        }
    }

    /// Unwinds the user stack, and collects its locations.
    fn collect_unwound(&mut self, stamp: Stamp, user: &UserState<'_>, locations: &mut Vec<u32>) -> StopReason {
        let (processes, objects) = (&self.processes, &self.objects);
        let (pid, running) = (stamp.pid, self.options.running);
        let snapshot = ProcessSnapshot { pid, time: stamp.time, processes, objects, running };
        let stop = self.unwinder.unwind(snapshot, user);
        if let Some(record) = user.record.filter(|record| !record.is_walked() || record.is_walk_cut()) {
            let mappings = self.unwinder.frames.iter().filter_map(|frame| frame.mapping);
            let rowless = record.rowless.and_then(|address| processes.find(pid, address, stamp.time));
            self.sparse_objects.extend(mappings.chain(rowless).map(|mapping| mapping.object));
        }
        let frames = std::mem::take(&mut self.unwinder.frames);
        let merged = match (user.record, user.scripts) {
            (Some(record), _) => self.merge_script_frames(stamp, &record, &frames, stop),
            (None, Some(scripts)) => self.merge_scripts(stamp, scripts, &frames, stop),
            (None, None) => None,
        };
        let stop = merged.as_ref().map_or(stop, |merged| merged.stop);
        let merged = merged.map(|merged| merged.locations);
        for location in merged.unwrap_or_else(|| (0..frames.len()).map(MergedLocation::Native).collect()) {
            locations.push(match location {
                MergedLocation::Native(index) => {
                    self.intern_location(stamp.pid, frames[index].address, frames[index].mapping)
                }
                MergedLocation::Script(location) => self.locations.intern(location),
            });
        }
        if let (StopReason::NoUnwindInformation, Some(last)) = (stop, frames.last()) {
            let location = self.intern_location(stamp.pid, last.address, last.mapping);
            *self.unwind_gaps.entry(self.locations.all()[location as usize].object).or_default() += 1;
        }
        self.unwinder.frames = frames;
        stop
    }

    /// Returns the stamp with the IDs of the thread that it belongs to.
    ///
    /// A thread that is being torn down has no ID any more. It is the one that exited last on its CPU, or if none has,
    /// the one that exited last on any.
    pub(super) fn with_exited_thread(&self, stamp: Stamp) -> Stamp {
        match self.last_exits.get(&stamp.cpu).or_else(|| self.last_exits.get(&ANY_CPU)) {
            Some(&(pid, tid)) if stamp.tid == u32::MAX => Stamp { pid, tid, ..stamp },
            _ => stamp,
        }
    }

    /// Returns what is mapped at a user address.
    fn find_mapping(&self, stamp: Stamp, address: Address) -> Option<Mapping> {
        if address.in_kernel { None } else { self.processes.find(stamp.pid, address.lookup(), stamp.time) }
    }

    fn intern_location(&mut self, pid: u32, address: Address, mapping: Option<Mapping>) -> u32 {
        let ip = if self.options.keep_addresses { address.value } else { 0 };
        let lookup = address.lookup();
        let (object, address) = match mapping {
            _ if address.in_kernel => (KERNEL, lookup),
            None if lookup < 4096 => (UNKNOWN, lookup),
            None if is_vsyscall(lookup) => (self.objects.intern_vsyscall(), lookup),
            // JIT code may be where no mapping was reported.
            None => (self.objects.intern_jit(pid, JitMemory::Unmapped), lookup),
            Some(mapping) => {
                let offset = (lookup - mapping.start).wrapping_add(mapping.offset);
                match self.objects.get(mapping.object) {
                    Object::Elf(elf) => (mapping.object, elf.address_of_offset(offset).unwrap_or(offset)),
                    _ => (mapping.object, lookup),
                }
            }
        };
        // Addresses in an object that has no symbols are one location.
        let address = if self.objects.may_have_symbols(object) { address } else { 0 };
        self.locations.intern(Location { object, address, ip, loaded_at: 0 })
    }

    /// Returns a stack by its ID.
    pub fn stack(&self, id: u32) -> Stack<'_> {
        let ids = self.stacks.get(id);
        let info = StackInfo(ids[1]);
        let (locations, wakers) = wakers::split_wakers(&ids[STACK_HEADER..]);
        Stack {
            comm: ids[0],
            event: info.event(),
            is_truncated: info.is_truncated(),
            state: info.state(),
            locations,
            wakers,
        }
    }
}
