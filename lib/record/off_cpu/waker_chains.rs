//! Chains of wakers: what a blocked thread waited for.
//!
//! A wait lasts from the moment at which a thread blocks until it is woken. It is divided among what its waker did meanwhile:
//! while the waker was blocked itself, the thread waited for what the waker waited for, and so on; for the rest of the time it
//! waited for the waker to run. The parts of a wait add up to it.
//!
//! A chain of one waker charges the whole wait to the thread that ended it, as bcc's `offwaketime` does.

use std::ops::Range;

use super::block_history::{BlockHistory, PastBlock};
use crate::profile::Stacks;

/// A wake-up of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waking {
    /// The thread that woke it; `None` if an interrupt did.
    pub waker: Option<u32>,
    /// The stack of the waker.
    pub stack: u32,
}

/// A wake-up, and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The time of the wake-up.
    pub time: u64,
    /// The waker and its stack; `None` if the process ended, and not what the thread waited for.
    pub waking: Option<Waking>,
}

/// The number of a chain in [`WakerChains`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WakerChain(u32);

impl WakerChain {
    /// The chain of time that no wake-up has ended, and of all time if wakers are not recorded.
    pub const NONE: Self = Self(0);
}

/// A part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPart {
    /// The chain of wakers that the thread waited for.
    pub wakers: WakerChain,
    /// The time at which the part began.
    pub start: u64,
    /// The duration of the part in nanoseconds.
    pub nanoseconds: u64,
}

/// The stack of a waker that is not known.
const UNKNOWN: u32 = u32::MAX;

/// Stands behind the last waker of a chain that has as many as were asked for, if that waker was blocked itself.
const CUT: u32 = u32::MAX - 1;

/// All distinct chains.
#[derive(Clone, Debug)]
pub struct WakerChains {
    chains: Stacks,
    /// The largest number of wakers of a chain; 0 if wakers are not recorded.
    depth: usize,
    /// The stacks of the chain that is being made.
    chain: Vec<u32>,
    /// Nanoseconds of waits for threads that are not known any more, because there were too many blocks.
    pub forgotten: u64,
}

impl WakerChains {
    /// Creates a table of chains of at most this many wakers.
    pub fn new(depth: Option<usize>) -> Self {
        let mut chains = Stacks::default();
        chains.intern(&[]);
        Self { chains, depth: depth.unwrap_or(0), chain: Vec::new(), forgotten: 0 }
    }

    /// True if wakers are recorded.
    pub fn are_recorded(&self) -> bool {
        self.depth > 0
    }

    /// True if waits are divided among what wakers did.
    pub fn are_followed(&self) -> bool {
        self.depth > 1
    }

