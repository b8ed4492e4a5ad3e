//! Adds up the weights of equal stacks before they are parsed.

use std::hash::Hasher as _;
use std::ops::Range;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::Error;
use crate::profile::Weights;

/// Number of bytes of stacks that are kept, with their sums.
const CAPACITY: usize = if cfg!(test) { 1 << 16 } else { 16 << 20 };

/// Number of stacks after which a text whose stacks are not repeated is parsed as it is.
const TRIAL: u64 = 1 << 12;

/// One stack of this many must be a repetition, or looking for them is taken to cost more than it saves.
const MIN_SHARE: u64 = 8;

/// Sums of the weights of stacks, by their text.
#[derive(Default)]
pub(super) struct RepeatedStacks {
    /// The kept stacks, one after another.
    text: Vec<u8>,
    sums: Vec<StackSum>,
    by_text: HashTable<u32>,
    /// Numbers of all stacks, and of those that were kept already.
    added: u64,
    repeated: u64,
}

struct StackSum {
    hash: u64,
    /// The stack in [`RepeatedStacks::text`].
    text: Range<usize>,
    weights: Weights,
}

impl RepeatedStacks {
    /// True if a stack of this length can be added without removing others first.
    pub(super) fn has_room(&self, length: usize) -> bool {
        let used = self.text.len() + self.sums.len() * size_of::<StackSum>();
        used == 0 || used + length <= CAPACITY
    }

    /// True if too few stacks were repeated.
    pub(super) fn are_rare(&self) -> bool {
        self.added >= TRIAL && self.repeated * MIN_SHARE < self.added
    }

    /// Adds the weights of a stack.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the sum does not fit.
    #[inline]
    pub(super) fn add(&mut self, stack: &[u8], weights: Weights) -> Result<(), Error> {
        let mut hasher = FxHasher::default();
        hasher.write(stack);
        let hash = hasher.finish();
        let (sums, text) = (&mut self.sums, &mut self.text);
        self.added += 1;
        let found = self.by_text.find(hash, |number| {
            let sum = &sums[*number as usize];
            sum.hash == hash && text[sum.text.clone()] == *stack
        });
        if let Some(number) = found {
            self.repeated += 1;
            return sums[*number as usize].weights.add(weights);
        }
        let number = sums.len() as u32;
        self.by_text.insert_unique(hash, number, |number| sums[*number as usize].hash);
        let start = text.len();
        text.extend_from_slice(stack);
        sums.push(StackSum { hash, text: start..text.len(), weights });
        Ok(())
    }

    /// Calls `each` for all stacks in the order in which they were added, and removes them.
    ///
    /// # Errors
    /// The first error of `each`.
    pub(super) fn take_all(&mut self, mut each: impl FnMut(&[u8], Weights) -> Result<(), Error>) -> Result<(), Error> {
        self.by_text.clear();
        let result = self.sums.drain(..).try_for_each(|sum| each(&self.text[sum.text], sum.weights));
        self.text.clear();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, RepeatedStacks, TRIAL};
    use crate::profile::{Weight, Weights};

    fn plain(weight: u64) -> Weights {
        Weights::plain(Weight::new(weight))
    }

    fn take_all(stacks: &mut RepeatedStacks, found: &mut Vec<(String, Weights)>) {
        stacks
            .take_all(|stack, weights| {
                found.push((String::from_utf8(stack.to_vec()).unwrap(), weights));
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn adds_up_equal_stacks_in_their_order() {
        let mut stacks = RepeatedStacks::default();
        for (stack, weight) in [("b;c", 2), ("a", 1), ("b;c", 5), ("b;", 9)] {
            stacks.add(stack.as_bytes(), plain(weight)).unwrap();
        }
        let mut found = Vec::new();
        take_all(&mut stacks, &mut found);
        take_all(&mut stacks, &mut found);
        stacks.add(b"a", plain(3)).unwrap();
        take_all(&mut stacks, &mut found);
        let expected = [("b;c", 7), ("a", 1), ("b;", 9), ("a", 3)];
        assert_eq!(found, expected.map(|(stack, weight)| (stack.to_owned(), plain(weight))));
    }

    #[test]
    fn keeps_little_and_notices_that_no_stack_is_repeated() {
        let mut stacks = RepeatedStacks::default();
        assert!(stacks.has_room(CAPACITY + 1), "a stack of any length is read");
        stacks.add(&vec![b'x'; CAPACITY], plain(1)).unwrap();
        assert!(!stacks.has_room(1));
        for number in 0..TRIAL * 8 {
            assert!(number < TRIAL || !stacks.are_rare());
            stacks.add(if number % 7 == 0 { b"a" } else { b"b" }, plain(1)).unwrap();
        }
        let mut stacks = RepeatedStacks::default();
        for number in 0..TRIAL {
            stacks.add(format!("{}", number - number % 11 / 10).as_bytes(), plain(1)).unwrap();
        }
        assert!(stacks.are_rare());
    }
}
