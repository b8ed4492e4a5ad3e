//! Interned stacks: sequences of `u32` ids, each stored once.
//!
//! The ids are frames in a [`Profile`](super::Profile), addresses in a recording. A stack is kept whole and found by
//! one look-up, rather than as a path in a tree with a look-up a frame: on real profiles the tree's random accesses cost
//! more than the few ids that it saves.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// Every distinct stack, once, under a dense number.
#[derive(Debug, Default)]
pub struct Stacks {
    ids: Vec<u32>,
    ends: Vec<usize>,
    by_ids: HashTable<(u32, u32)>,
}

impl Stacks {
    /// How many distinct stacks there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The stack's number; the next one if it was not seen before.
    ///
    /// # Panics
    /// After 2³² distinct stacks.
    pub fn intern(&mut self, stack: &[u32]) -> u32 {
        let hash = hash_ids(stack);
        let tag = hash as u32;
        let (ids, ends) = (&self.ids, &self.ends);
        let same = |(number, other): &(u32, u32)| *other == tag && slice(ids, ends, *number) == stack;
        if let Some((number, _)) = self.by_ids.find(hash, same) {
            return *number;
        }
        let number = u32::try_from(self.ends.len()).expect("fewer than 2^32 distinct stacks");
        self.ids.extend_from_slice(stack);
        self.ends.push(self.ids.len());
        let (ids, ends) = (&self.ids, &self.ends);
        self.by_ids.insert_unique(hash, (number, tag), |(number, _)| hash_ids(slice(ids, ends, *number)));
        number
    }

    /// The ids of a stack, root first.
    pub fn get(&self, number: u32) -> &[u32] {
        slice(&self.ids, &self.ends, number)
    }
}

fn slice<'a>(ids: &'a [u32], ends: &[usize], number: u32) -> &'a [u32] {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &ids[start..ends[number]]
}

fn hash_ids(stack: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    for id in stack {
        hasher.write_u32(*id);
    }
    hasher.finish()
}
