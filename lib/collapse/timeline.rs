//! Samples with their times and threads; each distinct stack is stored once.

use crate::Error;
use crate::diagnostics::{Diagnostics, plural};
use crate::markers;
use crate::profile::{FrameId, Frames, Profile, Weight, Weights};

/// Time, thread and CPU of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleTime {
    /// Nanoseconds on the clock of the recording.
    pub(super) time: u64,
    pub(super) thread: FrameId,
    /// The CPU on which the sample was taken, if the input has it.
    pub(super) cpu: Option<u32>,
}

/// One sample of a [`Timeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    /// Nanoseconds on the clock of the recording.
    pub time: u64,
    /// Number of the stack in the profile.
    pub stack: u32,
    /// Thread, an id in [`Timeline::threads`].
    pub thread: FrameId,
    /// The CPU on which the sample was taken, if the input has it.
    pub cpu: Option<u32>,
    /// Weight of the sample.
    pub weight: Weight,
}

/// All samples that have a time.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Stacks of the samples, with weights.
    pub profile: Profile,
    /// Threads of the samples: `COMM PID/TID`.
    pub threads: Frames,
    /// Samples in no particular order.
    pub samples: Vec<TimedSample>,
    /// Number of samples without a time.
    pub untimed: u64,
    /// Number of samples lost while recording.
    pub lost: u64,
    /// The unit of the weights, if the inputs name one and the same.
    pub unit: Option<String>,
}

impl Timeline {
    pub(super) fn add_sample(
        &mut self,
        stack: &[FrameId],
        weight: Weight,
        time: Option<SampleTime>,
    ) -> Result<(), Error> {
        let Some(SampleTime { time, thread, cpu }) = time else {
            self.untimed += 1;
            return Ok(());
        };
        if let Some(stack) = self.profile.add_with_number(stack, Weights::plain(weight))? {
            self.samples.push(TimedSample { time, stack, thread, cpu, weight });
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        let threads = self.threads.intern_all(&other.threads);
        let frames = self.profile.frames.intern_all(&other.profile.frames);
        let (mut numbers, mut renamed) = (Vec::with_capacity(other.profile.len()), Vec::new());
        other.profile.for_each(|stack, weights| {
            renamed.clear();
            renamed.extend(stack.iter().map(|frame| frames[frame.index()]));
            numbers.push(self.profile.add_with_number(&renamed, weights)?.unwrap_or_default());
            Ok(())
        })?;
        self.samples.extend(other.samples.iter().map(|sample| TimedSample {
            stack: numbers[sample.stack as usize],
            thread: threads[sample.thread.index()],
            ..*sample
        }));
        self.untimed += other.untimed;
        Ok(())
    }

    /// Merges the timelines of several threads.
    pub(super) fn merge_all(timelines: impl Iterator<Item = Self>) -> Result<Self, Error> {
        let mut whole = Self::default();
        for timeline in timelines {
            if whole.samples.is_empty() {
                whole = Self { untimed: whole.untimed + timeline.untimed, ..timeline };
            } else {
                whole.merge(&timeline)?;
            }
        }
        Ok(whole)
    }

    /// Warns about samples without a time and lost samples.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no sample has a time.
    pub(super) fn report(&self, diagnostics: &mut Diagnostics) -> Result<(), Error> {
        if self.samples.is_empty() && self.untimed > 0 {
            let what = "no sample has a time; use perf.data, perf script text or another input with times";
            return Err(Error::Invalid(what.to_owned()));
        }
        if self.untimed > 0 {
            diagnostics.warn(&format!("{} without a time left out", plural(self.untimed, "sample")));
        }
        if self.lost > 0 {
            let lost = plural(self.lost, "sample");
            diagnostics.warn(&format!(
                "{lost} lost while recording, shown as {} in a profile",
                String::from_utf8_lossy(markers::LOST)
            ));
        }
        Ok(())
    }
}
