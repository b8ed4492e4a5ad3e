//! A hash map from byte strings to small values.

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

use super::hash_index::HashIndex;

/// Number of key bytes stored beside the value, so that most look-ups access one entry and the index.
///
/// With a value of 12 bytes an entry has the size of a cache line. It is not aligned to one: the allocator could then
/// grow the list of entries only by copying it.
const INLINE_LENGTH: usize = 36;

/// A map from byte strings to values. Keys are compared by their bytes, not only by their hashes.
///
/// Not benchmarked against a `hashbrown::HashMap` whose keys are boxed slices.
pub(crate) struct ByteMap<V> {
    index: HashIndex,
    entries: Vec<Entry<V>>,
    /// The bytes of long keys after the first [`INLINE_LENGTH`].
    tails: Vec<u8>,
}

struct Entry<V> {
    hash: u32,
    /// Length of the key; `u32::MAX` for that length or more.
    length: u32,
    value: V,
    /// Start of the rest of the key in `tails`.
    tail_start: usize,
    head: [u8; INLINE_LENGTH],
}

/// A byte string with its hash.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    bytes: &'a [u8],
    hash: u32,
}

impl<'a> Key<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(bytes);
        let hash = hasher.finish();
        Self { bytes, hash: (hash ^ (hash >> 32)) as u32 }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the length as [`Entry::length`] stores it.
    fn length(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(u32::MAX)
    }
}

impl<V: Copy> ByteMap<V> {
    /// Returns the value of a key.
    #[inline]
    pub(crate) fn get(&self, key: Key<'_>) -> Option<V> {
        let number = self.index.find(key.hash, |number| {
            let entry = &self.entries[number as usize];
            entry.length == key.length() && self.key_eq(entry, key.bytes)
        })?;
        Some(self.entries[number as usize].value)
    }

    /// True if the key of the entry, which has the same length, consists of these bytes.
    #[inline]
    fn key_eq(&self, entry: &Entry<V>, bytes: &[u8]) -> bool {
        match bytes.split_at_checked(INLINE_LENGTH) {
            None => entry.head[..bytes.len()] == *bytes,
            Some((head, tail)) => entry.head == *head && self.tails[entry.tail_start..][..tail.len()] == *tail,
        }
    }

    /// Inserts a key that is not in the map.
    ///
    /// # Panics
    /// After 2³² keys.
    pub(crate) fn insert(&mut self, key: Key<'_>, value: V) {
        let number = u32::try_from(self.entries.len()).ok().filter(|number| *number < u32::MAX);
        let number = number.expect("fewer than 2^32 keys");
        self.index.reserve(self.entries.len() + 1, || self.entries.iter().map(|entry| entry.hash).zip(0..));
        self.index.insert(key.hash, number);
        let (tail_start, length) = (self.tails.len(), key.length());
        let mut entry = Entry { hash: key.hash, length, value, tail_start, head: [0; INLINE_LENGTH] };
        let (head, tail) = key.bytes.split_at(key.bytes.len().min(INLINE_LENGTH));
        entry.head[..head.len()].copy_from_slice(head);
        self.tails.extend_from_slice(tail);
        self.entries.push(entry);
    }
}

impl<V> Default for ByteMap<V> {
    fn default() -> Self {
        Self { index: HashIndex::default(), entries: Vec::new(), tails: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::{ByteMap, Key};

    #[test]
    fn finds_inserted_keys_only() {
        let mut map = ByteMap::default();
        assert_eq!(map.get(Key::new(b"")), None);
        let texts: Vec<Vec<u8>> = (0..3000).map(|n| format!("{n}").repeat(n % 40).into_bytes()).collect();
        let distinct: std::collections::BTreeSet<_> = texts.iter().collect();
        for (number, text) in distinct.iter().enumerate() {
            assert_eq!(map.get(Key::new(text)), None);
            map.insert(Key::new(text), number);
        }
        for (number, text) in distinct.iter().enumerate() {
            assert_eq!(map.get(Key::new(text)), Some(number));
            assert_eq!(map.get(Key::new(&[text, &b"x"[..]].concat())), None);
        }
    }
}
