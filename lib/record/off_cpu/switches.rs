//! Charges the time of threads from records of their context switches and samples of their stacks.

use std::sync::{Arc, OnceLock};
use std::thread::Builder;

use rustc_hash::FxHashMap;

use super::critical_path::PathTracker;
use super::interrupts::{KernelFunctions, WakerContext};
use super::rate_control::RateControl;
use super::switch_event::{Charge, SwitchEvent, SwitchEventKind, SwitchStack, TimeSelection};
use super::switch_pairing::{LongBlock, SwitchPairing};
use super::totals::StateTotals;
use super::waker_chains::Waking;
use super::{CounterRole, DENSE_SWITCHES_PER_SECOND, OffCpuOptions, SPARSE_PERIOD};
use crate::markers;
use crate::perf::event::{Callchain, Event, Sample, Stamp};
use crate::perf::recording::{Recording, StackRenumbering};
use crate::record::event_record::{EventKind, EventRecord};
use crate::record::target::Target;

/// A record is in its ring this long after it was stamped, at the latest.
const MAX_RECORD_LATENCY_NS: u64 = 10_000_000;

/// A switch from one thread to another takes this long at most.
const MAX_SWITCH_NS: u64 = 5_000;

/// The stack of a long block is used this long before the record that has it: before the block ends, and after it began, because
/// long blocks take twice as long.
const BEFORE_END_OF_BLOCK_NS: u64 = 500_000;

/// Processes all context switches of a recording.
#[derive(Debug)]
pub struct SwitchTracker {
    roles: Vec<CounterRole>,
    pairing: SwitchPairing,
    /// Events that may still be preceded by others, in the order in which they were read.
    pending: Vec<SwitchEvent>,
    /// The recorder's own process, whose switches are left out.
    own_pid: u32,
    /// Time counts from here on.
    start: u64,
    /// Events up to this time have been processed.
    processed_until: u64,
    /// The last switch-out on each CPU.
    last_out: FxHashMap<u32, SwitchOut>,
    /// The CPUs on which the recorded blocks begin; empty for all.
    cpus: Vec<u32>,
    /// True if threads are charged that sleep since before the recording.
    pub includes_sleepers: bool,
    /// True if threads that the target creates are recorded too.
    includes_children: bool,
    rate_control: Option<RateControl>,
    /// True if only the time is charged for which threads could have run.
    run_queue_only: bool,
    /// Tells interrupts from threads, and the parts of kernel stacks.
    kernel: Arc<OnceLock<KernelFunctions>>,
    /// The path of one thread, which is charged instead of the time of all, if that is wanted.
    path: Option<PathTracker>,
    /// A buffer for the callchain of a waker.
    callchain: Vec<u8>,
    /// The properties of all blocks, without their sums.
    pub totals: StateTotals,
}

/// A switch-out: which thread left its CPU, and when.
#[derive(Clone, Copy, Debug)]
struct SwitchOut {
    tid: u32,
    time: u64,
}

impl SwitchTracker {
    /// Creates a tracker that knows no thread yet.
    pub(in crate::record) fn new(options: &OffCpuOptions, cpus: Vec<u32>, target: &Target) -> Self {
        let (min_block, max_block) = options.block_bounds();
        let OffCpuOptions { wall, latency, waker_depth, .. } = *options;
        // A process may enter a cgroup with all its mappings: those of all processes are recorded.
        let by_switches = matches!(target, Target::Cgroup(_));
        let selection = TimeSelection { wall, latency, min_block, max_block, waker_depth, by_switches };
        let roles = options.roles();
        // The CPU on which they left it is not known.
        let includes_sleepers = options.includes_sleepers(target) && cpus.is_empty();
        let mut totals = StateTotals::new(options);
        totals.includes_sleepers = includes_sleepers || matches!(target, Target::Command(_));
        let rate_control = options.period.is_none().then(|| RateControl::new(DENSE_SWITCHES_PER_SECOND));
        Self {
            pairing: SwitchPairing::new(selection, roles.contains(&CounterRole::EverySwitch)),
            roles,
            pending: Vec::new(),
            start: 0,
            processed_until: 0,
            own_pid: std::process::id(),
            last_out: FxHashMap::default(),
            includes_sleepers,
            includes_children: target.includes_children(),
            cpus,
            rate_control,
            run_queue_only: options.run_queue_only,
            kernel: Arc::new(OnceLock::new()),
            path: None,
            callchain: Vec::new(),
            totals,
        }
    }

