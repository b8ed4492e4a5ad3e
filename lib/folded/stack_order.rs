//! Blocks of sorted folded text, taken apart line by line.
//!
//! Equal prefixes are adjacent in sorted text, so each line is compared with the stack before it. That says how many bytes
//! both share and proves the order, and only what is not shared needs to be searched for the line's end.

use std::cmp::Ordering;

use super::grammar::{Kind, Line, ends_like_a_weight, is_comment, parse_line};
use super::sorted_reader::LineStatus;
use crate::Error;
use crate::bytes::BOM;
use crate::input::{Block, Blocks, last_line_end};
use crate::profile::Weights;

/// A block and its lines.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) block: Block,
    pub(super) entries: Vec<Entry>,
    /// Whether they have one weight or two, once that is known.
    pub(super) kind: Option<Kind>,
}

/// What is known of a line that is not blank.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    pub(super) step: LineStatus,
    /// Its number in the input, from 1.
    pub(super) number: u64,
    /// Where its stack stands in the block.
    pub(super) start: u32,
    pub(super) length: u32,
    /// How it follows the stack before it.
    pub(super) following: OffsetValueCode,
    pub(super) weights: Weights,
}

/// How a stack follows another one, as a number: of two stacks that follow the same one, that with the lower number comes
/// first; if the numbers are equal, both are the same up to the byte behind what they share with it, that byte included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OffsetValueCode(u64);

impl OffsetValueCode {
    /// That of no stack: it comes last.
    pub(super) const END: Self = Self(u64::MAX);

    /// That of a stack which has so many bytes in common with the other one.
    #[inline]
    pub(super) fn new(stack: &[u8], shared: usize) -> Self {
        Self(u64::from(u32::MAX - shared as u32) << 16 | u64::from(rank(stack, shared)))
    }

    /// How many bytes both have in common.
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

/// Reads an input and takes its lines apart, up to one that is out of order.
pub(super) struct Reader {
    input: Blocks,
    number: u64,
    kind: Option<Kind>,
    /// The last stack.
    last: Vec<u8>,
    ended: bool,
}

impl Reader {
    /// The input's first line says whether all have one weight or two.
    pub(super) fn new(input: Blocks) -> Self {
        Self { input, number: 0, kind: None, last: Vec::new(), ended: false }
    }

    /// Goes on in the midst of a text.
    pub(super) fn amid(input: Blocks, kind: Kind) -> Self {
        Self { number: 1, kind: Some(kind), ..Self::new(input) }
    }

    /// Goes to the next block; `false` at the end.
    pub(super) fn fill(&mut self, lines: &mut Lines) -> Result<bool, Error> {
        if self.ended || !self.input.read_block(&mut lines.block, last_line_end)? {
            return Ok(false);
        }
        lines.entries.clear();
        self.take_apart(&lines.block, &mut lines.entries);
        lines.kind = self.kind;
        Ok(true)
    }

    fn take_apart(&mut self, block: &[u8], entries: &mut Vec<Entry>) {
        let last = std::mem::take(&mut self.last);
        // Where the last stack begins, and how long it is: what stands behind it makes comparing quicker.
        let (mut last, mut length) = (last.as_slice(), last.len());
        let mut start = if self.number == 0 && block.starts_with(BOM) { 3 } else { 0 };
        while start < block.len() && !self.ended {
            let rest = &block[start..];
            // What both share has no line's end, since the stack before has none.
            let shared = shared_bytes(last, rest).min(length);
            let end = memchr::memchr2(b'\n', b'\r', &rest[shared..]).map_or(rest.len(), |end| shared + end);
            let returns = rest.get(end) == Some(&b'\r');
            let line = if returns { whole_line(rest) } else { &rest[..end] };
            self.number += 1;
            let judged = self.judge(line, &last[..length], shared, returns);
            if let Some((step, Line { stack, weights }, shared)) = judged {
                let following = OffsetValueCode::new(stack, shared);
                let (start, stack_length) = (start as u32, stack.len() as u32);
                entries.push(Entry { step, number: self.number, start, length: stack_length, following, weights });
                self.ended = step == LineStatus::OutOfOrder;
                if step == LineStatus::Stack {
                    (last, length) = (rest, stack.len());
                }
            }
            start += (line.len() + 1).min(rest.len());
        }
        self.last = last[..length].to_vec();
    }

