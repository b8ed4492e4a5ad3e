//! Records the time between two events (`--pair`): of a system call, an I/O request, a call of a function.
//!
//! A BPF program pairs the events in the kernel, by a key that both have, and sends the stack of one of them with the time
//! between them (`record/bpf/pairs.bpf.h`). If there are very many pairs, only some are sent ([`STACK_SHARE`]). The exact sums of
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
    /// The largest number of pairs that one represented; 1 if every pair was sent.
    pub represented: u64,
    /// Number of pairs of which one half was lost.
    pub unmatched: u64,
}

impl PairTotals {
    /// Returns the number of pairs whose time is charged to no stack.
    pub fn lost(&self) -> u64 {
        self.sums.dropped + self.unmatched
    }
}

/// One in this many nanoseconds of a CPU may be spent on the stacks of pairs. If that is not enough for all, a CPU sends one in
/// [`SPARSE_EVERY`].
///
/// At 52,000 system calls a second, 5 frames deep, the calling thread took 7.2 % more CPU time with this value, 11.7 % with 20
/// and 16.2 % with 10 (medians of 3 alternating runs, of which 4 to 5 points are for the pairs themselves); 300 frames deep, 9.3 %
/// with 20. `benches/pairs` measures it.
pub const STACK_SHARE: u64 = 40;

/// The time that a CPU may spend on stacks at once: that of some hundred stacks. The rings, of 2 MiB or more, hold them.
pub const BURST: Duration = Duration::from_millis(5);

/// Where pairs are dense, one of this many is sent, or of the square of this.
pub const SPARSE_EVERY: u64 = 17;