    /// Looks the functions of the kernel up, by which the BPF program's stacks of switches and wake-ups are understood, if it takes
    /// any. It takes long: a thread of its own does so, before there is anything to read.
    pub(in crate::record) fn prepare_kernel(&self, options: &OffCpuOptions) {
        if options.latency || options.period == Some(1) && options.waker_depth.is_none() {
            return;
        }
        let kernel = Arc::clone(&self.kernel);
        // Without the thread, the first stack waits for it.
        let _ = Builder::new().spawn(move || {
            kernel.get_or_init(KernelFunctions::of_running_kernel);
        });
    }

    /// Charges the critical path of one thread, instead of the time of all.
    pub(in crate::record) fn follow_path(&mut self, path: PathTracker) {
        self.path = Some(path);
        self.totals.is_path = true;
    }

    /// Adds a thread that existed when the recording began.
    pub(in crate::record) fn add_existing_thread(&mut self, tid: u32, time: u64) {
        self.pending.push(SwitchEvent { time, tid, kind: SwitchEventKind::Existing });
    }

    /// Adds a thread that sleeps since before the recording, with this stack, if that is known. `time` is a time at which it
    /// slept.
    pub(in crate::record) fn add_sleeper(&mut self, tid: u32, time: u64, stack: Option<u32>) {
        self.totals.earlier_blocks += u64::from(stack.is_some());
        self.pending.push(SwitchEvent { time, tid, kind: SwitchEventKind::Asleep(stack) });
    }

    /// Begins to count time. What happened before says which threads run, and with which stacks others are blocked: it takes a
    /// while until the counters of all threads are enabled.
    pub(in crate::record) fn start(&mut self, time: u64) {
        self.start = time;
    }

    /// Adds a record that is not a sample.
    pub(in crate::record) fn add_event(&mut self, stamp: Stamp, event: &Event<'_>) {
        match (event, &mut self.path) {
            (Event::Fork { tid, parent_tid, .. }, Some(path)) => path.logs.add_creation(stamp.time, *tid, *parent_tid),
            (Event::Comm { tid, comm, .. }, Some(path)) => path.add_name(*tid, stamp.time, comm),
            _ => {}
        }
        let (tid, kind) = match *event {
            Event::Switch { out: true, preempted } => {
                (stamp.tid, SwitchEventKind::Out { preempted, selected: self.is_selected(stamp.cpu) })
            }
            Event::Switch { .. } => (stamp.tid, SwitchEventKind::In),
            Event::Fork { tid, .. } if self.includes_children => (tid, SwitchEventKind::Created),
            Event::Comm { tid, exec: true, .. } => (tid, SwitchEventKind::Exec),
            Event::Exit { tid, .. } => (tid, SwitchEventKind::Exited),
            _ => return,
        };
        if let (SwitchEventKind::Out { .. }, Some(rate_control)) = (kind, &mut self.rate_control) {
            rate_control.count(1);
        }
        let time = self.accounted_time(stamp, kind);
        self.push_pending(Stamp { time, ..stamp }, tid, kind);
    }

    fn is_selected(&self, cpu: u32) -> bool {
        self.cpus.is_empty() || self.cpus.contains(&cpu)
    }

    /// Returns the time at which an event takes effect. A switch-in takes effect when the previous thread left the CPU:
    /// the kernel accounts the work of the switch, which includes ours, to the thread that comes.
    fn accounted_time(&mut self, stamp: Stamp, kind: SwitchEventKind) -> u64 {
        let previous = match kind {
            SwitchEventKind::Out { .. } => {
                self.last_out.insert(stamp.cpu, SwitchOut { tid: stamp.tid, time: stamp.time });
                None
            }
            SwitchEventKind::In => self.last_out.remove(&stamp.cpu),
            _ => None,
        };
        match previous {
            Some(out) if out.tid != stamp.tid && stamp.time.saturating_sub(out.time) < MAX_SWITCH_NS => out.time,
            _ => stamp.time,
        }
    }

    /// Adds a sample, whose `event` is the index of its counter's event.
    pub(in crate::record) fn add_sample(&mut self, stamp: Stamp, sample: &Sample<'_>, recording: &mut Recording) {
        if self.is_ignored(stamp) {
            return;
        }
        let role = self.roles.get(sample.event as usize).copied().unwrap_or(CounterRole::Running);
        let sample = Sample { event: 0, ..*sample };
        let kind = if role == CounterRole::Running {
            SwitchEventKind::RunSample(recording.intern_stack(stamp, &sample))
        } else {
            let stack = recording.intern_stack(stamp, &sample);
            SwitchEventKind::SwitchSample(SwitchStack { stack, from_every_switch: role == CounterRole::EverySwitch })
        };
        self.push_pending(stamp, stamp.tid, kind);
    }

