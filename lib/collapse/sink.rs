//! Where a parser puts its samples: into a profile, one after the other, or with their times.

use super::timeline::{SampleTime, Timeline};
use crate::Error;
use crate::markers::UNKNOWN;
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// What a parser adds its samples to.
pub(super) struct Sink {
    profile: Profile,
    batch: Batch,
    keeping: Keeping,
    empty: bool,
    idle: bool,
}

/// What is kept of the samples besides their sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Keep {
    /// Nothing.
    #[default]
    Sums,
    /// Their order.
    Order,
    /// Their times.
    Times,
}

enum Keeping {
    Sums,
    Order(Runs),
    Times(Box<Timeline>),
}

impl Default for Sink {
    fn default() -> Self {
        Self::new(Keep::Sums)
    }
}

/// Samples in their order, equal neighbours added up.
#[derive(Default)]
pub(super) struct Runs {
    last: Vec<FrameId>,
    text: Vec<u8>,
    runs: Vec<(usize, Weights)>,
}

impl Sink {
    pub(super) fn new(keep: Keep) -> Self {
        let keeping = match keep {
            Keep::Sums => Keeping::Sums,
            Keep::Order => Keeping::Order(Runs::default()),
            Keep::Times => Keeping::Times(Box::default()),
        };
        Self { profile: Profile::default(), batch: Batch::default(), keeping, empty: true, idle: true }
    }

    pub(super) fn frames(&self) -> &Frames {
        match &self.keeping {
            Keeping::Times(timeline) => &timeline.profile.frames,
            _ => &self.profile.frames,
        }
    }

    pub(super) fn intern(&mut self, name: &[u8]) -> FrameId {
        match &mut self.keeping {
            Keeping::Times(timeline) => timeline.profile.frames.intern(name),
            _ => self.profile.frames.intern(name),
        }
    }

    /// Whether each sample is wanted with its moment.
    pub(super) fn keeps_times(&self) -> bool {
        matches!(self.keeping, Keeping::Times(_))
    }

    /// A thread's name for the moment of a sample.
    pub(super) fn intern_thread(&mut self, name: &[u8]) -> FrameId {
        match &mut self.keeping {
            Keeping::Times(timeline) => timeline.threads.intern(name),
            _ => FrameId::from_index(0),
        }
    }

    pub(super) fn is_differential(&self) -> bool {
        self.profile.is_differential()
    }

    /// From now on each stack has two weights. There must be none yet.
    pub(super) fn make_differential(&mut self) {
        self.profile = Profile::new(true);
    }

    /// Adds a sample, root first.
    #[inline]
    pub(super) fn add(&mut self, stack: &[FrameId], weights: Weights) -> Result<(), Error> {
        self.add_at(stack, weights, None)
    }

    /// Adds a sample that was taken at a moment.
    #[inline]
    pub(super) fn add_at(
        &mut self,
        stack: &[FrameId],
        weights: Weights,
        moment: Option<SampleTime>,
    ) -> Result<(), Error> {
        self.empty = false;
        self.idle = false;
        // A frame without a name that stands alone would be no stack.
        let nameless = matches!(stack, [only] if self.frames().name(*only).trim_ascii().is_empty());
        let unknown = if nameless { Some([self.intern(UNKNOWN)]) } else { None };
        let stack = unknown.as_ref().map_or(stack, |unknown| unknown);
        match &mut self.keeping {
            Keeping::Sums => {
                self.batch.push(stack, weights, &self.profile.frames);
                if self.batch.is_full() { self.flush() } else { Ok(()) }
            }
            Keeping::Order(runs) => runs.add(stack, weights, &self.profile.frames),
            Keeping::Times(timeline) => timeline.add(stack, weights.after, moment),
        }
    }

    /// Adds what waits.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.profile.add_batch(&mut self.batch)
    }

    /// Whether the samples' order is to be kept.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self.keeping, Keeping::Order(_))
    }

    /// An input begins.
    pub(super) fn begin(&mut self) {
        self.idle = true;
    }

    /// Whether no sample was added of the present input.
    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    /// Whether no sample was added.
    pub(super) fn is_empty(&self) -> bool {
        self.empty
    }

    /// All that was added and flushed.
    pub(super) fn into_profile(self) -> Profile {
        self.profile
    }

    /// What was added since the last call, if it is wanted in order.
    pub(super) fn take_runs(&mut self) -> Option<Runs> {
        match &mut self.keeping {
            Keeping::Order(runs) => Some(std::mem::take(runs)),
            _ => None,
        }
    }

    /// All that was added, if it is wanted with its times.
    pub(super) fn into_timeline(self) -> Option<Timeline> {
        match self.keeping {
            Keeping::Times(timeline) => Some(*timeline),
            _ => None,
        }
    }
}

impl Runs {
    fn add(&mut self, stack: &[FrameId], weights: Weights, frames: &Frames) -> Result<(), Error> {
        if self.last == stack
            && let Some((_, sum)) = self.runs.last_mut()
        {
            return sum.add(weights);
        }
        self.last.clear();
        self.last.extend_from_slice(stack);
        let Some((leaf, callers)) = stack.split_last() else { return Ok(()) };
        for frame in callers {
            self.text.extend_from_slice(frames.name(*frame));
            self.text.push(b';');
        }
        self.text.extend_from_slice(frames.name(frames.as_leaf(*leaf)));
        self.runs.push((self.text.len(), weights));
        Ok(())
    }

    /// Every stack as text, with its weights.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Weights)> {
        let starts = std::iter::once(0).chain(self.runs.iter().map(|(end, _)| *end));
        starts.zip(&self.runs).map(|(start, (end, weights))| (&self.text[start..*end], *weights))
    }
}
