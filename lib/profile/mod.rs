//! A profile: stacks and their weights.

mod batch;
pub(crate) mod byte_map;
pub(crate) mod frames;
mod hash_index;
mod multiply_divide;
mod sample_weight;
mod share;
mod sort;
pub(crate) mod stacks;
mod weight;
mod weight_sums;

pub use batch::Batch;
pub use frames::{FrameId, Frames};
pub use multiply_divide::multiply_divide;
pub use sample_weight::SampleWeight;
pub(crate) use share::is_at_least;
pub use stacks::Stacks;
pub use weight::{Weight, Weights};

use std::ops::Range;

use self::weight_sums::WeightSums;
use crate::Error;

/// Distinct stacks with their weights: what every tool reads, transforms and writes.
///
/// # Example
/// ```
/// use fgkit::profile::{Profile, Weight, Weights};
/// let mut profile = Profile::new(false);
/// let stack = [profile.frames.intern(b"main"), profile.frames.intern(b"parse")];
/// profile.add(&stack, Weights::plain(Weight::new(2)))?;
/// profile.add(&stack, Weights::plain(Weight::new(3)))?;
/// assert_eq!(profile.total().after, Weight::new(5));
/// # Ok::<(), fgkit::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Profile {
    /// The names of all frames.
    pub frames: Frames,
    stacks: Stacks,
    after: WeightSums,
    before: WeightSums,
    differential: bool,
    total: Weights,
    /// The stack that is being added; reused to save allocations.
    scratch: Vec<u32>,
    /// The numbers of the stacks in sorted order, if they have been sorted.
    order: Option<Vec<u32>>,
}

/// A stack that [`Profile::for_each_sorted`] passes on.
#[derive(Clone, Copy, Debug)]
pub struct SortedStack<'a> {
    /// Number of frames, from the root, that it shares with the previous stack.
    pub shared: usize,
    /// Its number, from 0 in order of first appearance.
    pub number: u32,
    /// Its frames, root first.
    pub frames: &'a [FrameId],
    /// The weights of the stack.
    pub weights: Weights,
}

impl Profile {
    /// Creates a profile without stacks. In a differential one each stack has a weight before and a weight after.
    pub fn new(differential: bool) -> Self {
        Self { differential, ..Self::default() }
    }

    /// True if each stack has a weight before and a weight after.
    pub fn is_differential(&self) -> bool {
        self.differential
    }

    /// Returns the number of distinct stacks.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// True if there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// True if the differences that are not significant were flattened: see [`Frames::is_flattened_mark`].
    pub fn is_flattened(&self) -> bool {
        self.differential
            && (0..self.len() as u32).any(|number| match self.stacks.get(number) {
                [id] => self.frames.is_flattened_mark(&[FrameId(*id)], self.weights(number)),
                _ => false,
            })
    }

    /// Returns the sums of all weights.
    pub fn total(&self) -> Weights {
        self.total
    }

    /// Returns the sums of all weights but those of lost samples: see [`Frames::is_lost`].
    pub fn measured_total(&self) -> Weights {
        self.total.saturating_sub(self.lost())
    }

    /// Returns the weights of lost samples.
    pub fn lost(&self) -> Weights {
        self.lost_number().map_or_else(Weights::default, |number| self.weights(number))
    }

    /// Returns the weights of all stacks but that of lost samples, in order of first appearance.
    pub fn measured_weights(&self) -> impl Iterator<Item = Weights> {
        let lost = self.lost_number();
        (0..self.len() as u32).filter(move |number| Some(*number) != lost).map(|number| self.weights(number))
    }

    /// Returns the number of the stack of lost samples.
    fn lost_number(&self) -> Option<u32> {
        (0..self.len() as u32)
            .find(|number| matches!(self.stacks.get(*number), [id] if self.frames.is_lost(&[FrameId(*id)])))
    }

    /// Returns the weights of all stacks, in order of first appearance.
    pub fn all_weights(&self) -> impl Iterator<Item = Weights> {
        (0..self.after.len() as u32).map(|number| self.weights(number))
    }