    /// Adds the stack of a switch, or of a long block that ends, which the BPF program has taken. The sample contains its user
    /// stack.
    pub(in crate::record) fn add_switch_stack(
        &mut self,
        stamp: Stamp,
        event: &EventRecord,
        sample: Sample<'_>,
        recording: &mut Recording,
    ) {
        let kernel = self.kernel.get_or_init(KernelFunctions::of_running_kernel).trim_switch(&event.kernel);
        let sample = Sample { callchain: Callchain::write(kernel, &[], &mut self.callchain), ..sample };
        let stack = recording.intern_stack(stamp, &sample);
        let (time, kind) = match event.kind {
            EventKind::LongBlock => {
                let since = event.subject;
                (stamp.time.saturating_sub(BEFORE_END_OF_BLOCK_NS), SwitchEventKind::BlockStack { since, stack })
            }
            _ => (stamp.time, SwitchEventKind::SwitchSample(SwitchStack { stack, from_every_switch: false })),
        };
        self.push_pending(Stamp { time, ..stamp }, stamp.tid, kind);
    }

    /// Adds a wake-up. The sample contains the user stack of the waker, or of the thread that an interrupt interrupted.
    pub(in crate::record) fn add_waking(
        &mut self,
        stamp: Stamp,
        waking: &EventRecord,
        sample: Sample<'_>,
        recording: &mut Recording,
    ) {
        let WakerContext { addresses, interrupt } =
            self.kernel.get_or_init(KernelFunctions::of_running_kernel).examine(&waking.kernel);
        let user = sample.user.filter(|_| interrupt.is_none());
        let sample = Sample { callchain: Callchain::write(addresses, &[], &mut self.callchain), user, ..sample };
        // The idle task has no name of its own.
        let name = interrupt.or((stamp.tid == 0).then_some(&b"swapper"[..]));
        let stack = match name {
            Some(name) => recording.intern_stack_with_comm(name, stamp, &sample),
            None => recording.intern_stack(stamp, &sample),
        };
        let waker = name.is_none().then_some(stamp.tid);
        let kind = SwitchEventKind::Woken(Waking { waker, stack });
        self.pending.push(SwitchEvent { time: stamp.time, tid: waking.subject as u32, kind });
    }

    /// Adds the end of a thread's wait because its process ends.
    pub(in crate::record) fn add_killed(&mut self, stamp: Stamp, tid: u32) {
        self.pending.push(SwitchEvent { time: stamp.time, tid, kind: SwitchEventKind::Killed });
    }

    fn push_pending(&mut self, stamp: Stamp, tid: u32, kind: SwitchEventKind) {
        if !self.is_ignored(stamp) {
            self.pending.push(SwitchEvent { time: stamp.time, tid, kind });
        }
    }

    /// True for the idle task, a thread that has all but exited, and our own threads.
    fn is_ignored(&self, stamp: Stamp) -> bool {
        stamp.tid == 0 || stamp.tid == u32::MAX || stamp.pid == self.own_pid
    }

    /// Charges the time that is known when all rings have been read up to `read_time`.
    pub(in crate::record) fn process_until(&mut self, read_time: u64, recording: &mut Recording) {
        let until = read_time.saturating_sub(MAX_RECORD_LATENCY_NS);
        self.processed_until = until;
        self.pending.sort_by_key(|event| event.time);
        let ready = self.pending.partition_point(|event| event.time < until);
        for event in self.pending.drain(..ready) {
            let event = SwitchEvent { time: event.time.max(self.start), ..event };
            match &mut self.path {
                Some(path) => path.add(event, recording),
                None => self.pairing.add(event),
            }
        }
        self.charge(recording);
    }

    /// Charges all remaining time. The recording ended at `time`.
    pub(in crate::record) fn finish(&mut self, time: u64, recording: &mut Recording) {
        self.pending.retain(|event| event.time <= time);
        self.process_until(u64::MAX, recording);
        if let Some(path) = &mut self.path {
            match path.finish(self.start, time, recording) {
                Ok(warnings) => self.totals.path_warnings = warnings,
                Err(reason) => self.totals.missing_path = Some(reason),
            }
        }
        self.pairing.finish(time);
        self.charge(recording);
        self.totals.forgotten_waits = self.pairing.forgotten_waits();
    }

