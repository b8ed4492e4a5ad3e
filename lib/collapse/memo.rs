//! What was found out about a text, found again by the text.

use std::hash::Hasher as _;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// Values by a key of two texts. Equality is by bytes and never by hash alone.
pub(super) struct Memo<V> {
    keys: Vec<u8>,
    entries: HashTable<Entry<V>>,
}

#[derive(Clone, Copy)]
struct Entry<V> {
    hash: u64,
    start: usize,
    middle: usize,
    end: usize,
    value: V,
}

/// A key of two texts; the second is often empty.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    first: &'a [u8],
    second: &'a [u8],
    hash: u64,
}

impl<'a> Key<'a> {
    pub(super) fn new(first: &'a [u8], second: &'a [u8]) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(first);
        if !second.is_empty() {
            hasher.write(second);
        }
        Self { first, second, hash: hasher.finish() }
    }
}

impl<V: Copy> Memo<V> {
    pub(super) fn get(&self, key: Key<'_>) -> Option<V> {
        let same = |entry: &Entry<V>| {
            entry.hash == key.hash
                && &self.keys[entry.start..entry.middle] == key.first
                && &self.keys[entry.middle..entry.end] == key.second
        };
        self.entries.find(key.hash, same).map(|entry| entry.value)
    }

    /// Remembers the value of a key that is not there yet.
    pub(super) fn insert(&mut self, key: Key<'_>, value: V) {
        let start = self.keys.len();
        self.keys.extend_from_slice(key.first);
        let middle = self.keys.len();
        self.keys.extend_from_slice(key.second);
        let entry = Entry { hash: key.hash, start, middle, end: self.keys.len(), value };
        self.entries.insert_unique(key.hash, entry, |entry| entry.hash);
    }
}

impl<V> Default for Memo<V> {
    fn default() -> Self {
        Self { keys: Vec::new(), entries: HashTable::new() }
    }
}
