//! The order of stacks as folded text, and quick comparison of sorted stacks.

use std::cmp::Ordering;

/// The offset-value code of a stack relative to a stack that is not after it, as in merges of sorted database runs.
///
/// The offset is the number of bytes that both stacks share, and the value is the byte after them. Of two stacks with
/// codes relative to the same stack, the one with the lower code comes first. If the codes are equal, the two stacks
/// share these bytes and the value too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OffsetValueCode(u64);

impl OffsetValueCode {
    /// The code of the end of the input, after all stacks.
    pub(super) const END: Self = Self(u64::MAX);

    /// Returns the code of a stack that shares its first `shared` bytes with the other stack.
    #[inline]
    pub(super) fn new(stack: &[u8], shared: usize) -> Self {
        Self(u64::from(u32::MAX - shared as u32) << 16 | u64::from(rank(stack, shared)))
    }

    /// Returns the number of bytes that both stacks share.
    #[inline]
    pub(super) fn shared(self) -> usize {
        (u32::MAX - (self.0 >> 16) as u32) as usize
    }
}

impl Default for OffsetValueCode {
    fn default() -> Self {
        Self::END
    }
}

/// Compares two stacks that share their first `shared` bytes: by frames, a stack before its extensions.
#[inline]
pub(super) fn compare_stacks(a: &[u8], b: &[u8], shared: usize) -> Ordering {
    rank(a, shared).cmp(&rank(b, shared))
}

/// True if the frame that ends at byte `end` in a stack is also a frame of `next`, which shares the first `shared`
/// bytes with that stack.
#[inline]
pub(crate) fn shares_frame(end: usize, next: &[u8], shared: usize) -> bool {
    end < shared || (end == shared && next.get(end).is_none_or(|byte| *byte == b';'))
}

/// Returns the rank of the byte at an index: the end of the stack is lowest, then the end of a frame, then other bytes.
#[inline]
fn rank(stack: &[u8], index: usize) -> u16 {
    stack.get(index).map_or(0, |byte| if *byte == b';' { 1 } else { u16::from(*byte) + 2 })
}

/// Returns the length of the longest common prefix of two texts.
#[inline]
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut shared = 0;
    for (a, b) in a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0) {
        if a != b {
            return shared + first_difference(a, b);
        }
        shared += 32;
    }
    for (a, b) in a[shared..].as_chunks().0.iter().zip(b[shared..].as_chunks().0) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return shared + difference.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    shared + a[shared..].iter().zip(&b[shared..]).take_while(|(a, b)| a == b).count()
}

/// Returns the index of the first difference of two chunks that are not equal. No branch: its position is
/// unpredictable.
#[inline]
fn first_difference(a: &[u8; 32], b: &[u8; 32]) -> usize {
    let low = first_differing(differing_word(a, b, 0), differing_word(a, b, 1));
    let high = first_differing(differing_word(a, b, 2), differing_word(a, b, 3));
    let first = first_differing(low, high);
    first.index + first.bits.trailing_zeros() as usize / 8
}

/// The bits in which two chunks differ in one of their words.
#[derive(Clone, Copy)]
struct WordDifference {
    bits: u64,
    /// The index of the word's first byte in the chunk.
    index: usize,
}

#[inline]
fn differing_word(a: &[u8; 32], b: &[u8; 32], word: usize) -> WordDifference {
    let (a, b) = (a.as_chunks().0[word], b.as_chunks().0[word]);
    WordDifference { bits: u64::from_le_bytes(a) ^ u64::from_le_bytes(b), index: word * 8 }
}

/// Returns `first` if its words differ, otherwise `second`.
#[inline]
fn first_differing(first: WordDifference, second: WordDifference) -> WordDifference {
    if first.bits != 0 { first } else { second }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::{common_prefix, compare_stacks};

    #[test]
    fn compares_stacks_by_frames() {
        for pair in [
            "a",
            "a;b",
            "a;b;c",
            "a;b.cold",
            "a;bb",
            "a;c",
            "a b;c",
            "aa",
            "long enough for words;x",
            "long enough for words;y",
        ]
        .windows(2)
        {
            let (a, b) = (pair[0].as_bytes(), pair[1].as_bytes());
            assert_eq!(compare_stacks(a, b, common_prefix(a, b)), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn the_common_prefix_ends_at_the_first_difference() {
        for length in 0..100 {
            let text = vec![b'x'; length];
            assert_eq!(common_prefix(&text, &[b'x'; 100]), length);
            for index in 0..length {
                let mut other = text.clone();
                other[index] = b'y';
                other[length - 1] = b'z';
                assert_eq!(common_prefix(&text, &other), index, "{length}");
            }
        }
    }
}