    /// Returns the stacks of a chain, the last waker first; `None` for one that is not known.
    pub fn stacks(&self, chain: WakerChain) -> impl Iterator<Item = Option<u32>> + '_ {
        let stacks = self.chains.get(chain.0).iter().filter(|stack| **stack != CUT);
        stacks.map(|stack| (*stack != UNKNOWN).then_some(*stack))
    }

    /// True if the last waker of a chain was blocked itself, and what it waited for is left out.
    pub fn is_cut(&self, chain: WakerChain) -> bool {
        self.chains.get(chain.0).last() == Some(&CUT)
    }

    /// Forgets all chains. No others may be in use.
    pub fn clear(&mut self) {
        *self = Self { forgotten: self.forgotten, ..Self::new(Some(self.depth)) };
    }

    /// Divides a wait among what was waited for. `waking` is `None` if the wake-up was not seen. Writes the parts in the order of
    /// time, at least one.
    pub fn divide(
        &mut self,
        wait: Range<u64>,
        waking: Option<Waking>,
        history: &BlockHistory,
        parts: &mut Vec<WaitPart>,
    ) {
        parts.clear();
        self.chain.clear();
        match waking {
            Some(waking) => self.divide_by_waker(wait.clone(), waking, history, parts),
            None => self.add_part(wait.clone(), &[UNKNOWN], parts),
        }
        if parts.is_empty() {
            let last = waking.map_or(UNKNOWN, |waking| waking.stack);
            parts.push(WaitPart { wakers: self.intern(&[last]), start: wait.start, nanoseconds: 0 });
        }
    }

    /// Adds the parts of a wait, or of the part of one that the stacks in `chain` lead to.
    fn divide_by_waker(
        &mut self,
        wait: Range<u64>,
        Waking { waker, stack }: Waking,
        history: &BlockHistory,
        parts: &mut Vec<WaitPart>,
    ) {
        let Some(waker) = waker.filter(|_| self.are_followed()) else {
            return self.add_part(wait, &[stack], parts);
        };
        if self.chain.len() + 1 == self.depth {
            return self.divide_by_last_waker(wait, waker, stack, history, parts);
        }
        // A thread that is not recorded has no history.
        let known = history.get(waker);
        let known_since = known.map_or(wait.end, |known| known.known_since).clamp(wait.start, wait.end);
        if known.is_some_and(|known| known.is_cut) {
            self.forgotten += known_since - wait.start;
        }
        self.add_part(wait.start..known_since, &[stack, UNKNOWN], parts);
        let mut time = known_since;
        for block in known.iter().flat_map(|known| known.blocks_after(known_since)) {
            let (start, end) = (block.start.clamp(time, wait.end), block.end.clamp(time, wait.end));
            self.add_part(time..start, &[stack], parts);
            match *block {
                PastBlock { stack: None, .. } => self.add_part(start..end, &[stack, UNKNOWN], parts),
                PastBlock { stack: Some(blocked), waking: None, .. } => {
                    self.add_part(start..end, &[blocked, UNKNOWN], parts);
                }
                PastBlock { stack: Some(blocked), waking: Some(waking), .. } => {
                    self.chain.push(blocked);
                    self.divide_by_waker(start..end, waking, history, parts);
                    self.chain.pop();
                }
            }
            time = end;
            if time == wait.end {
                break;
            }
        }
        self.add_part(time..wait.end, &[stack], parts);
    }

    /// Adds the parts of a wait for the last waker of a chain: the time that it ran, and that in which it was blocked itself.
    fn divide_by_last_waker(
        &mut self,
        wait: Range<u64>,
        waker: u32,
        stack: u32,
        history: &BlockHistory,
        parts: &mut Vec<WaitPart>,
    ) {
        let mut time = wait.start;
        for block in history.get(waker).iter().flat_map(|known| known.blocks_after(wait.start)) {
            let (start, end) = (block.start.clamp(time, wait.end), block.end.clamp(time, wait.end));
            self.add_part(time..start, &[stack], parts);
            self.add_part(start..end, &[block.stack.unwrap_or(UNKNOWN), CUT], parts);
            time = end;
        }
        self.add_part(time..wait.end, &[stack], parts);
    }

    /// Adds a part whose chain is the present one and `last`.
    fn add_part(&mut self, time: Range<u64>, last: &[u32], parts: &mut Vec<WaitPart>) {
        if time.is_empty() {
            return;
        }
        let (wakers, nanoseconds) = (self.intern(last), time.end - time.start);
        match parts.last_mut() {
            Some(before) if before.wakers == wakers => before.nanoseconds += nanoseconds,
            _ => parts.push(WaitPart { wakers, start: time.start, nanoseconds }),
        }
    }

    /// Returns the chain that is the present one and `last`.
    fn intern(&mut self, last: &[u32]) -> WakerChain {
        let length = self.chain.len();
        self.chain.extend_from_slice(last);
        let chain = WakerChain(self.chains.intern(&self.chain));
        self.chain.truncate(length);
        chain
    }
}

/// Makes those parts one that have the same chain. Their order is not that of time any more.
pub fn merge_parts(parts: &mut Vec<WaitPart>) {
    parts.sort_by_key(|part| part.wakers);
    parts.dedup_by(|part, first| {
        let is_same = part.wakers == first.wakers;
        first.nanoseconds += if is_same { part.nanoseconds } else { 0 };
        is_same
    });
}
