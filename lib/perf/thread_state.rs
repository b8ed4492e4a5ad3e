//! The states of threads.

use crate::markers::{OFF_CPU, RUNNABLE, UNSAMPLED};

/// The state of a thread while it had a stack. States other than running add marker frames to the stack, as its leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadState {
    /// On a CPU, where it was sampled.
    #[default]
    Running,
    /// Blocked until it ran again.
    Blocked,
    /// Preempted: it could have run.
    Runnable,
    /// On a CPU, where no sample was taken.
    Unsampled,
    /// Blocked where no sample was taken, so its stack is unknown.
    UnsampledBlocked,
    /// Preempted where no sample was taken.
    UnsampledRunnable,
    /// Blocked since before the recording started.
    Asleep,
    /// Unknown: the kernel dropped the records.
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

    /// The marker frames that the state adds to a stack.
    pub fn markers(self) -> &'static [&'static [u8]] {
        match self {
            Self::Running | Self::Lost => &[],
            Self::Blocked => &[OFF_CPU],
            Self::Runnable => &[RUNNABLE],
            Self::Unsampled => &[UNSAMPLED],
            Self::UnsampledBlocked | Self::Asleep => &[UNSAMPLED, OFF_CPU],
            Self::UnsampledRunnable => &[UNSAMPLED, RUNNABLE],
        }
    }

    /// True if the thread could have run, but did not.
    pub fn is_runnable(self) -> bool {
        matches!(self, Self::Runnable | Self::UnsampledRunnable | Self::Lost)
    }

    /// Returns the state as a number below 8.
    pub(super) fn to_number(self) -> u32 {
        self as u32
    }

    /// Returns the state that [`to_number`](Self::to_number) turned into a number.
    pub(super) fn from_number(number: u32) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or_default()
    }

    /// Returns the state for time in this state of which no sample was taken.
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
    use super::ThreadState;

    #[test]
    fn converts_states_to_numbers_and_back() {
        for (number, state) in ThreadState::ALL.into_iter().enumerate() {
            assert_eq!((state.to_number() as usize, ThreadState::from_number(state.to_number())), (number, state));
        }
    }
}
