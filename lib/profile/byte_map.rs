//! What was found out about a text, found again by the text.

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

use super::hash_index::HashIndex;

/// So much of a key stands beside its value, so that most look-ups touch little memory beyond the table. With a value of
/// twelve bytes, an entry is as long as a cache line; it is not aligned as one, as then the list could only grow by being
/// copied.
const INLINE: usize = 36;

/// Values by text. Equality is by bytes and never by hash alone.
pub(crate) struct ByteMap<V> {
    table: HashIndex,
    entries: Vec<Entry<V>>,
    /// What does not stand in the entries, of long keys.
    tails: Vec<u8>,
}

struct Entry<V> {
    hash: u32,
    length: u32,
    value: V,
    /// Where the key's rest stands.
    tail: usize,
    start: [u8; INLINE],
}

/// A text with its hash.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    text: &'a [u8],
    hash: u32,
}

impl<'a> Key<'a> {
    #[inline]
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(text);
        let hash = hasher.finish();
        Self { text, hash: (hash ^ (hash >> 32)) as u32 }
    }

    pub(crate) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The length as an entry has it.
    fn length(&self) -> u32 {
        u32::try_from(self.text.len()).unwrap_or(u32::MAX)
    }
}

impl<V: Copy> ByteMap<V> {
    #[inline]
    pub(crate) fn get(&self, key: Key<'_>) -> Option<V> {
        let number = self.table.find(key.hash, |number| {
            let entry = &self.entries[number as usize];
            entry.length == key.length() && self.holds(entry, key.text)
        })?;
        Some(self.entries[number as usize].value)
    }

    #[inline]
    fn holds(&self, entry: &Entry<V>, text: &[u8]) -> bool {
        match text.split_at_checked(INLINE) {
            None => entry.start[..text.len()] == *text,
            Some((start, tail)) => entry.start == *start && self.tails[entry.tail..][..tail.len()] == *tail,
        }
    }

    /// Remembers the value of a key that is not there yet.
    ///
    /// # Panics
    /// After 2³² keys.
    pub(crate) fn insert(&mut self, key: Key<'_>, value: V) {
        let number = u32::try_from(self.entries.len()).ok().filter(|number| *number < u32::MAX);
        let number = number.expect("fewer than 2^32 keys");
        self.table.make_room(self.entries.len() + 1, || self.entries.iter().map(|entry| entry.hash).zip(0..));
        self.table.put(key.hash, number);
        let mut entry =
            Entry { hash: key.hash, length: key.length(), value, tail: self.tails.len(), start: [0; INLINE] };
        let (start, tail) = key.text.split_at(key.text.len().min(INLINE));
        entry.start[..start.len()].copy_from_slice(start);
        self.tails.extend_from_slice(tail);
        self.entries.push(entry);
    }
}

impl<V> Default for ByteMap<V> {
    fn default() -> Self {
        Self { table: HashIndex::default(), entries: Vec::new(), tails: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::{ByteMap, Key};

    #[test]
    fn finds_what_was_put_in_and_nothing_else() {
        let mut memo = ByteMap::default();
        assert_eq!(memo.get(Key::new(b"")), None);
        let texts: Vec<Vec<u8>> = (0..3000).map(|n| format!("{n}").repeat(n % 40).into_bytes()).collect();
        let distinct: std::collections::BTreeSet<_> = texts.iter().collect();
        for (number, text) in distinct.iter().enumerate() {
            assert_eq!(memo.get(Key::new(text)), None);
            memo.insert(Key::new(text), number);
        }
        for (number, text) in distinct.iter().enumerate() {
            assert_eq!(memo.get(Key::new(text)), Some(number));
            assert_eq!(memo.get(Key::new(&[text, &b"x"[..]].concat())), None);
        }
    }
}
