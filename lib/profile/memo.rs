//! What was found out about a text, found again by the text.

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

/// So much of a key stands in its slot, so that most look-ups touch one cache line. With a value of twelve bytes, a slot
/// fills the line.
const INLINE: usize = 36;

/// Values by text. Equality is by bytes and never by hash alone.
pub(crate) struct Memo<V> {
    /// A power of two of them, or none.
    slots: Vec<Slot<V>>,
    used: usize,
    /// What does not stand in the slots, of long keys.
    tails: Vec<u8>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Slot<V> {
    hash: u32,
    /// The key's length and one more; 0 if the slot is free.
    length: u32,
    /// Where the key's rest stands.
    tail: usize,
    value: V,
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

    /// The length as a slot has it.
    fn length(&self) -> u32 {
        u32::try_from(self.text.len()).map_or(u32::MAX, |length| length.saturating_add(1))
    }
}

impl<V: Copy + Default> Memo<V> {
    #[inline]
    pub(crate) fn get(&self, key: Key<'_>) -> Option<V> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = key.hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.hash == key.hash && slot.length == key.length() && self.holds(slot, key.text) {
                return Some(slot.value);
            }
            if slot.length == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn holds(&self, slot: &Slot<V>, text: &[u8]) -> bool {
        match text.split_at_checked(INLINE) {
            None => slot.start[..text.len()] == *text,
            Some((start, tail)) => slot.start == *start && self.tails[slot.tail..][..tail.len()] == *tail,
        }
    }

    /// Remembers the value of a key that is not there yet.
    pub(crate) fn insert(&mut self, key: Key<'_>, value: V) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let mut slot = Slot { hash: key.hash, length: key.length(), tail: self.tails.len(), value, start: [0; INLINE] };
        let (start, tail) = key.text.split_at(key.text.len().min(INLINE));
        slot.start[..start.len()].copy_from_slice(start);
        self.tails.extend_from_slice(tail);
        self.place(slot);
        self.used += 1;
    }

    fn grow(&mut self) {
        let free = Slot { hash: 0, length: 0, tail: 0, value: V::default(), start: [0; INLINE] };
        let size = (self.slots.len() * 2).max(64);
        for slot in std::mem::replace(&mut self.slots, vec![free; size]) {
            if slot.length > 0 {
                self.place(slot);
            }
        }
    }

    fn place(&mut self, slot: Slot<V>) {
        let mask = self.slots.len() - 1;
        let mut at = slot.hash as usize & mask;
        while self.slots[at].length > 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

impl<V> Default for Memo<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), used: 0, tails: Vec::new() }
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
