//! Records the time between two events (`--pair`): of a system call, an I/O request, a call of a function.
//!
//! A BPF program pairs the events in the kernel, by a key that both have, and sends the stack of one of them with the time
//! between them (`record/bpf/pairs.bpf.h`). If there are very many pairs, only some are sent ([`DENSE_PAIRS`]). The exact sums of
//! all pairs are counted in the kernel: those that represent others share what is left of them.

pub mod spec;
pub mod tracker;

use std::time::Duration;

/// The pairs that were counted in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairSums {
    /// Number of pairs that are not too short.
    pub pairs: u64,
    /// Their total time.
    pub nanoseconds: u64,
    /// Number of pairs that are too short.
    pub short_pairs: u64,
    /// Their total time.
    pub short_nanoseconds: u64,
    /// Number of pairs or stacks for which the program had no room.
    pub dropped: u64,
    /// Number of pairs that had begun and were not over.
    pub open: u64,
    /// Number of pairs of which the first stack was sent, and which were not over or never ended.
    pub unfinished: u64,
}

/// The pairs of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairTotals {
    /// The pairs that were counted in the kernel.
    pub sums: PairSums,
    /// Shorter pairs were left out.
    pub over: Duration,
    /// True if at any time not every pair was sent.
    pub is_sparse: bool,
    /// Number of pairs of which one half was lost.
    pub unmatched: u64,
}

impl PairTotals {
    /// Returns the number of pairs whose time is charged to no stack.
    pub fn lost(&self) -> u64 {
        self.sums.dropped + self.unmatched
    }
}

/// A CPU sends the stacks of this many pairs in 10 ms. Of the others it sends one in [`SPARSE_EVERY`].
///
/// A pair takes about 0.8 us and a stack 8.2 us of the thread's time (a loop of work and a system call, with and without
/// `fg-record --syscall-latency -p PID`). By this, 50,000 pairs a second take 9 % of a CPU, and 14 % with 100.
pub const DENSE_PAIRS: u64 = 40;

/// Where pairs are dense, one of this many is sent. It is prime, because a program that repeats itself may
/// make a round number of pairs each time.
pub const SPARSE_EVERY: u64 = 17;
