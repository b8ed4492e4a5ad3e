//! A table from keys to numbers.
//!
//! A JVM counts its stacks up, and only the keys of the stacks of one chunk occur in it: most keys differ from their
//! neighbours by little, and their difference from the first one is the index in a vector. Others go to a hash map.

use rustc_hash::FxHashMap;

/// The number of a key that is not in the table.
const NONE: u32 = u32::MAX;

/// Number of elements of the vector for each key, at most. It bounds the memory, not the speed.
const SPARSENESS: u64 = 8;

/// Number of keys that the table assumes to have at least: a small vector may be emptier.
const FEW: u64 = 64;

/// Distinct keys, which are numbered from 0 in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct KeyTable {
    /// Number of keys.
    len: u32,
    /// The key of the first element of `near`.
    start: u64,
    /// The number of each key from `start` on.
    near: Vec<u32>,
    /// The numbers of all other keys.
    far: FxHashMap<u64, u32>,
}

impl KeyTable {
    /// Returns the number of a key.
    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<u32> {
        match self.near_index(key).and_then(|index| self.near.get(index)) {
            Some(number) => Some(*number).filter(|number| *number != NONE),
            None if self.far.is_empty() => None,
            None => self.far.get(&key).copied(),
        }
    }

    /// Returns the number of a key; a new key gets the next one. Returns `None` if there are too many keys.
    #[inline]
    pub(super) fn intern(&mut self, key: u64) -> Option<u32> {
        match self.get(key) {
            Some(number) => Some(number),
            None => self.insert(key),
        }
    }

    #[inline]
    fn near_index(&self, key: u64) -> Option<usize> {
        usize::try_from(key.wrapping_sub(self.start)).ok()
    }

    /// Adds a key that is not in the table.
    fn insert(&mut self, key: u64) -> Option<u32> {
        let number = self.len;
        self.len = number.checked_add(1).filter(|len| *len != NONE)?;
        let is_near = self.near_index(key).is_some_and(|index| index < self.near.len()) || self.extend(key);
        match self.near_index(key).filter(|_| is_near) {
            Some(index) => self.near[index] = number,
            None => drop(self.far.insert(key, number)),
        }
        Some(number)
    }

    /// Extends the vector to a key and beyond. Returns false if it would be too empty.
    fn extend(&mut self, key: u64) -> bool {
        let last = self.start.saturating_add((self.near.len() as u64).saturating_sub(1));
        let (first, last) = if self.near.is_empty() { (key, key) } else { (self.start.min(key), last.max(key)) };
        let span = last - first;
        if span >= SPARSENESS * (u64::from(self.len) + FEW) {
            return false;
        }
        let spare = span / 2 + FEW;
        let (first, last) = (
            if key == first { first.saturating_sub(spare) } else { first },
            if key == last { last.saturating_add(spare) } else { last },
        );
        let mut near = vec![NONE; (last - first) as usize + 1];
        let old = if self.near.is_empty() { 0 } else { (self.start - first) as usize };
        near[old..old + self.near.len()].copy_from_slice(&self.near);
        (self.start, self.near) = (first, near);
        let numbers = &mut self.near;
        self.far.retain(|key, number| {
            let place = usize::try_from(key.wrapping_sub(first)).ok().and_then(|index| numbers.get_mut(index));
            place.map(|place| *place = *number).is_none()
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{FEW, KeyTable, SPARSENESS};

    #[test]
    fn numbers_keys_in_order_of_appearance() {
        let upward: Vec<u64> = (1000..9000).collect();
        let downward: Vec<u64> = (0..5000).rev().collect();
        let both: Vec<u64> = (0..5000).flat_map(|step| [1 << 40 | (5000 + step), 1 << 40 | (5000 - step)]).collect();
        // Far ones, and then their neighbours: keys move from one part to the other.
        let mixed: Vec<u64> = (0..3000).flat_map(|step| [step * step * 7, 1_000_000 - step, u64::MAX - step]).collect();
        let scattered: Vec<u64> = (0..5000).map(|step: u64| step.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        for keys in [upward, downward, both, mixed, scattered, vec![u64::MAX, 0, 1, u64::MAX - 1]] {
            let (mut table, mut expected) = (KeyTable::default(), HashMap::new());
            for key in &keys {
                let next = expected.len() as u32;
                assert_eq!(table.get(*key), expected.get(key).copied());
                let number = *expected.entry(*key).or_insert(next);
                assert_eq!(table.intern(*key), Some(number), "{key}");
            }
            assert!(expected.iter().all(|(key, number)| table.get(*key) == Some(*number)));
            assert!((0..20_000).all(|key| table.get(key) == expected.get(&key).copied()));
            let bound = (3 * SPARSENESS / 2) * (expected.len() as u64 + FEW) + 2 * FEW;
            assert!(table.near.len() as u64 <= bound, "{} for {}", table.near.len(), expected.len());
        }
    }
}
