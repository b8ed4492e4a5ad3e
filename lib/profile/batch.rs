//! Adding stacks by the dozen.
//!
//! A look-up waits for memory that is far away. One after the other, with other work between them, look-ups wait for it
//! each for itself; in a row, the processor has several under way at once.

use super::stacks::{Candidate, hash_ids};
use super::{FrameId, Frames, Profile, Weights};
use crate::Error;

/// So many stacks are added together.
const FULL: usize = 64;

/// Stacks that wait to be added to a profile: always to the same one.
#[derive(Debug, Default)]
pub struct Batch {
    ids: Vec<u32>,
    stacks: Vec<Waiting>,
    candidates: Vec<Option<Candidate>>,
}

#[derive(Debug)]
struct Waiting {
    hash: u32,
    end: usize,
    weights: Weights,
}

impl Batch {
    /// Whether it is time to add them.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.stacks.len() >= FULL
    }

    /// Takes a stack, root first, whose frames are `frames`. A stack without frames counts for nothing.
    #[inline]
    pub fn push(&mut self, stack: &[FrameId], weights: Weights, frames: &Frames) {
        let Some((leaf, callers)) = stack.split_last() else { return };
        let start = self.ids.len();
        self.ids.extend(callers.iter().map(|frame| frame.0));
        self.ids.push(frames.as_leaf(*leaf).0);
        self.stacks.push(Waiting { hash: hash_ids(&self.ids[start..]), end: self.ids.len(), weights });
    }

    fn iter(&self) -> impl Iterator<Item = (&Waiting, &[u32])> {
        let starts = std::iter::once(0).chain(self.stacks.iter().map(|stack| stack.end));
        starts.zip(&self.stacks).map(|(start, stack)| (stack, &self.ids[start..stack.end]))
    }
}

impl Profile {
    /// Adds the stacks of a batch, which is empty then.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn add_batch(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let stacks = &self.stacks;
        let mut candidates = std::mem::take(&mut batch.candidates);
        candidates.extend(batch.stacks.iter().map(|waiting| stacks.candidate(waiting.hash)));
        for (found, (waiting, ids)) in candidates.drain(..).zip(batch.iter()) {
            let number = found.and_then(|candidate| self.stacks.confirm(candidate, ids));
            let number = number.unwrap_or_else(|| self.stacks.intern_hashed(waiting.hash, ids));
            self.add_weights(number as usize, waiting.weights)?;
        }
        batch.candidates = candidates;
        batch.stacks.clear();
        batch.ids.clear();
        Ok(())
    }
}
