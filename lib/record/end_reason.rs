//! The reason why a recording ended, and the signals that follow from it.

use rustix::process::Signal;

/// The reason why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    TargetExited,
    /// The command beside the target has exited.
    WorkloadExited,
    DurationOver,
    /// There is a reason to write what `--ring` keeps, and the output takes one profile only.
    Written,
    /// We received this signal.
    Signal(i32),
}

impl EndReason {
    /// Returns the signal to send to the command that is recorded. None for SIGINT and SIGQUIT: a terminal sends them to
    /// the command too, and somebody who interrupts the recorder alone wants the recording to end. SIGTERM and SIGHUP
    /// are meant for the whole job.
    pub(super) fn command_signal(self) -> Option<Signal> {
        match self {
            Self::DurationOver | Self::Signal(libc::SIGTERM) => Some(Signal::TERM),
            Self::Signal(libc::SIGHUP) => Some(Signal::HUP),
            Self::TargetExited | Self::WorkloadExited | Self::Written | Self::Signal(_) => None,
        }
    }

    /// Returns the signal to send to a command beside the target: there is nothing left for it to do.
    pub(super) fn workload_signal(self) -> Option<Signal> {
        match self {
            Self::WorkloadExited => None,
            reason => reason.command_signal().or(Some(Signal::TERM)),
        }
    }
}
