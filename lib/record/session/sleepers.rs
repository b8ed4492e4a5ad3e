//! Threads that sleep since before the recording: no switch shows with which stack they left their CPU.
//!
//! They are examined twice. A thread that was off its CPU both times, with the same number of switches, has not run meanwhile:
//! what was read of its stack between belongs together. Counters record switches by then, so if it has run, its own switches
//! tell what it did.

use rustc_hash::FxHashSet;

use super::RecordingSession;
use crate::perf::event::{Callchain, Sample, Stamp, UserState};
use crate::perf::recording::{Recording, SchedulerCode};
use crate::perf::runtimes::sleeping::{SleepingThread, WalkedScripts};
use crate::perf::unwind;
use crate::record::event_record::EventRecord;
use crate::record::target::Target;
use crate::record::{clock, procfs, sys};

/// The largest part of a stack that is read, in bytes: that which the BPF program reads of others.
const MAX_STACK: u64 = 1 << 20;

/// A thread and the number of its switches up to now.
type Switches = (u32, u64);

/// Buffers that are used again for each thread.
#[derive(Default)]
struct Buffers {
    kernel: Vec<u64>,
    callchain: Vec<u8>,
    stack: Vec<u8>,
}

impl RecordingSession {
    /// Adds the threads of the target that sleep, with their stacks if the BPF program finds them.
    pub(super) fn add_sleeping_threads(&mut self, target: &Target) {
        if self.reader.switches.as_ref().is_none_or(|switches| !switches.includes_sleepers) {
            return;
        }
        let found = self.reader.sampler.as_mut().and_then(|sampler| sampler.find_sleepers());
        let sleepers = match found {
            Some(records) => self.sleepers_with_stacks(&records),
            None => sleepers_in_proc(&target.running_threads()),
        };
        if let Some(switches) = &mut self.reader.switches {
            sleepers.into_iter().for_each(|(tid, time, stack)| switches.add_sleeper(tid, time, stack));
        }
    }

    /// Returns the threads of these records that have slept on, each with a time at which it slept and the ID of its stack.
    fn sleepers_with_stacks(&mut self, records: &[EventRecord]) -> Vec<(u32, u64, Option<u32>)> {
        let mut buffers = Buffers::default();
        let stacks: Vec<SleeperStack> =
            records.iter().map(|record| intern_stack(record, &mut buffers, &mut self.recording)).collect();
        let time = clock::now();
        let again = self.reader.sampler.as_mut().and_then(|sampler| sampler.find_sleepers());
        let again: FxHashSet<Switches> = again.iter().flatten().map(|record| (record.tid, record.subject)).collect();
        let mut sleepers = Vec::new();
        let mut unread = 0;
        for (record, stack) in records.iter().zip(stacks) {
            if again.contains(&(record.tid, record.subject)) {
                unread += u64::from(stack.is_unread);
                sleepers.push((record.tid, time, Some(stack.id)));
            }
        }
        if let Some(switches) = &mut self.reader.switches {
            switches.totals.unread_stacks += unread;
        }
        sleepers
    }
}

/// The stack of a thread that sleeps.
struct SleeperStack {
    id: u32,
    /// True if its memory could not be read.
    is_unread: bool,
}

/// Finds the stack of a thread that sleeps, whose user part is read from its memory.
fn intern_stack(record: &EventRecord, buffers: &mut Buffers, recording: &mut Recording) -> SleeperStack {
    let Buffers { kernel, callchain, stack } = buffers;
    kernel.clear();
    kernel.extend(recording.options.scheduler.as_ref().map(SchedulerCode::placeholder));
    kernel.extend_from_slice(&record.kernel);
    let callchain = Callchain::write(kernel, &[], callchain);
    let sample = record.sample();
    let thread = SleepingThread { pid: record.pid, tid: record.tid, pointer: record.program };
    let scripts = recording.walk_sleeping(thread);
    let mut is_unread = false;
    let user = sample.user.map(|user| {
        let sp = unwind::read_position(&user).map_or(0, |(_, sp)| sp);
        let size = record.nanoseconds.min(MAX_STACK) as usize;
        stack.resize(size, 0);
        let read = sys::read_process_memory(record.pid, sp, stack);
        is_unread = read == 0 && size > 0;
        UserState {
            stack: Some(&stack[..read.min(size)]),
            is_copy_short: read < size,
            scripts: scripts.as_ref().map(WalkedScripts::stack),
            ..user
        }
    });
    let stamp = Stamp { pid: record.pid, tid: record.tid, time: clock::now(), ..Stamp::default() };
    let id = recording.intern_stack(stamp, &Sample { callchain, user, ..sample });
    SleeperStack { id, is_unread }
}

/// Returns the number of switches of each of some threads that sleeps.
fn switches_of_sleepers(tids: &[u32]) -> impl Iterator<Item = Switches> + '_ {
    tids.iter().filter_map(|tid| Some((*tid, procfs::switches_of_sleeper(*tid)?)))
}

/// Returns those of some threads that sleep, as `/proc` tells, without their stacks.
fn sleepers_in_proc(tids: &[u32]) -> Vec<(u32, u64, Option<u32>)> {
    let first: Vec<Switches> = switches_of_sleepers(tids).collect();
    let time = clock::now();
    let again: FxHashSet<Switches> = switches_of_sleepers(tids).collect();
    first.into_iter().filter(|thread| again.contains(thread)).map(|(tid, _)| (tid, time, None)).collect()
}
