//! The hash that tells script functions apart, as the BPF program makes it.

use super::interpreter::Memory;

/// Number of bytes of a string that are hashed: its last.
const MAX_HASHED: u64 = 128;

/// Adds a word to a hash.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 32
}

/// Adds the length and the last bytes of a string, which begins at an address of a process. `None` if it cannot be read.
pub(super) fn mix_string(hash: u64, memory: Memory, start: u64, length: u64) -> Option<u64> {
    let size = length.min(MAX_HASHED);
    let mut bytes = memory.bytes(start.checked_add(length)? - size, size as usize)?;
    bytes.resize(MAX_HASHED as usize, 0);
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
    Some(words.fold(mix(hash, length), mix))
}

/// Adds a string that is not there.
pub(super) fn mix_no_string(hash: u64) -> u64 {
    (0..=MAX_HASHED / 8).fold(hash, |hash, _| mix(hash, 0))
}
