//! The time of blocks, before and after they were ended by a wake-up.

use super::totals::Amount;
use super::waker_chains::WakerChain;

/// The stacks of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockStacks {
    /// The ID of the stack with which the thread blocked.
    pub stack: u32,
    /// Those that ended the block.
    pub wakers: WakerChain,
}

/// The number of blocks, and the time of each of their parts in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockTime {
    /// Number of blocks.
    pub count: u64,
    /// The time until the thread was woken, or all if that is not known.
    pub before_wakeup: u64,
    /// The time from the wake-up until the thread ran.
    pub after_wakeup: u64,
}

impl std::ops::AddAssign for BlockTime {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.before_wakeup += other.before_wakeup;
        self.after_wakeup += other.after_wakeup;
    }
}

impl BlockTime {
    /// Returns the part of `total` that these blocks represent, which are some of `all`.
    #[must_use]
    pub fn share(self, all: Self, total: Amount) -> Self {
        let whole = all.before_wakeup + all.after_wakeup;
        Self {
            count: multiply_ratio(total.count, self.count, all.count),
            before_wakeup: multiply_ratio(total.nanoseconds, self.before_wakeup, whole),
            after_wakeup: multiply_ratio(total.nanoseconds, self.after_wakeup, whole),
        }
    }
}

/// Returns `amount * part / whole`.
pub fn multiply_ratio(amount: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(amount) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}