    /// What a line is after the last stack, with which it shares so many bytes, and how many of them are its stack's;
    /// nothing if it is blank.
    #[inline]
    fn judge<'a>(
        &mut self,
        line: &'a [u8],
        last: &[u8],
        shared: usize,
        returns: bool,
    ) -> Option<(LineStatus, Line<'a>, usize)> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii_end().is_empty() {
            return None;
        }
        let kind = self.kind.unwrap_or_else(|| Kind::of_first_line(line));
        let whole = line;
        let Some(line) = parse_line(line, kind) else {
            return Some((LineStatus::Malformed, Line { stack: b"", weights: Weights::default() }, 0));
        };
        self.kind = Some(kind);
        let shared = shared.min(line.stack.len());
        let is_less = order(line.stack, last, shared) == Ordering::Less;
        // What our writer does not write so is not for those who read only that.
        let is_odd = || ends_like_a_weight(line.stack) || is_comment(whole) || (returns && line.stack.contains(&b'\r'));
        Some((if is_less || is_odd() { LineStatus::OutOfOrder } else { LineStatus::Stack }, line, shared))
    }
}

fn whole_line(rest: &[u8]) -> &[u8] {
    &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]
}

/// The order of two stacks that share so many bytes: by frames, a stack before its extensions.
#[inline]
pub(super) fn order(a: &[u8], b: &[u8], shared: usize) -> Ordering {
    rank(a, shared).cmp(&rank(b, shared))
}

/// Where a stack comes by what stands at this place: its end, a frame's end, or a byte.
#[inline]
fn rank(stack: &[u8], place: usize) -> u16 {
    stack.get(place).map_or(0, |byte| if *byte == b';' { 1 } else { u16::from(*byte) + 2 })
}

/// How many bytes two texts have in common at their beginning.
#[inline]
pub(crate) fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    let mut shared = 0;
    for (a, b) in a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0) {
        if a != b {
            return shared + first_difference(a, b);
        }
        shared += 32;
    }
    for (a, b) in a[shared..].as_chunks().0.iter().zip(b[shared..].as_chunks().0) {
        let differs = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differs != 0 {
            return shared + differs.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    shared + a[shared..].iter().zip(&b[shared..]).take_while(|(a, b)| a == b).count()
}

/// Where two texts that are not equal differ first; without a branch, since it can be anywhere.
#[inline]
fn first_difference(a: &[u8; 32], b: &[u8; 32]) -> usize {
    let differs = |at: usize| {
        let word = |text: &[u8; 32]| u64::from_le_bytes(text.as_chunks().0[at]);
        (word(a) ^ word(b), at * 8)
    };
    let first = |one: (u64, usize), other| if one.0 != 0 { one } else { other };
    let (word, at) = first(first(differs(0), differs(1)), first(differs(2), differs(3)));
    at + word.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::{order, shared_bytes};

    #[test]
    fn the_order_is_by_frames() {
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
            assert_eq!(order(a, b, shared_bytes(a, b)), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn what_is_shared_ends_at_the_first_difference() {
        for length in 0..100 {
            let text = vec![b'x'; length];
            assert_eq!(shared_bytes(&text, &[b'x'; 100]), length);
            for place in 0..length {
                let mut other = text.clone();
                other[place] = b'y';
                other[length - 1] = b'z';
                assert_eq!(shared_bytes(&text, &other), place, "{length}");
            }
        }
    }
}
