//! The time of blocks, and what threads waited for meanwhile.

use super::slices::LongBlock;
use super::{Block, CpuState, SwitchEvent, SwitchEventKind, SwitchPairing, Thread};
use crate::perf::thread_state::ThreadState;
use crate::record::off_cpu::block_history::PastBlock;
use crate::record::off_cpu::block_time::{BlockStacks, BlockTime};
use crate::record::off_cpu::switch_event::{Charge, SwitchStack, TimeSelection};
use crate::record::off_cpu::totals::Amount;
use crate::record::off_cpu::waker_chains::{WaitPart, WakerChain, merge_parts};

impl SwitchPairing {
    /// Charges the time of a block, which is over if a switch-in ends it.
    pub(super) fn charge_block(&mut self, thread: &mut Thread, event: SwitchEvent, block: Block, nanoseconds: u64) {
        let start = event.time.saturating_sub(nanoseconds);
        let is_over = (block.state, event.kind) == (ThreadState::Blocked, SwitchEventKind::In);
        let is_wait = is_over && self.chains.are_recorded();
        let wakeup = if is_wait { thread.wakeup.take() } else { None };
        let end = wakeup.map_or(event.time, |wakeup| wakeup.time.clamp(start, event.time));
        let waking = wakeup.and_then(|wakeup| wakeup.waking);
        let is_killed = wakeup.is_some() && waking.is_none();
        let TimeSelection { min_block, max_block, .. } = self.selection;
        if block.selected && (min_block..=max_block).contains(&nanoseconds) {
            let mut parts = std::mem::take(&mut self.parts);
            if is_wait && !is_killed {
                self.chains.divide(start..end, waking, &self.history, &mut parts);
                if !self.has_slices {
                    merge_parts(&mut parts);
                }
            } else {
                parts.clear();
                parts.push(WaitPart { wakers: WakerChain::NONE, start, nanoseconds: end - start });
            }
            self.charge_parts(thread, event, block, &parts, event.time - end);
            self.parts = parts;
        }
        if is_wait {
            let stack = block.stack.map(|stack| stack.stack);
            self.add_to_history(event.tid, PastBlock { start, end, stack, waking });
        }
    }

    /// Charges the parts of a block. It ended `after_wakeup` nanoseconds before the thread ran again.
    fn charge_parts(
        &mut self,
        thread: &mut Thread,
        event: SwitchEvent,
        block: Block,
        parts: &[WaitPart],
        after_wakeup: u64,
    ) {
        let wait = parts.iter().map(|part| part.nanoseconds).sum::<u64>();
        if block.state == ThreadState::Blocked && !block.is_reported {
            let stack = block.stack.map(|stack| stack.stack);
            self.watch.note(LongBlock { tid: event.tid, time: event.time, nanoseconds: wait, stack });
        }
        let nanoseconds = wait + after_wakeup;
        if block.state == ThreadState::Asleep {
            return self.charge_span(event, None, block.state, nanoseconds);
        }
        let is_sampled = match block.stack {
            Some(stack) => !stack.from_every_switch,
            None if self.every_switch => return self.charge_span(event, None, ThreadState::Lost, nanoseconds),
            None => true,
        };
        let mut bucket = is_sampled.then(|| {
            let bucket = thread.buckets.entry((block.state, nanoseconds.max(1).ilog2() / 2)).or_default();
            bucket.total += Amount { count: 1, nanoseconds };
            bucket
        });
        let Some(SwitchStack { stack, .. }) = block.stack else { return };
        // The block itself counts as one of its longest part.
        let longest = (0..parts.len()).rev().max_by_key(|index| parts[*index].nanoseconds);
        for (index, WaitPart { wakers, start, nanoseconds }) in parts.iter().copied().enumerate() {
            let (count, after_wakeup) = if longest == Some(index) { (1, after_wakeup) } else { (0, 0) };
            let (stacks, time) =
                (BlockStacks { stack, wakers }, BlockTime { count, before_wakeup: nanoseconds, after_wakeup });
            match &mut bucket {
                Some(bucket) => *bucket.sampled.entry(stacks).or_default() += time,
                None => self.charge_wait(event, stacks, block.state, time, Some(start)),
            }
        }
    }

    /// Charges a wait to its stack and its wakers, and the time after the wake-up to its stack alone: then the thread could
    /// have run. `start` is the start of a single wait, which is over when the event happens.
    pub(super) fn charge_wait(
        &mut self,
        event: SwitchEvent,
        stacks: BlockStacks,
        state: ThreadState,
        block: BlockTime,
        start: Option<u64>,
    ) {
        let (SwitchEvent { tid, time, .. }, BlockStacks { stack, wakers }) = (event, stacks);
        let BlockTime { count, before_wakeup, after_wakeup } = block;
        let amount = Amount { count, nanoseconds: before_wakeup };
        let charge = Charge { tid, time, stack: Some(stack), wakers, state, amount, start };
        self.charges.push(charge);
        if after_wakeup > 0 {
            let amount = Amount { count, nanoseconds: after_wakeup };
            let start = start.map(|_| time.saturating_sub(after_wakeup));
            self.charges.push(Charge {
                wakers: WakerChain::NONE,
                state: ThreadState::Runnable,
                amount,
                start,
                ..charge
            });
        }
    }

    /// Keeps what a thread did, if others may have waited for it.
    pub(super) fn add_to_history(&mut self, tid: u32, block: PastBlock) {
        if self.chains.are_followed() && block.start < block.end {
            self.history.add(tid, block);
            self.limit_history(block.end);
        }
    }

    /// Returns the nanoseconds of waits of which it is not known what they were for, because too much had been forgotten.
    pub fn forgotten_waits(&self) -> u64 {
        self.chains.forgotten
    }

    /// Forgets what no thread waits for any more, and more if there is too much.
    pub(super) fn limit_history(&mut self, now: u64) {
        if self.history.is_full() {
            let waits = self.threads.values().filter(|thread| matches!(thread.state, CpuState::OffCpu(_)));
            self.history.forget(waits.map(|thread| thread.accounted).min().unwrap_or(now).min(now));
        }
    }
}
