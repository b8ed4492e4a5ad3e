//! Adds stacks to a profile in batches.
//!
//! Nearly every look-up of a stack waits for a cache miss. In a batch the look-ups are consecutive, so that the CPU
//! overlaps their cache misses.

use super::stacks::{Candidate, hash_ids};
use super::weight::Weights;
use super::{FrameId, Frames, Profile};
use crate::Error;

/// Number of stacks in a full batch.
const CAPACITY: usize = 64;

/// Stacks to be added to a profile. A batch is used with one profile only.
#[derive(Debug, Default)]
pub struct Batch {
    /// The frame ids of all stacks, one after another.
    ids: Vec<u32>,
    stacks: Vec<PendingStack>,
    candidates: Vec<Option<Candidate>>,
}

#[derive(Debug)]
struct PendingStack {
    hash: u32,
    /// End of its ids in [`Batch::ids`].
    end: usize,
    weights: Weights,
}

impl Batch {
    /// True if the batch should be added now.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.stacks.len() >= CAPACITY
    }

    /// Appends a stack, root first, whose ids are those of `frames`. An empty stack is ignored.
    #[inline]
    pub fn push(&mut self, stack: &[FrameId], weights: Weights, frames: &Frames) {
        let Some((leaf, callers)) = stack.split_last() else { return };
        let start = self.ids.len();
        self.ids.extend(callers.iter().map(|frame| frame.0));
        self.ids.push(frames.as_leaf(*leaf).0);
        self.stacks.push(PendingStack { hash: hash_ids(&self.ids[start..]), end: self.ids.len(), weights });
    }

    /// Returns the stacks with their ids.
    fn iter(&self) -> impl Iterator<Item = (&PendingStack, &[u32])> {
        let starts = std::iter::once(0).chain(self.stacks.iter().map(|stack| stack.end));
        starts.zip(&self.stacks).map(|(start, stack)| (stack, &self.ids[start..stack.end]))
    }
}

impl Profile {
    /// Adds the stacks of a batch and empties it.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn add_batch(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let stacks = &self.stacks;
        let mut candidates = std::mem::take(&mut batch.candidates);
        candidates.extend(batch.stacks.iter().map(|stack| stacks.candidate(stack.hash)));
        for (candidate, (stack, ids)) in candidates.drain(..).zip(batch.iter()) {
            let number = candidate.and_then(|candidate| self.stacks.confirm(candidate, ids));
            let number = number.unwrap_or_else(|| self.stacks.intern_hashed(stack.hash, ids));
            self.add_weights(number as usize, stack.weights)?;
        }
        batch.candidates = candidates;
        batch.stacks.clear();
        batch.ids.clear();
        Ok(())
    }
}
