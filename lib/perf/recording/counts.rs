//! What a recording counts beside its stacks.

use crate::perf::stop_reason::StopReason;

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Samples taken.
    pub samples: u64,
    /// Samples that the kernel dropped.
    pub lost: u64,
    /// Samples that others stand for, since they were to be fewer.
    pub passed_over: u64,
    /// Samples whose stack was cut before its root.
    pub truncated: Truncated,
    /// Samples whose callers beyond the copy of the stack were others than just before, though what the copy ends with
    /// was the same.
    pub new_callers: u64,
    /// Stacks of programs that the kernel followed, and how many frames they have.
    pub user_stacks: u64,
    /// See there.
    pub user_frames: u64,
    /// How often the kernel held sampling back.
    pub throttled: u64,
    /// Side-band records that the kernel dropped: mappings or names may be missing.
    pub lost_side_band: u64,
    /// Switches that the kernel dropped.
    pub lost_switches: u64,
    /// Records that could not be understood.
    pub malformed: u64,
}

/// Stacks that were cut before their root, by what cut them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Truncated {
    /// The copy of the stack was too small.
    pub dump_too_small: u64,
    /// The rest of the stack had changed before it could be read.
    pub stale_tail: u64,
    /// The program had no stack that could be copied: within execve it has left the old one, and not begun the new one.
    pub no_stack: u64,
    /// Code without unwind information.
    pub no_unwind_information: u64,
    /// The kernel writes no more addresses, or we follow no more.
    pub too_deep: u64,
}

impl Truncated {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.dump_too_small + self.stale_tail + self.no_stack + self.no_unwind_information + self.too_deep
    }

    pub(super) fn count(&mut self, stop: StopReason) {
        match stop {
            StopReason::Root => {}
            StopReason::DumpTooSmall => self.dump_too_small += 1,
            StopReason::StaleTail => self.stale_tail += 1,
            StopReason::NoStack => self.no_stack += 1,
            StopReason::NoUnwindInformation => self.no_unwind_information += 1,
            StopReason::TooDeep => self.too_deep += 1,
        }
    }
}

/// What a stack's samples add up to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// How many samples there were.
    pub samples: u64,
    /// Their periods' sum.
    pub period: u128,
}
