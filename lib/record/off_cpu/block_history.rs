//! The blocks of threads that are over: what a thread did while others waited for it.
//!
//! Only blocks within a wait that is not over can be asked for. A thread may wait as long as the recording lasts, so the number
//! of blocks is limited: if there are too many, the older half of all is forgotten. What a thread did before is not known then.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::waker_chains::Waking;
use crate::perf::recording::StackRenumbering;

/// The largest number of blocks and threads, of 40 bytes each.
const MAX_ENTRIES: usize = 1 << 19;

/// As long as there are fewer, nothing is forgotten.
const MIN_ENTRIES: usize = 1 << 14;

/// A block that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastBlock {
    /// The time at which the thread left its CPU.
    pub start: u64,
    /// The time at which it was woken; at which it ran again, if no wake-up was seen.
    pub end: u64,
    /// The stack; `None` if it is not known what the thread did.
    pub stack: Option<u32>,
    /// The wake-up, if it was seen.
    pub waking: Option<Waking>,
}

/// The blocks of a thread that are remembered.
#[derive(Clone, Debug, Default)]
pub struct ThreadHistory {
    /// The time from which on all blocks of the thread are known.
    pub known_since: u64,
    /// True if the time before was known, too, but was forgotten because there were too many blocks.
    pub is_cut: bool,
    /// The time of its exit.
    exit: Option<u64>,
    /// The blocks in the order of time. They do not overlap.
    blocks: VecDeque<PastBlock>,
}

impl ThreadHistory {
    /// Iterates over the blocks that end after a time.
    pub fn blocks_after(&self, time: u64) -> impl Iterator<Item = &PastBlock> {
        self.blocks.range(self.blocks.partition_point(|block| block.end <= time)..)
    }

    /// Forgets the blocks that ended before `time` or at it. Returns how many.
    fn forget_before(&mut self, time: u64, is_cut: bool) -> usize {
        let count = self.blocks.partition_point(|block| block.end <= time);
        if let Some(last) = self.blocks.drain(..count).next_back() {
            self.known_since = self.known_since.max(last.end);
            self.is_cut |= is_cut;
        }
        count
    }
}

/// The past blocks of all threads.
#[derive(Clone, Debug)]
pub struct BlockHistory {
    threads: FxHashMap<u32, ThreadHistory>,
    /// The number of threads and of blocks.
    entries: usize,
    /// The number of entries from which on some are to be forgotten.
    full: usize,
    max_entries: usize,
}

impl Default for BlockHistory {
    fn default() -> Self {
        Self { threads: FxHashMap::default(), entries: 0, full: MIN_ENTRIES, max_entries: MAX_ENTRIES }
    }
}

impl BlockHistory {
    /// Says that a thread ran at `time`, or was created then, and that nothing is known of what it did before.
    pub fn begin(&mut self, tid: u32, time: u64) {
        let history = ThreadHistory { known_since: time, ..ThreadHistory::default() };
        match self.threads.insert(tid, history) {
            Some(old) => self.entries -= old.blocks.len(),
            None => self.entries += 1,
        }
    }

    /// Adds a block of a thread, later than all others.
    pub fn add(&mut self, tid: u32, block: PastBlock) {
        if let Some(history) = self.threads.get_mut(&tid) {
            history.blocks.push_back(block);
            self.entries += 1;
        }
    }

    /// Notes the exit of a thread, which may wake others after it.
    pub fn exit(&mut self, tid: u32, time: u64) {
        if let Some(history) = self.threads.get_mut(&tid) {
            history.exit = Some(time);
        }
    }

    /// Returns what is known of a thread.
    pub fn get(&self, tid: u32) -> Option<&ThreadHistory> {
        self.threads.get(&tid)
    }

    /// True if [`forget`](Self::forget) is to be called.
    pub fn is_full(&self) -> bool {
        self.entries >= self.full
    }

    /// Forgets what ended before `oldest_wait`, when the oldest wait began that is not over, and if that leaves too much, the
    /// older half of the rest.
    pub fn forget(&mut self, oldest_wait: u64) {
        self.forget_before(oldest_wait, false);
        if self.entries > self.max_entries / 2 {
            let mut ends: Vec<u64> =
                self.threads.values().flat_map(|history| &history.blocks).map(|block| block.end).collect();
            if !ends.is_empty() {
                let middle = ends.len() / 2;
                let (_, middle, _) = ends.select_nth_unstable(middle);
                self.forget_before(*middle, true);
            }
        }
        self.full = self.max_entries.min(MIN_ENTRIES.max(2 * self.entries)).max(self.entries + 1);
    }

    fn forget_before(&mut self, time: u64, is_cut: bool) {
        let mut forgotten = 0;
        self.threads.retain(|_, history| {
            forgotten += history.forget_before(time, is_cut);
            let is_kept = history.exit.is_none_or(|exit| exit > time);
            forgotten += if is_kept { 0 } else { 1 + history.blocks.len() };
            is_kept
        });
        self.entries -= forgotten;
    }

    /// Renumbers the stacks.
    pub fn renumber(&mut self, renumbering: &mut StackRenumbering) {
        for block in self.threads.values_mut().flat_map(|history| &mut history.blocks) {
            let stacks = block.stack.iter_mut().chain(block.waking.iter_mut().map(|waking| &mut waking.stack));
            stacks.for_each(|stack| *stack = renumbering.renumber(*stack));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockHistory, MIN_ENTRIES, PastBlock};

    fn block(start: u64, end: u64) -> PastBlock {
        PastBlock { start, end, stack: Some(1), waking: None }
    }

    fn starts(history: &BlockHistory, tid: u32, time: u64) -> Vec<u64> {
        history.get(tid).unwrap().blocks_after(time).map(|block| block.start).collect()
    }

    #[test]
    fn forgets_what_no_wait_needs() {
        let mut history = BlockHistory::default();
        history.begin(1, 0);
        history.begin(2, 0);
        (0..10).for_each(|n| history.add(1, block(10 * n, 10 * n + 5)));
        history.exit(2, 44);
        history.forget(45);
        assert_eq!(starts(&history, 1, 0), [50, 60, 70, 80, 90]);
        assert_eq!(starts(&history, 1, 75), [80, 90]);
        let thread = history.get(1).unwrap();
        assert_eq!((thread.known_since, thread.is_cut), (45, false));
        assert!(history.get(2).is_none());
        assert_eq!(history.entries, 6);
    }

    #[test]
    fn forgets_the_older_half_if_there_are_too_many_blocks() {
        let mut history = BlockHistory { max_entries: 100, full: 100, ..BlockHistory::default() };
        history.begin(1, 0);
        history.begin(2, 0);
        history.add(2, block(995, 999));
        for n in 0..1000 {
            history.add(1, block(n, n + 1));
            if history.is_full() {
                history.forget(0);
            }
            assert!(history.entries <= 100);
        }
        assert!(starts(&history, 1, 0).len() >= 48);
        let [often, seldom] = [1, 2].map(|tid| history.get(tid).unwrap());
        assert_eq!((often.known_since, often.is_cut), (often.blocks[0].start, true));
        assert_eq!((seldom.known_since, seldom.is_cut), (0, false));
        assert!(BlockHistory::default().full == MIN_ENTRIES);
    }
}
