//! The stacks of samples: what the kernel wrote and what unwinding finds, as places in the code.

use super::{ANY_CPU, Recording, ThreadBy};
use crate::perf::event::{Address, Sample, Stamp};
use crate::perf::location::Location;
use crate::perf::objects::object::Object;
use crate::perf::objects::registry::{KERNEL, UNKNOWN};
use crate::perf::process::{CommId, Mapping};
use crate::perf::stop_reason::StopReason;
use crate::perf::thread_state::ThreadState;
use crate::perf::unwind::ProcessSnapshot;
use crate::profile::FrameId;
use crate::profile::stacks::{Candidate, hash_ids};

/// The number of a stack's ids that come before its addresses: the thread's name; the event, and whether it is cut.
pub(super) const HEAD: usize = 2;

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
    pub state: ThreadState,
    /// Its places, root first.
    pub places: &'a [u32],
}

/// So many samples are added together: a look-up waits for memory that is far away, and several wait at the same time.
const TOGETHER: usize = 64;

/// Samples that are to be added.
#[derive(Debug, Default)]
pub(in crate::perf) struct Waiting {
    ids: Vec<u32>,
    samples: Vec<WaitingSample>,
    candidates: Vec<Option<Candidate>>,
}

#[derive(Debug)]
struct WaitingSample {
    hash: u32,
    end: usize,
    period: u64,
}

impl Recording {
    /// Adds a sample, some time.
    pub(super) fn add_later(&mut self, stamp: Stamp, sample: &Sample<'_>) {
        let comm = self.thread(stamp);
        let stack = self.stack_of(comm, stamp, sample);
        let waiting = &mut self.waiting;
        waiting.ids.extend_from_slice(&stack);
        let (hash, end) = (hash_ids(&stack), waiting.ids.len());
        waiting.samples.push(WaitingSample { hash, end, period: sample.period });
        self.scratch = stack;
        if self.waiting.samples.len() >= TOGETHER {
            self.add_waiting();
        }
    }

