//! What a thread was doing while its stack stood still.

use crate::markers::OFF_CPU;
use crate::markers::RUNNABLE;
use crate::markers::UNSAMPLED;

/// The state in which a stack was seen. All but the first are frames of their own in a profile, as its leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadState {
    /// On a CPU, where it was sampled.
    #[default]
    Running,
    /// Blocked, until it ran again.
    Blocked,
    /// Preempted: it could have run.
    Runnable,
    /// On a CPU, but no sample fell there.
    Unsampled,
    /// Blocked where no sample was taken, so that its stack is not known.
    UnsampledBlocked,
    /// Preempted where no sample was taken.
    UnsampledRunnable,
    /// Blocked since before the recording began.
    Asleep,
    /// Nobody knows: the kernel dropped what would have told.
    Lost,
}

impl ThreadState {
    const ALL: [Self; 8] = [
        Self::Running,
        Self::Blocked,
        Self::Runnable,
        Self::Unsampled,
        Self::UnsampledBlocked,
        Self::UnsampledRunnable,
        Self::Asleep,
        Self::Lost,
    ];

    /// The frames that it adds to a stack.
    pub fn leaves(self) -> &'static [&'static [u8]] {
        match self {
            Self::Running | Self::Lost => &[],
            Self::Blocked => &[OFF_CPU],
            Self::Runnable => &[RUNNABLE],
            Self::Unsampled => &[UNSAMPLED],
            Self::UnsampledBlocked | Self::Asleep => &[UNSAMPLED, OFF_CPU],
            Self::UnsampledRunnable => &[UNSAMPLED, RUNNABLE],
        }
    }

    /// Its number.
    pub(super) fn number(self) -> u32 {
        self as u32
    }

    /// The state of a number.
    pub(super) fn of(number: u32) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or_default()
    }

    /// The same where no sample told the stack.
    #[must_use]
    pub fn unsampled(self) -> Self {
        match self {
            Self::Running => Self::Unsampled,
            Self::Blocked => Self::UnsampledBlocked,
            Self::Runnable => Self::UnsampledRunnable,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_those_of_the_states() {
        for (number, state) in super::ThreadState::ALL.into_iter().enumerate() {
            assert_eq!((state.number() as usize, super::ThreadState::of(state.number())), (number, state));
        }
    }
}
