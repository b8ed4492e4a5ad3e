//! Samples one by one, with their times and threads, and their stacks once.

use crate::markers;

use super::sink::Sink;
use crate::Error;
use crate::diagnostics::{Diagnostics, plural};
use crate::profile::{FrameId, Frames, Profile, Weight, Weights};

/// When and by whom a sample was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// In nanoseconds.
    pub(super) time: u64,
    pub(super) thread: FrameId,
}

/// One sample of a [`Timeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    /// In nanoseconds, on the recording's clock.
    pub time: u64,
    /// The number of its stack in the profile.
    pub stack: u32,
    /// Its thread.
    pub thread: FrameId,
    /// What it weighs.
    pub weight: Weight,
}

/// All samples that have a time.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Their stacks, and what those weigh.
    pub profile: Profile,
    /// Their threads: `COMM PID/TID`.
    pub threads: Frames,
    /// In no particular order.
    pub samples: Vec<TimedSample>,
    /// How many samples there were without a time.
    pub untimed: u64,
    /// How many samples were lost while they were recorded.
    pub lost: u64,
}

impl Timeline {
    pub(super) fn add(&mut self, stack: &[FrameId], weight: Weight, moment: Option<Moment>) -> Result<(), Error> {
        let Some(Moment { time, thread }) = moment else {
            self.untimed += 1;
            return Ok(());
        };
        if let Some(stack) = self.profile.add_with_number(stack, Weights::plain(weight))? {
            self.samples.push(TimedSample { time, stack, thread, weight });
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

    /// Puts together what several threads read.
    pub(super) fn merged(sinks: impl Iterator<Item = Sink>) -> Result<Self, Error> {
        let mut whole = Self::default();
        for timeline in sinks.filter_map(Sink::into_timeline) {
            if whole.samples.is_empty() {
                whole = Self { untimed: whole.untimed + timeline.untimed, ..timeline };
            } else {
                whole.merge(&timeline)?;
            }
        }
        Ok(whole)
    }

    /// Says what has no place in it.
    pub(super) fn tell(&self, diagnostics: &mut Diagnostics) -> Result<(), Error> {
        if self.samples.is_empty() && self.untimed > 0 {
            let what = "no sample of the input has a time: perf script text has, and perf.data";
            return Err(Error::Invalid(what.to_owned()));
        }
        if self.untimed > 0 {
            diagnostics.warn(&format!("{} without a time left out", plural(self.untimed, "sample")));
        }
        if self.lost > 0 {
            let lost = plural(self.lost, "sample");
            diagnostics
                .warn(&format!("{lost} lost while recording: {} in a profile", String::from_utf8_lossy(markers::LOST)));
        }
        Ok(())
    }
}
