//! Pairs switch-outs with switch-ins: computes how long each thread spent with each stack, from events in the order of
//! time.
//!
//! All switches are recorded, so the time that a thread ran, was blocked, and waited for a CPU is known exactly. Stacks
//! may be sampled at every switch or at some. If at some, blocks of a thread are put into buckets of about equal
//! duration (within a factor of four), and the time of a bucket is shared among the stacks that were sampled in it. A
//! bucket without stacks uses those of the nearest bucket that has any, at most 16 times as long or short. A rare long
//! block is thus never charged to frequent short ones. Run time is shared among the samples that were taken while the
//! thread ran.
//!
//! If wake-ups are recorded, a block has two parts: the thread waited until it was woken, and then waited for a CPU. The
//! last wake-up before it ran again ended the block. The wait is divided among what it was for: see [`waker_chains`].
//!
//! [`waker_chains`]: super::waker_chains

mod blocks;
mod latency;
mod slices;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use self::slices::BlockWatch;
pub use self::slices::LongBlock;
use super::block_history::{BlockHistory, PastBlock};
use super::block_time::{BlockStacks, BlockTime, multiply_ratio};
use super::parallelism::{SharedClock, SharedTime};
use super::switch_event::{Charge, SwitchEvent, SwitchEventKind, SwitchStack, TimeSelection};
use super::totals::Amount;
use super::waker_chains::{WaitPart, WakerChain, WakerChains, Wakeup};
use crate::perf::thread_state::ThreadState;

/// The time of a switch in its record differs by less from that in the record of a long block.
const MAX_CLOCK_DIFFERENCE_NS: u64 = 500_000;

/// The location of a thread, according to its latest event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CpuState {
    /// No event has told yet.
    Unknown,
    /// Created, but not run yet.
    New,
    OnCpu,
    OffCpu(Block),
}

/// A block that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    state: ThreadState,
    selected: bool,
    stack: Option<SwitchStack>,
    /// True if it has been reported as long.
    is_reported: bool,
}

impl Block {
    /// Returns a block that began before the recording. It is not reported as long: since when it lasts is not known.
    fn since_before(stack: Option<u32>) -> Self {
        let state = if stack.is_some() { ThreadState::Blocked } else { ThreadState::Asleep };
        let stack = stack.map(|stack| SwitchStack { stack, from_every_switch: true });
        Self { state, selected: true, stack, is_reported: true }
    }
}

/// Blocks of one state and of about equal duration.
#[derive(Clone, Debug, Default)]
struct DurationBucket {
    total: Amount,
    /// The blocks whose stacks are known.
    sampled: FxHashMap<BlockStacks, BlockTime>,
}

#[derive(Clone, Debug)]
struct Thread {
    state: CpuState,
    /// Time that is accounted up to now.
    accounted: u64,
    /// The stack of the switch-out to come.
    next_stack: Option<SwitchStack>,
    run_time: u64,
    /// Number of samples of each stack, taken while the thread ran.
    run_samples: FxHashMap<u32, u64>,
    /// Blocks where some stacks are not known, by state and by the logarithm of their duration to the base of four.
    buckets: BTreeMap<(ThreadState, u32), DurationBucket>,
    /// The last wake-up since it ran.
    wakeup: Option<Wakeup>,
    shared_time: SharedTime,
}

/// Pairs the switches of all threads.
#[derive(Clone, Debug)]
pub struct SwitchPairing {
    selection: TimeSelection,
    /// True if every switch up to now should have a stack. If one has none, its sample was lost.
    every_switch: bool,
    threads: FxHashMap<u32, Thread>,
    /// Threads that exited, but whose last switch may still follow.
    exited: FxHashSet<u32>,
    /// Those that exited in the slice before, if there are slices.
    exited_before: FxHashSet<u32>,
    charges: Vec<Charge>,
    chains: WakerChains,
    history: BlockHistory,
    /// The parts of a wait.
    parts: Vec<WaitPart>,
    /// True if time is charged to the slices in which it was.
    has_slices: bool,
    clock: SharedClock,
    watch: BlockWatch,
}

