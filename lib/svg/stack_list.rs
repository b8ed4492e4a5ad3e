//! A list of stacks as they come from the input, with their frames as numbers.

use crate::Error;
use crate::folded::{LineKind, StackSink};
use crate::profile::{FrameId, Frames, Weight, Weights};

/// The end of a stack in [`StackList::ids`].
pub(super) const END: u32 = u32::MAX;

/// Bit of [`ListedStack::weight`]: the other bits are an index into [`StackList::large_weights`].
const IS_INDEX: u64 = 1 << 63;

/// Stacks in input order. Unlike a profile, it does not merge equal stacks, so that adding a stack is cheap.
pub(super) struct StackList {
    pub(super) frames: Frames,
    /// The frame IDs of all stacks, root first, with [`END`] after each stack.
    pub(super) ids: Vec<u32>,
    /// The most entries that `ids` may have.
    max_ids: usize,
    pub(super) stacks: Vec<ListedStack>,
    /// Weights that do not fit into [`ListedStack::weight`].
    large_weights: Vec<Weights>,
    pub(super) differential: bool,
}

/// A stack of a [`StackList`].
#[derive(Clone, Copy)]
pub(super) struct ListedStack {
    /// Index of its first frame in [`StackList::ids`].
    pub(super) start: usize,
    /// The weight in millionths, or an index if [`IS_INDEX`] is set. Small, because sorting moves it.
    pub(super) weight: u64,
}

impl StackList {
    /// Creates an empty list. Adding fails once it has more than `max_ids` frames, where the end of a stack counts as
    /// one.
    pub(super) fn new(max_ids: usize) -> Self {
        let (frames, ids, stacks, large_weights) = Default::default();
        Self { frames, ids, max_ids, stacks, large_weights, differential: false }
    }

    /// Returns the weights of a stack of this list.
    #[inline]
    pub(super) fn weights(&self, stack: ListedStack) -> Weights {
        match stack.weight & IS_INDEX {
            0 => Weights::plain(Weight::from_millionths(stack.weight.into())),
            _ => self.large_weights[(stack.weight & !IS_INDEX) as usize],
        }
    }

    /// Returns `weights` in the form of [`ListedStack::weight`].
    fn store_weights(&mut self, weights: Weights) -> u64 {
        let small = u64::try_from(weights.after.millionths()).ok().filter(|weight| weight & IS_INDEX == 0);
        small.filter(|_| weights.before.is_zero()).unwrap_or_else(|| {
            self.large_weights.push(weights);
            IS_INDEX | (self.large_weights.len() as u64 - 1)
        })
    }
}

impl StackSink for StackList {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn begin(&mut self, kind: LineKind) {
        self.differential = kind == LineKind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        let start = self.ids.len();
        self.ids.extend(stack.iter().map(|frame| frame.index() as u32));
        self.ids.push(END);
        if self.ids.len() > self.max_ids {
            return Err(Error::Invalid("more frames than bytes".to_owned()));
        }
        let weight = self.store_weights(weights);
        self.stacks.push(ListedStack { start, weight });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::StackList;
    use crate::folded::StackSink as _;
    use crate::profile::{Weight, Weights};

    #[test]
    fn returns_small_large_and_differential_weights() {
        let mut list = StackList::new(100);
        let frame = list.frames().intern(b"main");
        let large = Weight::from_millionths(u128::from(u64::MAX));
        let all = [
            Weights::plain(Weight::ZERO),
            Weights::plain(large),
            Weights { before: Weight::ONE, after: Weight::ZERO },
            Weights { before: Weight::ONE, after: large },
        ];
        for weights in all {
            list.add(&[frame], 0, weights).unwrap();
        }
        let stored: Vec<_> = list.stacks.iter().map(|stack| list.weights(*stack)).collect();
        assert_eq!(stored, all);
    }

    #[test]
    fn rejects_more_frames_than_the_limit() {
        let mut list = StackList::new(4);
        let frame = list.frames().intern(b"main");
        list.add(&[frame], 0, Weights::default()).unwrap();
        list.add(&[frame], 0, Weights::default()).unwrap();
        assert!(list.add(&[frame], 0, Weights::default()).is_err());
    }
}
