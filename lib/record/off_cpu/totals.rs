//! The total time that threads spent in each state.

use super::OffCpuOptions;
use crate::perf::recording::{ChargedTime, Recording};
use crate::perf::thread_state::ThreadState;

/// A number of blocks or samples, and their total duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of blocks or samples.
    pub count: u64,
    /// Their total duration.
    pub nanoseconds: u64,
}

impl Amount {
    /// Returns the time to charge. `start` is the time at which it began, if it was without interruption.
    pub(super) fn since(self, start: Option<u64>) -> ChargedTime {
        ChargedTime { count: self.count, nanoseconds: self.nanoseconds, start }
    }
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.nanoseconds += other.nanoseconds;
    }
}

/// The time that was charged to each state.
#[derive(Clone, Debug, Default)]
pub struct StateTotals {
    sums: Vec<(ThreadState, Amount)>,
    /// The period of stacks, if at any time not every switch collected its stack.
    pub sparse_period: Option<u64>,
    /// True if the longest of the other blocks did.
    pub finds_long_blocks: bool,
    /// True if wake-ups were recorded, so that the wait for a CPU after them is not part of a block.
    pub has_wakeups: bool,
    /// True if blocks were recorded.
    pub has_blocks: bool,
    /// True if blocks are left out by their length.
    pub is_bounded: bool,
    /// True if threads count that sleep since before the recording.
    pub includes_sleepers: bool,
    /// Number of threads that slept when the recording began, with a known stack.
    pub earlier_blocks: u64,
    /// Number of those whose memory could not be read.
    pub unread_stacks: u64,
    /// Nanoseconds of waits of which it is not known what they were for, because too many blocks happened meanwhile.
    pub forgotten_waits: u64,
    /// True if the time is that of a critical path, which needs the stack of every switch.
    pub is_path: bool,
    /// Warnings about parts of a critical path that are not known.
    pub path_warnings: Vec<String>,
    /// The reason why there is no critical path, if one was asked for.
    pub missing_path: Option<String>,
}

impl StateTotals {
    /// Creates totals of zero for a recording with these options.
    pub(super) fn new(options: &OffCpuOptions) -> Self {
        let sparse_period = options.period.filter(|period| *period > 1);
        let has_wakeups = options.waker_depth.is_some();
        let is_bounded = options.min_block.is_some() || options.max_block.is_some();
        let has_blocks = !options.latency && !options.run_queue_only;
        Self {
            sums: Vec::new(),
            sparse_period,
            finds_long_blocks: false,
            has_wakeups,
            has_blocks,
            is_bounded,
            includes_sleepers: false,
            earlier_blocks: 0,
            unread_stacks: 0,
            forgotten_waits: 0,
            is_path: false,
            path_warnings: Vec::new(),
            missing_path: None,
        }
    }

    /// Sums up what a recording has charged.
    pub(in crate::record) fn with_sums_of(mut self, recording: &Recording) -> Self {
        self.sums.clear();
        for (stack, tally) in recording.event_tallies(0) {
            let amount = Amount { count: tally.samples, nanoseconds: u64::try_from(tally.period).unwrap_or(u64::MAX) };
            match self.sums.iter_mut().find(|(other, _)| *other == stack.state) {
                Some((_, sum)) => *sum += amount,
                None => self.sums.push((stack.state, amount)),
            }
        }
        self
    }

    /// True if nothing was charged.
    pub fn is_empty(&self) -> bool {
        self.sums.iter().all(|(_, amount)| amount.count == 0)
    }

    /// Returns the total time in a state, with or without a sampled stack.
    pub fn total(&self, state: ThreadState) -> Amount {
        let mut total = Amount::default();
        for (other, sum) in &self.sums {
            if *other == state || *other == state.unsampled() {
                total += *sum;
            }
        }
        total
    }
}