    /// Adds all samples that wait.
    pub(super) fn add_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.candidates.extend(waiting.samples.iter().map(|sample| self.stacks.candidate(sample.hash)));
        let mut start = 0;
        for (sample, candidate) in waiting.samples.drain(..).zip(waiting.candidates.drain(..)) {
            let ids = &waiting.ids[start..sample.end];
            let known = candidate.and_then(|candidate| self.stacks.confirm(candidate, ids));
            let number = known.unwrap_or_else(|| self.stacks.intern_hashed(sample.hash, ids));
            self.add(number, (1, sample.period));
            start = sample.end;
        }
        waiting.ids.clear();
        self.waiting = waiting;
    }

    /// The number of a sample's stack, for one that is to be charged later.
    pub fn intern_stack(&mut self, stamp: Stamp, sample: &Sample<'_>) -> u32 {
        let comm = self.thread(stamp);
        self.intern_stack_of(comm, stamp, sample)
    }

    /// The number of the stack of a thread that leaves its CPU, and of what is left of it should the thread have come back
    /// before now: some of it may have been read from its living stack.
    pub fn intern_leaving(&mut self, stamp: Stamp, sample: &Sample<'_>) -> (u32, u32) {
        self.unwinder.is_switch_out = true;
        let stack = self.intern_stack(stamp, sample);
        self.unwinder.is_switch_out = false;
        let living = if sample.user.is_some() { self.unwinder.live_frames } else { 0 };
        if living == 0 {
            return (stack, stack);
        }
        let mut ids = std::mem::take(&mut self.scratch);
        let was_cut = ids[1] & CUT != 0;
        ids.drain(HEAD..HEAD + living);
        ids[1] |= CUT;
        let certain = self.stacks.intern(&ids);
        self.scratch = ids;
        (if was_cut { certain } else { stack }, certain)
    }

    /// The number of the stack of some thread of that name, whichever.
    pub fn intern_stack_by_name(&mut self, name: &[u8], stamp: Stamp, sample: &Sample<'_>) -> u32 {
        let comm = self.comm_of(name);
        self.intern_stack_of(comm, stamp, sample)
    }

    fn intern_stack_of(&mut self, comm: CommId, stamp: Stamp, sample: &Sample<'_>) -> u32 {
        let stack = self.stack_of(comm, stamp, sample);
        let number = self.stacks.intern(&stack);
        self.scratch = stack;
        number
    }

    /// The ids of a sample's stack: what stands in [`HEAD`], then its places.
    fn stack_of(&mut self, comm: CommId, stamp: Stamp, sample: &Sample<'_>) -> Vec<u32> {
        self.counts.samples += 1;
        let mut stack = std::mem::take(&mut self.scratch);
        stack.clear();
        let end = self.find_stack(stamp, sample, &mut stack);
        self.counts.truncated.count(end);
        stack.extend([sample.event << EVENT_SHIFT | if end == StopReason::Root { 0 } else { CUT }, comm]);
        stack.reverse();
        stack
    }

    /// The number of a stack of which nothing is known but the thread's name.
    pub fn intern_bare(&mut self, tid: u32, time: u64) -> u32 {
        let comm = self.thread(Stamp { tid, time, ..Stamp::default() });
        self.stacks.intern(&[comm, 0])
    }

    /// Charges a stack with so many blocks or samples of so many nanoseconds, in a state.
    pub fn charge(&mut self, stack: u32, state: ThreadState, (count, nanoseconds): (u64, u64)) {
        let mut ids = std::mem::take(&mut self.scratch);
        ids.clear();
        ids.extend_from_slice(self.stacks.get(stack));
        ids[1] |= state.number() << 1;
        let number = self.stacks.intern(&ids);
        self.scratch = ids;
        self.add(number, (count, nanoseconds));
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
    fn find_stack(&mut self, stamp: Stamp, sample: &Sample<'_>, stack: &mut Vec<u32>) -> StopReason {
        let state = self.processes.state(stamp.pid, stamp.time);
        // Where several recorders take samples of a switch, the kernel gives some of them the callchain of another's, in
        // which all stands that is unwound here.
        let is_wanted = |address: &Address| address.in_kernel || sample.user.is_none();
        for address in sample.addresses().filter(is_wanted) {
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
        let mut end = if is_full { StopReason::TooDeep } else { StopReason::Root };
        self.objects.jit_code.read_jitdump(stamp.pid);
        if let Some(user) = &sample.user {
            let (processes, objects) = (&self.processes, &self.objects);
            let moment = ProcessSnapshot { pid: stamp.pid, tid: stamp.tid, time: stamp.time, processes, objects };
            let unwound = self.unwinder.unwind(moment, user);
            self.counts.new_callers += u64::from(self.unwinder.has_new_callers());
            end = if end == StopReason::Root { unwound } else { end };
            for index in 0..self.unwinder.frames.len() {
                let step = self.unwinder.frames[index];
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
    pub(super) fn with_owner(&self, stamp: Stamp) -> Stamp {
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
            None => (self.objects.intern_jit(pid, false), lookup),
            Some(mapping) => {
                let offset = (lookup - mapping.start).wrapping_add(mapping.offset);
                match self.objects.get(mapping.object) {
                    Object::Elf(elf) => (mapping.object, elf.address_of_offset(offset).unwrap_or(offset)),
                    _ => (mapping.object, lookup),
                }
            }
        };
        let address = if self.objects.may_have_symbols(object) { address } else { 0 };
        self.locations.intern(Location { object, address, ip, since: 0 })
    }

    /// What is known of a stack.
    pub fn stack(&self, number: u32) -> Stack<'_> {
        let ids = self.stacks.get(number);
        Stack {
            comm: ids[0],
            event: ids[1] >> EVENT_SHIFT,
            is_cut: ids[1] & CUT != 0,
            state: ThreadState::of((ids[1] & STATE) >> 1),
            places: &ids[HEAD..],
        }
    }
}
