//! Chains of wakers: who ended a block, who had ended that thread's block before, and so on.
//!
//! A chain continues if the waker itself was blocked during the block that it ended. So the last stack of a chain is that of a
//! thread that ran, or of an interrupt, and all threads before it waited for that.

use crate::perf::recording::StackRenumbering;
use crate::profile::Stacks;

/// A wake-up of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waking {
    /// The thread that woke it; `None` if an interrupt did.
    pub waker: Option<u32>,
    /// The stack of the waker.
    pub stack: u32,
}

/// The number of a chain in [`WakerChains`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WakerChain(u32);

impl WakerChain {
    /// The chain of time that no wake-up has ended, and of all time if wakers are not recorded.
    pub const NONE: Self = Self(0);
}

/// The stack of a waker that is not known.
const UNKNOWN: u32 = u32::MAX;

/// The end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The time of the wake-up.
    pub time: u64,
    /// Those that ended the block.
    pub wakers: WakerChain,
}

/// The wake-ups of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wakeups {
    /// The last wake-up since the thread ran.
    pending: Option<PendingWaking>,
    /// The end of its last block.
    last: Option<Wakeup>,
}

/// A wake-up, and what had woken the waker before.
#[derive(Clone, Copy, Debug)]
struct PendingWaking {
    time: u64,
    stack: u32,
    before: Option<Wakeup>,
}

impl Wakeups {
    /// Adds a wake-up. `before` is the end of the last block of the thread that woke.
    pub fn add(&mut self, time: u64, waking: Waking, before: Option<Wakeup>) {
        self.pending = Some(PendingWaking { time, stack: waking.stack, before });
    }

    /// Returns the end of the thread's last block, if wakers are recorded.
    pub fn last(&self) -> Option<Wakeup> {
        self.last
    }

    /// Ends a block that began at `start`, when the thread runs again. Returns the end of the block; `None` if wakers are not
    /// recorded.
    pub fn end_block(&mut self, start: u64, chains: &mut WakerChains) -> Option<Wakeup> {
        let pending = self.pending.take();
        self.last = None;
        if chains.depth == 0 {
            return None;
        }
        let Some(PendingWaking { time, stack, before }) = pending else {
            return Some(Wakeup { time: u64::MAX, wakers: chains.extend(UNKNOWN, WakerChain::NONE) });
        };
        let before = before.filter(|before| before.time > start).map_or(WakerChain::NONE, |before| before.wakers);
        self.last = Some(Wakeup { time, wakers: chains.extend(stack, before) });
        self.last
    }

    /// True if the thread was woken and has not run since.
    pub fn is_woken(&self) -> bool {
        self.pending.is_some()
    }

    /// Renumbers the stacks, and moves the chains from one table to another.
    pub fn renumber(&mut self, old: &WakerChains, new: &mut WakerChains, renumbering: &mut StackRenumbering) {
        if let Some(PendingWaking { stack, before, .. }) = &mut self.pending {
            *stack = renumbering.renumber(*stack);
            before.iter_mut().for_each(|before| before.renumber(old, new, renumbering));
        }
        self.last.iter_mut().for_each(|last| last.renumber(old, new, renumbering));
    }
}

impl Wakeup {
    /// Renumbers the stacks of the chain, which moves from one table to another.
    pub fn renumber(&mut self, old: &WakerChains, new: &mut WakerChains, renumbering: &mut StackRenumbering) {
        self.wakers = new.renumber(old, self.wakers, renumbering);
    }
}

/// All distinct chains.
#[derive(Clone, Debug)]
pub struct WakerChains {
    chains: Stacks,
    /// The largest number of wakers of a chain; 0 if wakers are not recorded.
    depth: usize,
    /// A buffer for a chain.
    chain: Vec<u32>,
}

impl WakerChains {
    /// Creates a table of chains of at most this many wakers.
    pub fn new(depth: Option<usize>) -> Self {
        let mut chains = Stacks::default();
        chains.intern(&[]);
        Self { chains, depth: depth.unwrap_or(0), chain: Vec::new() }
    }

    /// Returns the chain of a waker and of those before it.
    fn extend(&mut self, stack: u32, before: WakerChain) -> WakerChain {
        self.chain.clear();
        self.chain.push(stack);
        self.chain.extend(self.chains.get(before.0).iter().take(self.depth - 1));
        WakerChain(self.chains.intern(&self.chain))
    }

    /// Returns the number of distinct chains.
    pub fn count(&self) -> usize {
        self.chains.len()
    }

    /// Takes out all chains.
    pub fn take(&mut self) -> Self {
        let empty = Self::new(Some(self.depth));
        std::mem::replace(self, empty)
    }

    /// Adds a chain of another table, whose stacks have got other IDs.
    fn renumber(&mut self, old: &Self, chain: WakerChain, renumbering: &mut StackRenumbering) -> WakerChain {
        self.chain.clear();
        let stacks = old.chains.get(chain.0).iter();
        self.chain.extend(stacks.map(|stack| if *stack == UNKNOWN { UNKNOWN } else { renumbering.renumber(*stack) }));
        WakerChain(self.chains.intern(&self.chain))
    }

    /// Returns the stacks of a chain, the last waker first; `None` for one that is not known.
    pub fn stacks(&self, chain: WakerChain) -> impl Iterator<Item = Option<u32>> + '_ {
        self.chains.get(chain.0).iter().map(|stack| (*stack != UNKNOWN).then_some(*stack))
    }
}
