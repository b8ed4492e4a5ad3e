//! A profile: how much each stack weighs.

mod batch;
pub(crate) mod byte_map;
mod frames;
mod hash_index;
mod multiply_divide;
mod sample_weight;
mod sort;
pub(crate) mod stacks;
mod weight;
mod weight_sums;

pub use batch::Batch;
pub use frames::{FrameId, Frames};
pub use multiply_divide::multiply_divide;
pub use sample_weight::SampleWeight;
pub use stacks::Stacks;
pub use weight::Weight;

use std::ops::Range;

use self::weight_sums::WeightSums;
use crate::Error;

/// The weights of one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// The weight before; zero in a profile that is not differential.
    pub before: Weight,
    /// The weight, or in a differential profile the weight after.
    pub after: Weight,
}

impl Weights {
    /// A plain weight.
    pub const fn plain(weight: Weight) -> Self {
        Self { before: Weight::ZERO, after: weight }
    }

    /// Whether both are whole numbers.
    pub fn are_whole(self) -> bool {
        self.before.is_whole() && self.after.is_whole()
    }

    /// How far apart the two are, whichever is larger.
    pub fn difference(self) -> Weight {
        self.after.saturating_sub(self.before).max(self.before.saturating_sub(self.after))
    }

    /// Adds, or tells that the sum does not fit.
    pub fn add(&mut self, other: Self) -> Result<(), Error> {
        let sums = (self.before.checked_add(other.before), self.after.checked_add(other.after));
        let (Some(before), Some(after)) = sums else { return Err(Error::Overflow) };
        *self = Self { before, after };
        Ok(())
    }
}

/// Stacks with their weights, equal stacks merged: the multiset that every filter reads, reshapes and writes.
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
    /// The frames that the stacks are made of.
    pub frames: Frames,
    stacks: Stacks,
    after: WeightSums,
    before: WeightSums,
    differential: bool,
    total: Weights,
    scratch: Vec<u32>,
    /// The stacks' numbers in the toolkit's order, where that is known already.
    order: Option<Vec<u32>>,
}

/// A stack as [`Profile::for_each_sorted`] hands it out.
#[derive(Clone, Copy, Debug)]
pub struct SortedStack<'a> {
    /// How many frames it has in common with the stack before it, from the root.
    pub shared: usize,
    /// Its number, in order of first appearance.
    pub number: u32,
    /// All its frames, root first.
    pub frames: &'a [FrameId],
    /// What it weighs.
    pub weights: Weights,
}

impl Profile {
    /// No stacks; `differential` says whether each will have a weight before and a weight after.
    pub fn new(differential: bool) -> Self {
        Self { differential, ..Self::default() }
    }

    /// Whether each stack has two weights.
    pub fn is_differential(&self) -> bool {
        self.differential
    }

    /// How many distinct stacks there are.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The sum of all weights.
    pub fn total(&self) -> Weights {
        self.total
    }

    /// The weights of all stacks, in no order that means anything.
    pub fn all_weights(&self) -> impl Iterator<Item = Weights> {
        (0..self.after.len() as u32).map(|number| self.weights(number))
    }

    /// Adds weight to a stack, root first. A stack without frames counts for nothing.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn add(&mut self, stack: &[FrameId], weights: Weights) -> Result<(), Error> {
        self.add_with_number(stack, weights).map(|_| ())
    }

    /// The same, and tells the stack's number: its place in order of first appearance.
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
        // The total did not overflow, so neither does a part of it.
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

    /// The same of one that is no longer needed; what finds its stacks goes first.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn absorb(&mut self, mut other: Self) -> Result<(), Error> {
        other.stacks.drop_index();
        self.merge(&other)
    }

    /// The same profile as the side before of a differential one.
    pub fn into_before(self) -> Self {
        let total = Weights { before: self.total.after, after: Weight::ZERO };
        let after = WeightSums::zero(self.after.len());
        Self { before: self.after, after, differential: true, total, ..self }
    }

    /// Gives every stack another weight, in the toolkit's order.
    ///
    /// # Errors
    /// Those of `weigh`, and [`Error::Overflow`] if the sum does not fit.
    pub fn map_weights(&mut self, mut weigh: impl FnMut(Weights) -> Result<Weights, Error>) -> Result<(), Error> {
        let order = self.order.take().unwrap_or_else(|| self.sort(1));
        self.total = Weights::default();
        for number in &order {
            let weights = weigh(self.weights(*number))?;
            self.total.add(weights)?;
            self.after.put(*number as usize, weights.after);
            if self.differential {
                self.before.put(*number as usize, weights.before);
            }
        }
        self.order = Some(order);
        Ok(())
    }

    /// Every stack in order of first appearance.
    pub fn for_each<E>(&self, mut each: impl FnMut(&[FrameId], Weights) -> Result<(), E>) -> Result<(), E> {
        let mut frames = Vec::new();
        for number in 0..self.len() as u32 {
            frames.clear();
            frames.extend(self.stacks.get(number).iter().map(|id| FrameId(*id)));
            each(&frames, self.weights(number))?;
        }
        Ok(())
    }

    /// Every stack in the toolkit's order: frame by frame, bytewise, a stack before its extensions.
    pub fn for_each_sorted<E>(&self, each: impl FnMut(SortedStack<'_>) -> Result<(), E>) -> Result<(), E> {
        match &self.order {
            Some(order) => self.for_each_ordered(order, each),
            None => self.for_each_ordered(&self.sort(1), each),
        }
    }

    /// The stacks in these places of an order that is known already.
    pub(crate) fn for_each_in<E>(
        &self,
        places: Range<usize>,
        each: impl FnMut(SortedStack<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let order = self.order.as_deref().unwrap_or_default();
        self.for_each_ordered(order.get(places).unwrap_or_default(), each)
    }

    fn for_each_ordered<E>(
        &self,
        order: &[u32],
        mut each: impl FnMut(SortedStack<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut frames: Vec<FrameId> = Vec::new();
        let mut row = Vec::new();
        // What stands far away is fetched for many stacks in a row, so that waiting for it overlaps.
        for numbers in order.chunks(64) {
            row.clear();
            row.extend(numbers.iter().map(|number| (*number, self.stacks.get(*number), self.weights(*number))));
            for (number, stack, weights) in &row {
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
        let weight = |sums: &WeightSums| sums.get(number).unwrap_or_default();
        Weights { before: weight(&self.before), after: weight(&self.after) }
    }

    /// Puts the stacks in order beforehand, in as many threads.
    pub(crate) fn presort(&mut self, threads: usize) {
        self.order = Some(self.sort(threads));
    }

    fn sort(&self, threads: usize) -> Vec<u32> {
        sort::sorted_order(&self.stacks, &self.frames.ranks(), threads)
    }
}
