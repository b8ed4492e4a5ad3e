//! The total time that threads spent in each state.

use super::OffCpuOptions;
use crate::perf::recording::Recording;
use crate::perf::thread_state::ThreadState;

/// A number of blocks or samples, and their total duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of blocks or samples.
    pub count: u64,
    /// Their total duration.
    pub nanoseconds: u64,
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
    /// True if wake-ups were recorded, so that the wait for a CPU after them is not part of a block.
    pub has_wakeups: bool,
    /// True if blocks were recorded.
    pub has_blocks: bool,
}

impl StateTotals {
    /// Creates totals of zero for a recording with these options.
    pub(super) fn new(options: &OffCpuOptions) -> Self {
        let sparse_period = options.period.filter(|period| *period > 1);
        let has_wakeups = options.waker_depth.is_some();
        let has_blocks = !options.latency && !options.run_queue_only;
        Self { sums: Vec::new(), sparse_period, has_wakeups, has_blocks }
    }

    /// Charges an amount of time to a stack, and to the stacks of those that ended the blocks.
    pub(super) fn charge(
        &mut self,
        recording: &mut Recording,
        (stack, wakers): (u32, &[u32]),
        state: ThreadState,
        amount: Amount,
    ) {
        recording.charge(stack, wakers, state, (amount.count, amount.nanoseconds));
        match self.sums.iter_mut().find(|(other, _)| *other == state) {
            Some((_, sum)) => *sum += amount,
            None => self.sums.push((state, amount)),
        }
    }

    /// Charges blocks of unknown threads and stacks.
    pub(super) fn charge_lost(&mut self, recording: &mut Recording, amount: Amount) {
        let stack = recording.intern_unknown_stack(0, 0);
        self.charge(recording, (stack, &[]), ThreadState::Lost, amount);
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
