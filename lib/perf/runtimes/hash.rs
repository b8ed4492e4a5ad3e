//! The hash that tells script functions apart, as the BPF program makes it.

use super::interpreter::Memory;

/// Number of bytes of a text that are hashed: its last.
const MAX_HASHED: u64 = 128;

/// The hash of a text that is empty, or not there.
pub(super) const NO_TEXT: u64 = 0;

/// Adds a word to a hash.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 32
}

/// Returns the hash of a text of which only the length is known.
pub(super) fn hash_length(length: u64) -> u64 {
    mix(NO_TEXT, length)
}

/// Returns the hash of the length and the last bytes of a text, which begins at an address of a process. `None` if it cannot be
/// read.
pub(super) fn hash_text(memory: Memory, start: u64, length: u64) -> Option<u64> {
    let size = length.min(MAX_HASHED);
    let end = memory.bytes(start.checked_add(length)? - size, size as usize)?;
    Some(hash_end(&end, length))
}

/// Returns the hash of a text.
pub(super) fn hash_bytes(text: &[u8]) -> u64 {
    hash_end(&text[text.len().saturating_sub(MAX_HASHED as usize)..], text.len() as u64)
}

/// Returns the hash of a text of this length that ends with these bytes.
fn hash_end(bytes: &[u8], length: u64) -> u64 {
    let words = bytes.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    });
    words.fold(hash_length(length), mix)
}

#[cfg(test)]
mod tests {
    use super::{Memory, NO_TEXT, hash_text};

    /// Reads bytes that are equal to the lower half of their address.
    fn read(_: u32, address: u64, bytes: &mut [u8]) -> usize {
        bytes.iter_mut().zip(address..).for_each(|(byte, at)| *byte = at as u8 & 0x0f);
        bytes.len()
    }

    #[test]
    fn a_hash_depends_on_the_length_and_all_of_the_last_bytes() {
        let hash = |start, length| hash_text(Memory { pid: 1, read }, start, length).unwrap();
        assert_eq!(hash(7, 0), NO_TEXT);
        for (start, length) in [(0, 1), (0, 8), (0, 9), (3, 127), (0, 128), (0, 200)] {
            assert_eq!(hash(start, length), hash(start + 16, length));
            assert_ne!(hash(start, length), hash(start, length + 1));
            assert_ne!(hash(start, length), hash(start + 1, length));
        }
    }
}
