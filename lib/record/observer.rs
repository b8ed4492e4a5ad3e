//! The observer of a recording: it follows the progress, and receives each finished part.

use std::time::Duration;

use super::command::RunningCommand;
use super::counters::StackCopies;
use super::counters::sampling::SampledEvent;
use super::off_cpu::totals::StateTotals;
use super::pairs::PairTotals;
use super::usage::Usage;
use crate::Error;
use crate::perf::recording::{Counts, Recording};

/// A finished recording, or a finished part of one.
pub struct FinishedRecording {
    /// The stacks and their samples.
    pub recording: Recording,
    /// The events that were sampled.
    pub events: Vec<SampledEvent>,
    /// The copies of stacks in samples, if stacks were copied.
    pub stack_copies: Option<StackCopies>,
    /// The reason why stacks were copied, and not taken by a BPF program.
    pub copy_reason: Option<String>,
    /// The time in each state, if time off the CPU was recorded.
    pub totals: Option<StateTotals>,
    /// The pairs of events, if they were recorded.
    pub pairs: Option<PairTotals>,
    /// The CPU time and the events of the target.
    pub usage: Usage,
    /// The time by which its file is named, in seconds since 1970: the start, or the end of the last part that was kept.
    pub file_time: u64,
    /// The time from the start of the recording to its end.
    pub elapsed: Duration,
    /// The command, which may still run.
    pub command: Option<RunningCommand>,
    /// True for the last slices of a recording that goes on.
    pub has_ring: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The reason why nothing is to be written, if that is so.
    pub missed: Option<String>,
}

impl FinishedRecording {
    /// Returns the number of profiles: one for each event, or one of the time off the CPU, however many events that
    /// took.
    pub(super) fn profile_count(&self) -> usize {
        if self.totals.is_some() { 1 } else { self.events.len() }
    }
}

/// Observes a recording while it runs.
pub trait Observer {
    /// True if [`Observer::on_progress`] is to be called regularly.
    fn wants_progress(&self) -> bool;
    /// Called with the time that the recording has run, and what it has counted.
    fn on_progress(&mut self, elapsed: Duration, counts: &Counts);
    /// Called between parts, to do the work that the last one left.
    ///
    /// # Errors
    /// An error ends the recording.
    fn on_wait(&mut self) -> Result<(), Error>;
    /// Receives a finished part of the recording.
    ///
    /// # Errors
    /// An error ends the recording.
    fn on_part(&mut self, part: FinishedRecording) -> Result<(), Error>;
}