impl SwitchPairing {
    /// Creates a pairing that knows no thread. `every_switch` says whether the stack of every switch is sampled.
    pub fn new(selection: TimeSelection, every_switch: bool) -> Self {
        Self {
            selection,
            every_switch,
            threads: FxHashMap::default(),
            exited: FxHashSet::default(),
            exited_before: FxHashSet::default(),
            charges: Vec::new(),
            chains: WakerChains::new(selection.waker_depth),
            history: BlockHistory::default(),
            parts: Vec::new(),
            has_slices: false,
            clock: SharedClock::default(),
            watch: BlockWatch::default(),
        }
    }

    /// Returns the stacks of the wakers of a charge, the last waker first; `None` for one that is not known.
    pub fn wakers(&self, chain: WakerChain) -> impl Iterator<Item = Option<u32>> + '_ {
        self.chains.stacks(chain)
    }

    /// True if the last waker of a charge was blocked itself, and what it waited for is left out.
    pub fn is_cut(&self, chain: WakerChain) -> bool {
        self.chains.is_cut(chain)
    }

    /// Says that from now on not every switch has a stack.
    pub fn expect_missing_stacks(&mut self) {
        self.every_switch = false;
    }

    /// Returns the charges since the last call.
    pub fn take_charges(&mut self) -> Vec<Charge> {
        std::mem::take(&mut self.charges)
    }

    /// Adds the next event, in the order of time.
    pub fn add(&mut self, event: SwitchEvent) {
        let SwitchEvent { time, tid, kind } = event;
        self.clock.advance(time);
        match kind {
            SwitchEventKind::Exited => {
                self.finish_thread(tid, time);
                // It wakes those that wait for its exit later.
                self.history.exit(tid, time);
                self.exited.insert(tid);
                return;
            }
            // The ID is reused by another thread.
            SwitchEventKind::Created => self.finish_thread(tid, time),
            SwitchEventKind::Woken(_) | SwitchEventKind::Killed => {
                let waking = if let SwitchEventKind::Woken(waking) = kind { Some(waking) } else { None };
                // Nothing is known of a thread that was woken, and no more: it may also be one that is not recorded.
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.wakeup = Some(Wakeup { time, waking });
                }
                return;
            }
            _ => {}
        }
        if matches!(kind, SwitchEventKind::Created | SwitchEventKind::Exec) {
            self.exited.remove(&tid);
            self.exited_before.remove(&tid);
            if self.selection.by_switches {
                return;
            }
        } else if self.exited.contains(&tid) || self.exited_before.contains(&tid) {
            return;
        }
        let state = match kind {
            SwitchEventKind::Created => CpuState::New,
            SwitchEventKind::Existing => CpuState::Unknown,
            _ => CpuState::OnCpu,
        };
        let mut thread = self.threads.remove(&tid).unwrap_or_else(|| self.new_thread(tid, state, time));
        if self.selection.latency {
            self.update_shared_time(&mut thread, event);
        } else {
            self.update_thread(&mut thread, event);
        }
        self.threads.insert(tid, thread);
    }

    fn new_thread(&mut self, tid: u32, state: CpuState, time: u64) -> Thread {
        if self.chains.are_followed() {
            self.history.begin(tid, time);
            self.limit_history(time);
        }
        Thread::new(state, time)
    }

    fn update_thread(&mut self, thread: &mut Thread, event: SwitchEvent) {
        match event.kind {
            SwitchEventKind::Created
            | SwitchEventKind::Existing
            | SwitchEventKind::Exec
            | SwitchEventKind::Exited
            | SwitchEventKind::Woken(_)
            | SwitchEventKind::Killed => {}
            SwitchEventKind::RunSample(stack) => {
                *thread.run_samples.entry(stack).or_default() += 1;
                if thread.state == CpuState::Unknown {
                    // No switch brought it onto its CPU: it has run all the time.
                    thread.run_time += thread.advance(event.time);
                    thread.state = CpuState::OnCpu;
                }
            }
            SwitchEventKind::Asleep(stack) if thread.state == CpuState::Unknown => {
                thread.state = CpuState::OffCpu(Block::since_before(stack));
            }
            SwitchEventKind::Asleep(_) => {}
            // If two counters sample the same switch, the one that samples every switch is used.
            SwitchEventKind::SwitchSample(stack) => {
                thread.next_stack = thread.next_stack.filter(|next| next.from_every_switch).or(Some(stack));
            }
            SwitchEventKind::BlockStack { since, stack } => {
                // If switches were lost, the block may be another one.
                if let CpuState::OffCpu(block) = &mut thread.state
                    && block.stack.is_none()
                    && since.abs_diff(thread.accounted) < MAX_CLOCK_DIFFERENCE_NS
                {
                    // Those of all blocks of such a length are taken.
                    block.stack = Some(SwitchStack { stack, from_every_switch: true });
                }
            }
            SwitchEventKind::Out { preempted, selected } => {
                match thread.state {
                    CpuState::Unknown | CpuState::OnCpu => thread.run_time += thread.advance(event.time),
                    CpuState::New | CpuState::OffCpu(_) => self.charge_lost_switch(thread, event),
                }
                let state = if preempted { ThreadState::Runnable } else { ThreadState::Blocked };
                let stack = thread.next_stack.take();
                thread.state = CpuState::OffCpu(Block { state, selected, stack, is_reported: false });
            }
            SwitchEventKind::In => {
                match thread.state {
                    CpuState::OnCpu => self.charge_lost_switch(thread, event),
                    _ => self.charge_until(thread, event),
                }
                let is_new = match thread.state {
                    CpuState::Unknown => true,
                    CpuState::OffCpu(block) => block.state == ThreadState::Asleep,
                    CpuState::New | CpuState::OnCpu => false,
                };
                if is_new && self.chains.are_followed() {
                    // What it had been blocked for is not known.
                    self.history.begin(event.tid, event.time);
                }
                // If the switch of a sample was lost, the sample must not be used for the next switch.
                thread.next_stack = None;
                thread.state = CpuState::OnCpu;
            }
        }
    }

    /// Charges the time since the last event of a thread, which comes back or exits.
    fn charge_until(&mut self, thread: &mut Thread, event: SwitchEvent) {
        let nanoseconds = thread.advance(event.time);
        match thread.state {
            CpuState::OnCpu => thread.run_time += nanoseconds,
            // It has slept since before the recording began, with an unknown stack.
            CpuState::Unknown if self.selection.wall => {
                self.charge_span(event, None, ThreadState::Asleep, nanoseconds);
            }
            CpuState::New if self.selection.wall => {
                self.charge_span(event, None, ThreadState::Runnable, nanoseconds);
            }
            CpuState::Unknown | CpuState::New => {}
            CpuState::OffCpu(block) => self.charge_block(thread, event, block, nanoseconds),
        }
    }

    /// Charges the time between two switches in the same direction: the switch between them was lost.
    fn charge_lost_switch(&mut self, thread: &mut Thread, event: SwitchEvent) {
        let nanoseconds = thread.advance(event.time);
        // The first event of a thread that is known by its switches may be a switch-in.
        let is_charged = self.selection.wall || matches!(event.kind, SwitchEventKind::Out { .. });
        if is_charged && nanoseconds > 0 {
            self.charge_span(event, None, ThreadState::Lost, nanoseconds);
        }
        let start = event.time.saturating_sub(nanoseconds);
        self.add_to_history(event.tid, PastBlock { start, end: event.time, stack: None, waking: None });
    }

    /// Charges a share of the time of a thread.
    fn charge(&mut self, event: SwitchEvent, stack: Option<u32>, state: ThreadState, amount: Amount) {
        let SwitchEvent { tid, time, .. } = event;
        self.charges.push(Charge { tid, time, stack, wakers: WakerChain::NONE, state, amount, start: None });
    }

    /// Charges the time before an event.
    fn charge_span(&mut self, event: SwitchEvent, stack: Option<u32>, state: ThreadState, nanoseconds: u64) {
        let SwitchEvent { tid, time, .. } = event;
        let (amount, start) = (Amount { count: 1, nanoseconds }, Some(time.saturating_sub(nanoseconds)));
        self.charges.push(Charge { tid, time, stack, wakers: WakerChain::NONE, state, amount, start });
    }

    /// Charges all remaining time. The recording ended at `time`: blocked threads have been blocked until then.
    pub fn finish(&mut self, time: u64) {
        let mut tids: Vec<u32> = self.threads.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            self.finish_thread(tid, time);
        }
    }

    fn finish_thread(&mut self, tid: u32, time: u64) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        let event = SwitchEvent { time, tid, kind: SwitchEventKind::Exited };
        if self.selection.latency {
            return self.finish_shared_time(thread, event);
        }
        self.charge_until(&mut thread, event);
        self.charge_buckets(&thread, event);
        if self.selection.wall {
            self.charge_run_time(&thread, event);
        }
    }

    /// Shares the time of each bucket among its stacks.
    fn charge_buckets(&mut self, thread: &Thread, event: SwitchEvent) {
        for ((state, duration_class), DurationBucket { total, .. }) in &thread.buckets {
            let Some(sampled) = thread.nearest_stacks(*state, *duration_class) else {
                self.charge(event, None, state.unsampled(), *total);
                continue;
            };
            let mut sum = BlockTime::default();
            sampled.values().for_each(|time| sum += *time);
            for (stacks, time) in sampled {
                self.charge_wait(event, *stacks, *state, time.share(sum, *total), None);
            }
        }
    }

    /// Shares the run time among the samples that were taken while the thread ran.
    fn charge_run_time(&mut self, thread: &Thread, event: SwitchEvent) {
        let all_samples: u64 = thread.run_samples.values().sum();
        if all_samples == 0 && thread.run_time > 0 {
            let amount = Amount { count: 1, nanoseconds: thread.run_time };
            self.charge(event, None, ThreadState::Unsampled, amount);
        }
        for (stack, samples) in &thread.run_samples {
            let nanoseconds = multiply_ratio(thread.run_time, *samples, all_samples);
            self.charge(event, Some(*stack), ThreadState::Running, Amount { count: *samples, nanoseconds });
        }
    }
}

impl Thread {
    fn new(state: CpuState, time: u64) -> Self {
        let (run_samples, buckets) = (FxHashMap::default(), BTreeMap::new());
        let (next_stack, wakeup, shared_time) = (None, None, SharedTime::default());
        Self { state, accounted: time, next_stack, run_time: 0, run_samples, buckets, wakeup, shared_time }
    }

    /// Returns the stacks of a bucket, or of the nearest one that has any.
    fn nearest_stacks(&self, state: ThreadState, duration_class: u32) -> Option<&FxHashMap<BlockStacks, BlockTime>> {
        let class = duration_class;
        let nearest = [class, class.wrapping_sub(1), class + 1, class.wrapping_sub(2), class + 2];
        let mut buckets = nearest.iter().filter_map(|class| self.buckets.get(&(state, *class)));
        buckets.find(|bucket| !bucket.sampled.is_empty()).map(|bucket| &bucket.sampled)
    }

    /// Advances the accounted time. Returns by how much.
    fn advance(&mut self, time: u64) -> u64 {
        let elapsed = time.saturating_sub(self.accounted);
        self.accounted = self.accounted.max(time);
        elapsed
    }
}

#[cfg(test)]
mod tests;