    /// Adds weights to a stack, root first. An empty stack is ignored.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn add(&mut self, stack: &[FrameId], weights: Weights) -> Result<(), Error> {
        self.add_with_number(stack, weights).map(|_| ())
    }

    /// Like [`add`](Self::add), and returns the stack's number, from 0 in order of first appearance.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn add_with_number(&mut self, stack: &[FrameId], weights: Weights) -> Result<Option<u32>, Error> {
        let Some((leaf, callers)) = stack.split_last() else { return Ok(None) };
        self.scratch.clear();
        self.scratch.extend(callers.iter().map(|frame| frame.0));
        self.scratch.push(self.frames.as_leaf(*leaf).0);
        let number = self.stacks.intern(&self.scratch);
        self.add_weights(number as usize, weights)?;
        Ok(Some(number))
    }

    fn add_weights(&mut self, number: usize, weights: Weights) -> Result<(), Error> {
        self.total.add(weights)?;
        if number == self.after.len() {
            self.order = None;
        }
        // No sum exceeds the total, which did not overflow.
        self.after.add(number, weights.after).ok_or(Error::Overflow)?;
        if self.differential {
            self.before.add(number, weights.before).ok_or(Error::Overflow)?;
        }
        Ok(())
    }

    /// Adds all stacks of another profile.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        let ids = self.frames.intern_all(&other.frames);
        let (mut batch, mut stack) = (Batch::default(), Vec::new());
        for number in 0..other.len() as u32 {
            stack.clear();
            stack.extend(other.stacks.get(number).iter().map(|id| ids[*id as usize]));
            batch.push(&stack, other.weights(number), &self.frames);
            if batch.is_full() {
                self.add_batch(&mut batch)?;
            }
        }
        self.add_batch(&mut batch)
    }

    /// Like [`merge`](Self::merge), but consumes the other profile and frees its hash index first, which saves memory.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn absorb(&mut self, mut other: Self) -> Result<(), Error> {
        other.stacks.drop_index();
        self.merge(&other)
    }

    /// Turns the profile into a differential one whose weights are all weights before.
    pub fn into_before(self) -> Self {
        let total = Weights { before: self.total.after, after: Weight::ZERO };
        let after = WeightSums::zeros(self.after.len());
        Self { before: self.after, after, differential: true, total, ..self }
    }

    /// Replaces the weights of every stack. `map` is called for the stacks in sorted order.
    ///
    /// # Errors
    /// Those of `map`, and [`Error::Overflow`] if the sum does not fit.
    pub fn map_weights(&mut self, mut map: impl FnMut(Weights) -> Result<Weights, Error>) -> Result<(), Error> {
        let order = self.order.take().unwrap_or_else(|| self.sorted_order(1));
        self.total = Weights::default();
        for number in &order {
            let weights = map(self.weights(*number))?;
            self.total.add(weights)?;
            self.after.set(*number as usize, weights.after);
            if self.differential {
                self.before.set(*number as usize, weights.before);
            }
        }
        self.order = Some(order);
        Ok(())
    }

    /// Calls `each` for every stack, in order of first appearance.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn for_each<E>(&self, mut each: impl FnMut(&[FrameId], Weights) -> Result<(), E>) -> Result<(), E> {
        let mut frames = Vec::new();
        for number in 0..self.len() as u32 {
            frames.clear();
            frames.extend(self.stacks.get(number).iter().map(|id| FrameId(*id)));
            each(&frames, self.weights(number))?;
        }
        Ok(())
    }

    /// Calls `each` for every stack in sorted order: frame by frame, bytewise, a stack before its extensions.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn for_each_sorted<E>(&self, each: impl FnMut(SortedStack<'_>) -> Result<(), E>) -> Result<(), E> {
        match &self.order {
            Some(order) => self.for_each_ordered(order, each),
            None => self.for_each_ordered(&self.sorted_order(1), each),
        }
    }

    /// Like [`for_each_sorted`](Self::for_each_sorted), for a range of the sorted order. [`presort`](Self::presort)
    /// must have been called.
    pub(crate) fn for_each_in_range<E>(
        &self,
        range: Range<usize>,
        each: impl FnMut(SortedStack<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let order = self.order.as_deref().unwrap_or_default();
        self.for_each_ordered(order.get(range).unwrap_or_default(), each)
    }

    fn for_each_ordered<E>(
        &self,
        order: &[u32],
        mut each: impl FnMut(SortedStack<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut frames: Vec<FrameId> = Vec::new();
        let mut chunk = Vec::new();
        // Stacks are looked up in chunks, so that the CPU overlaps their cache misses.
        for numbers in order.chunks(64) {
            chunk.clear();
            chunk.extend(numbers.iter().map(|number| (*number, self.stacks.get(*number), self.weights(*number))));
            for (number, stack, weights) in &chunk {
                let shared = frames.iter().zip(*stack).take_while(|(a, b)| a.0 == **b).count();
                frames.truncate(shared);
                frames.extend(stack[shared..].iter().map(|id| FrameId(*id)));
                each(SortedStack { shared, number: *number, frames: &frames, weights: *weights })?;
            }
        }
        Ok(())
    }

    fn weights(&self, number: u32) -> Weights {
        let number = number as usize;
        Weights {
            before: self.before.get(number).unwrap_or_default(),
            after: self.after.get(number).unwrap_or_default(),
        }
    }

    /// Sorts the stacks now, on up to `threads` threads.
    pub(crate) fn presort(&mut self, threads: usize) {
        self.order = Some(self.sorted_order(threads));
    }

    fn sorted_order(&self, threads: usize) -> Vec<u32> {
        sort::sorted_order(&self.stacks, &self.frames.ranks(), threads)
    }
}
