//! Where a parser puts its samples: into a profile, or one after the other.

use crate::Error;
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// What a parser adds its samples to.
pub(super) struct Sink {
    profile: Profile,
    batch: Batch,
    runs: Option<Runs>,
    empty: bool,
}

impl Default for Sink {
    fn default() -> Self {
        Self::new(false)
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
    /// Samples are merged, or only equal neighbours are.
    pub(super) fn new(in_order: bool) -> Self {
        Self { profile: Profile::default(), batch: Batch::default(), runs: in_order.then(Runs::default), empty: true }
    }

    pub(super) fn frames(&self) -> &Frames {
        &self.profile.frames
    }

    pub(super) fn intern(&mut self, name: &[u8]) -> FrameId {
        self.profile.frames.intern(name)
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
        self.empty = false;
        match &mut self.runs {
            None => {
                self.batch.push(stack, weights, &self.profile.frames);
                if self.batch.is_full() { self.flush() } else { Ok(()) }
            }
            Some(runs) => runs.add(stack, weights, &self.profile.frames),
        }
    }

    /// Adds what waits.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.profile.add_batch(&mut self.batch)
    }

    /// Whether the samples' order is to be kept.
    pub(super) fn is_in_order(&self) -> bool {
        self.runs.is_some()
    }

    /// Does some work and says whether it has added no sample.
    pub(super) fn adds_nothing<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> (R, bool) {
        let before = std::mem::replace(&mut self.empty, true);
        let result = work(self);
        let nothing = self.empty;
        self.empty &= before;
        (result, nothing)
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
        let runs = self.runs.as_mut()?;
        Some(std::mem::take(runs))
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