    fn charge(&mut self, recording: &mut Recording) {
        for charge in self.pairing.take_charges() {
            self.add_charge(&self.pairing, charge, recording);
        }
    }

    /// Adds a charge to a recording.
    fn add_charge(&self, pairing: &SwitchPairing, charge: Charge, recording: &mut Recording) {
        let Charge { tid, time, stack, wakers, state, amount, start } = charge;
        if self.run_queue_only && !state.is_runnable() {
            return;
        }
        let stack = stack.unwrap_or_else(|| recording.intern_unknown_stack(tid, time));
        let (chain, is_cut) = (pairing.wakers(wakers), pairing.is_cut(wakers));
        let mut wakers: Vec<u32> =
            chain.map(|waker| waker.unwrap_or_else(|| recording.intern_waker_marker(markers::UNKNOWN))).collect();
        wakers.extend(is_cut.then(|| recording.intern_waker_marker(markers::MORE_WAKERS)));
        recording.charge(stack, &wakers, state, amount.since(start));
    }

    /// Watches for blocks of more than `threshold` nanoseconds, and for those in progress of more than `in_progress`.
    pub(in crate::record) fn watch_blocks(&mut self, threshold: u64, in_progress: u64) {
        self.pairing.watch_blocks(threshold, in_progress);
    }

    /// Charges time to the slices in which it was, from now on.
    pub(in crate::record) fn keep_slices(&mut self) {
        self.pairing.keep_slices();
    }

    /// Returns the long blocks since the last call, of those with the same stack the first.
    pub(in crate::record) fn take_long_blocks(&mut self, now: u64) -> Vec<LongBlock> {
        self.pairing.take_long_blocks(now)
    }

    /// Charges all that is known, except blocks that are not over. Returns the time up to which it is known.
    pub(in crate::record) fn end_slice(&mut self, recording: &mut Recording) -> u64 {
        self.pairing.end_slice(self.processed_until);
        self.charge(recording);
        self.pairing.forget_chains();
        self.processed_until
    }

    /// Returns a copy of the recording's slices, to which everything is charged, blocks that are not over included.
    pub(in crate::record) fn copy_slices(&self, recording: &mut Recording) -> Recording {
        let mut pairing = self.pairing.clone();
        pairing.finish(self.processed_until);
        let mut charges = pairing.take_charges();
        for Charge { tid, time, stack, .. } in &mut charges {
            // The copy does not know the names of threads.
            stack.get_or_insert_with(|| recording.intern_unknown_stack(*tid, *time));
        }
        let mut copy = recording.copy_slices();
        charges.into_iter().for_each(|charge| self.add_charge(&pairing, charge, &mut copy));
        copy
    }

    /// Renumbers the stacks of events that have not been charged.
    pub(in crate::record) fn renumber_stacks(&mut self, renumbering: &mut StackRenumbering) {
        for event in &mut self.pending {
            let stack = match &mut event.kind {
                SwitchEventKind::RunSample(stack)
                | SwitchEventKind::BlockStack { stack, .. }
                | SwitchEventKind::Asleep(Some(stack)) => stack,
                SwitchEventKind::SwitchSample(SwitchStack { stack, .. }) => stack,
                SwitchEventKind::Woken(Waking { stack, .. }) => stack,
                _ => continue,
            };
            *stack = renumbering.renumber(*stack);
        }
        self.pairing.renumber_stacks(renumbering);
    }

    /// Returns whether every switch is to collect its stack from now on, if that changes. `lost_samples` is the total
    /// number of lost samples.
    pub(in crate::record) fn update_rate(&mut self, now: u64, lost_samples: u64) -> Option<bool> {
        let rate_control = self.rate_control.as_mut()?;
        rate_control.set_lost_samples(lost_samples);
        let every_switch = rate_control.update(now)?;
        if !every_switch {
            self.totals.sparse_period = Some(SPARSE_PERIOD);
            self.pairing.expect_missing_stacks();
        }
        Some(every_switch)
    }

    /// Returns the index of the event that samples every switch.
    pub(in crate::record) fn every_switch_event(&self) -> Option<u32> {
        self.roles.iter().position(|role| *role == CounterRole::EverySwitch).map(|index| index as u32)
    }
}

#[cfg(test)]
mod tests;
