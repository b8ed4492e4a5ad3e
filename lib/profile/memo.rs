//! What was found out about a text, found again by the text.

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

/// So much of a key stands beside its value, so that most look-ups touch little memory beyond the places. With a value of
/// twelve bytes, an entry is as long as a cache line; it is not aligned as one, as then the list could only grow by being
/// copied.
const INLINE: usize = 36;

/// Values by text. Equality is by bytes and never by hash alone.
pub(crate) struct Memo<V> {
    /// A power of two of them, or none.
    places: Vec<Place>,
    entries: Vec<Entry<V>>,
    /// What does not stand in the entries, of long keys.
    tails: Vec<u8>,
}

/// Where an entry stands, by the hash of its key.
#[derive(Clone, Copy)]
struct Place {
    hash: u32,
    /// The entry's number; `FREE` if there is none.
    number: u32,
}

const FREE: u32 = u32::MAX;

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

impl<V: Copy> Memo<V> {
    #[inline]
    pub(crate) fn get(&self, key: Key<'_>) -> Option<V> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = key.hash as usize & mask;
        loop {
            let place = self.places[at];
            if place.number == FREE {
                return None;
            }
            if place.hash == key.hash {
                let entry = &self.entries[place.number as usize];
                if entry.length == key.length() && self.holds(entry, key.text) {
                    return Some(entry.value);
                }
            }
            at = (at + 1) & mask;
        }
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
        if (self.entries.len() + 1) * 4 > self.places.len() * 3 {
            self.grow();
        }
        let mut entry =
            Entry { hash: key.hash, length: key.length(), value, tail: self.tails.len(), start: [0; INLINE] };
        let (start, tail) = key.text.split_at(key.text.len().min(INLINE));
        entry.start[..start.len()].copy_from_slice(start);
        self.tails.extend_from_slice(tail);
        let number = u32::try_from(self.entries.len()).ok().filter(|number| *number != FREE);
        put(&mut self.places, Place { hash: key.hash, number: number.expect("fewer than 2^32 keys") });
        self.entries.push(entry);
    }

    fn grow(&mut self) {
        let size = (self.places.len() * 2).max(64);
        self.places.clear();
        self.places.resize(size, Place { hash: 0, number: FREE });
        for (number, entry) in (0..).zip(&self.entries) {
            put(&mut self.places, Place { hash: entry.hash, number });
        }
    }
}

fn put(places: &mut [Place], place: Place) {
    let mask = places.len() - 1;
    let mut at = place.hash as usize & mask;
    while places[at].number != FREE {
        at = (at + 1) & mask;
    }
    places[at] = place;
}

impl<V> Default for Memo<V> {
    fn default() -> Self {
        Self { places: Vec::new(), entries: Vec::new(), tails: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Memo};

    #[test]
    fn finds_what_was_put_in_and_nothing_else() {
        let mut memo = Memo::default();
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
