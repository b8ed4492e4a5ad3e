//! Interned stacks: sequences of `u32` ids, each stored once.
//!
//! The ids are frames in a [`Profile`](super::Profile), addresses in a recording. A stack is kept whole and found by
//! one look-up, rather than as a path in a tree with a look-up a frame: on real profiles the tree's random accesses cost
//! more than the few ids that it saves. For the same reason the table has where a stack's ids stand, not its number: memory
//! that is far away is touched twice a look-up and not five times.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::hash_index::HashIndex;

/// Every distinct stack, once, under a dense number.
#[derive(Debug, Default)]
pub struct Stacks {
    /// Of each stack its number, how many ids it has, and the ids.
    ids: Vec<u32>,
    /// Where each stands in `ids`.
    starts: Vec<u32>,
    /// Finds those places.
    table: HashIndex,
}

/// A stack that may be the one that is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate(u32);

impl Stacks {
    /// How many distinct stacks there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The stack's number; the next one if it was not seen before.
    ///
    /// # Panics
    /// After 2³² ids of distinct stacks.
    pub fn intern(&mut self, stack: &[u32]) -> u32 {
        self.intern_hashed(hash_ids(stack), stack)
    }

    /// Where a stack of this hash may stand, at first sight.
    #[inline]
    pub(crate) fn candidate(&self, hash: u32) -> Option<Candidate> {
        self.table.first(hash).map(Candidate)
    }

    /// The number of the candidate, if it is the stack.
    #[inline]
    pub(crate) fn confirm(&self, candidate: Candidate, stack: &[u32]) -> Option<u32> {
        (stack_at(&self.ids, candidate.0) == stack).then(|| self.ids[candidate.0 as usize])
    }

    pub(crate) fn intern_hashed(&mut self, hash: u32, stack: &[u32]) -> u32 {
        let there = || self.starts.iter().map(|start| (hash_ids(stack_at(&self.ids, *start)), *start));
        self.table.make_room(self.starts.len() + 1, there);
        if let Some(start) = self.table.find(hash, |start| stack_at(&self.ids, start) == stack) {
            return self.ids[start as usize];
        }
        let end = u32::try_from(self.ids.len() + stack.len() + 2).expect("fewer than 2^32 ids");
        let (number, length) = (self.starts.len() as u32, stack.len() as u32);
        let start = end - length - 2;
        self.table.put(hash, start);
        self.ids.extend([number, length]);
        self.ids.extend_from_slice(stack);
        self.starts.push(start);
        number
    }

    /// The ids of a stack, root first.
    pub fn get(&self, number: u32) -> &[u32] {
        stack_at(&self.ids, self.starts[number as usize])
    }

    /// Gives up the table until a stack is added.
    pub(super) fn drop_index(&mut self) {
        self.table = HashIndex::default();
    }
}

#[inline]
fn stack_at(ids: &[u32], start: u32) -> &[u32] {
    let start = start as usize;
    &ids[start + 2..][..ids[start + 1] as usize]
}

#[inline]
pub(crate) fn hash_ids(stack: &[u32]) -> u32 {
    let mut hasher = FxHasher::default();
    for id in stack {
        hasher.write_u32(*id);
    }
    let hash = hasher.finish();
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::Stacks;

    #[test]
    fn each_stack_has_its_number_however_often_the_table_is_made_anew() {
        let mut stacks = Stacks::default();
        let stack = |number: u32| [number % 7, number, number / 3];
        for number in 0..10_000 {
            assert_eq!(stacks.intern(&stack(number)), number);
            if number % 1000 == 0 {
                stacks.drop_index();
            }
            assert_eq!(stacks.intern(&stack(number / 2)), number / 2);
        }
        assert_eq!(stacks.len(), 10_000);
        assert!((0..10_000).all(|number| stacks.get(number) == stack(number)));
    }
}
