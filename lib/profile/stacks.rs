//! An interner of stacks: sequences of `u32` ids, each stored once.
//!
//! The ids are frames in a [`Profile`](super::Profile) and addresses in a recording. A stack is stored whole and found
//! by one look-up. A call tree would need a look-up per frame: on real profiles its random memory accesses cost more
//! than the ids that it saves. For the same reason the hash index contains the offset of a stack's ids and not its
//! number: a look-up then misses the CPU cache twice and not five times.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::hash_index::HashIndex;

/// An interner of stacks, which are numbered from 0 in order of first appearance.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// For each stack its number, its length, and its ids.
    ids: Vec<u32>,
    /// Offset of each stack in `ids`.
    starts: Vec<u32>,
    /// Finds the offset of a stack by its hash.
    index: HashIndex,
}

/// The offset of a stack that may be the one searched for: only the hash was compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate(u32);

impl Stacks {
    /// Returns the number of distinct stacks.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// True if there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the stack's number; a new stack gets the next one.
    ///
    /// # Panics
    /// After 2³² ids of distinct stacks.
    pub fn intern(&mut self, stack: &[u32]) -> u32 {
        self.intern_hashed(hash_ids(stack), stack)
    }

    /// Returns the likely stack with this hash, without reading its ids: only the first slot of a search is read.
    #[inline]
    pub(crate) fn candidate(&self, hash: u32) -> Option<Candidate> {
        self.index.home(hash).map(Candidate)
    }

    /// Returns the number of the candidate if it is the stack searched for.
    #[inline]
    pub(crate) fn confirm(&self, candidate: Candidate, stack: &[u32]) -> Option<u32> {
        (stack_at(&self.ids, candidate.0) == stack).then(|| self.ids[candidate.0 as usize])
    }

    /// Like [`intern`](Self::intern), with the result of [`hash_ids`].
    pub(crate) fn intern_hashed(&mut self, hash: u32, stack: &[u32]) -> u32 {
        self.index.reserve(self.starts.len() + 1, || {
            self.starts.iter().map(|start| (hash_ids(stack_at(&self.ids, *start)), *start))
        });
        if let Some(start) = self.index.find(hash, |start| stack_at(&self.ids, start) == stack) {
            return self.ids[start as usize];
        }
        let end = u32::try_from(self.ids.len() + stack.len() + 2).expect("fewer than 2^32 ids");
        let (number, length) = (self.starts.len() as u32, stack.len() as u32);
        let start = end - length - 2;
        self.index.insert(hash, start);
        self.ids.extend([number, length]);
        self.ids.extend_from_slice(stack);
        self.starts.push(start);
        number
    }

    /// Returns the ids of a stack, root first.
    pub fn get(&self, number: u32) -> &[u32] {
        stack_at(&self.ids, self.starts[number as usize])
    }

    /// Frees the hash index. It is built again when a stack is added.
    pub(super) fn drop_index(&mut self) {
        self.index = HashIndex::default();
    }
}

#[inline]
fn stack_at(ids: &[u32], start: u32) -> &[u32] {
    let start = start as usize;
    &ids[start + 2..][..ids[start + 1] as usize]
}

/// Hashes a stack for [`Stacks::candidate`] and [`Stacks::intern_hashed`].
#[inline]
pub(crate) fn hash_ids(stack: &[u32]) -> u32 {
    let mut hasher = FxHasher::default();
    // A multiplication waits for the one before it, so two ids share one.
    let mut pairs = stack.chunks_exact(2);
    for pair in &mut pairs {
        hasher.write_u64(u64::from(pair[0]) | u64::from(pair[1]) << 32);
    }
    for id in pairs.remainder() {
        hasher.write_u32(*id);
    }
    let hash = hasher.finish();
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::Stacks;

    fn stack(number: u32) -> [u32; 3] {
        [number % 7, number, number / 3]
    }

    #[test]
    fn numbers_are_stable_when_the_index_is_rebuilt() {
        let mut stacks = Stacks::default();
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
