//! Ends of slices, and blocks that last long: for recordings that keep the last slices only.

use rustc_hash::FxHashSet;

use super::{CpuState, SwitchEvent, SwitchEventKind, SwitchPairing};
use crate::perf::recording::StackRenumbering;
use crate::perf::thread_state::ThreadState;
use crate::record::off_cpu::waker_chains::Wakeup;

/// A block that is longer than the threshold. It may still be in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongBlock {
    /// The thread that was blocked.
    pub tid: u32,
    /// A time at which it existed.
    pub time: u64,
    /// The length until then.
    pub nanoseconds: u64,
    /// The ID of its stack. `None` if that is not known.
    pub stack: Option<u32>,
}

/// Watches for long blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockWatch {
    /// Blocks of more than this many nanoseconds are reported; `None` to report none.
    threshold: Option<u64>,
    /// Blocks in progress are reported from this many nanoseconds on: others are reported when they end, so that their wakers
    /// and their lengths are known.
    in_progress_threshold: u64,
    /// The first long block with each stack since the last [`SwitchPairing::take_long_blocks`].
    found: Vec<LongBlock>,
    /// The stacks of these blocks.
    stacks: FxHashSet<Option<u32>>,
}

impl BlockWatch {
    /// Notes a block, or a block until now. Returns true if it is long.
    pub(super) fn note(&mut self, block: LongBlock) -> bool {
        let is_long = self.threshold.is_some_and(|threshold| block.nanoseconds > threshold);
        if is_long && self.stacks.insert(block.stack) {
            self.found.push(block);
        }
        is_long
    }
}

impl SwitchPairing {
    /// Watches for blocks of more than `threshold` nanoseconds, and for those in progress of more than `in_progress`.
    pub fn watch_blocks(&mut self, threshold: u64, in_progress: u64) {
        (self.watch.threshold, self.watch.in_progress_threshold) = (Some(threshold), in_progress.max(threshold));
    }

    /// Returns the first long block of each stack since the last call. Blocks that began before the
    /// recording are left out.
    pub fn take_long_blocks(&mut self, now: u64) -> Vec<LongBlock> {
        if self.watch.threshold.is_none() {
            return Vec::new();
        }
        for (tid, thread) in &mut self.threads {
            let blocked = now.saturating_sub(thread.accounted);
            if blocked <= self.watch.in_progress_threshold {
                continue;
            }
            if let CpuState::OffCpu(block) = &mut thread.state
                && (block.state, block.selected, block.is_reported) == (ThreadState::Blocked, true, false)
                // After the wake-up it waits for a CPU.
                && thread.wakeup.is_none()
            {
                let stack = block.stack.map(|stack| stack.stack);
                block.is_reported = self.watch.note(LongBlock { tid: *tid, time: now, nanoseconds: blocked, stack });
            }
        }
        self.watch.stacks.clear();
        std::mem::take(&mut self.watch.found)
    }

    /// Charges all that does not wait for the end of a block: the time of threads on CPUs until `time`, and that of blocks
    /// without stacks of their own.
    pub fn end_slice(&mut self, time: u64) {
        // The switch of a thread that exited follows at once.
        self.exited_before = std::mem::take(&mut self.exited);
        let mut tids: Vec<u32> = self.threads.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            let Some(mut thread) = self.threads.remove(&tid) else { continue };
            let event = SwitchEvent { time, tid, kind: SwitchEventKind::Existing };
            if thread.state == CpuState::OnCpu {
                thread.run_time += thread.advance(time);
            }
            self.charge_buckets(&thread, event);
            if self.selection.wall {
                self.charge_run_time(&thread, event);
            }
            thread.buckets.clear();
            thread.run_samples.clear();
            thread.run_time = 0;
            self.threads.insert(tid, thread);
        }
    }

    /// Charges time to the slices in which it was, from now on.
    pub fn keep_slices(&mut self) {
        self.has_slices = true;
    }

    /// Forgets all chains of wakers, when everything is charged that was left at the end of a slice.
    pub fn forget_chains(&mut self) {
        self.chains.clear();
    }

    /// Renumbers the stacks of threads and wakers, when a slice has ended.
    pub fn renumber_stacks(&mut self, renumbering: &mut StackRenumbering) {
        for thread in self.threads.values_mut() {
            if let CpuState::OffCpu(block) = &mut thread.state
                && let Some(stack) = &mut block.stack
            {
                stack.stack = renumbering.renumber(stack.stack);
            }
            if let Some(next) = &mut thread.next_stack {
                next.stack = renumbering.renumber(next.stack);
            }
            if let Some(Wakeup { waking: Some(waking), .. }) = &mut thread.wakeup {
                waking.stack = renumbering.renumber(waking.stack);
            }
        }
        self.history.renumber(renumbering);
    }
}
