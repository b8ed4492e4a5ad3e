//! Draws an unsorted file. Each core reads and sorts a part of it, and a k-way merge of the parts feeds the layout.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use super::drawing::{Drawing, DrawingBuilder};
use super::options::Options;
use super::stack_list::{END, ListedStack, StackList};
use crate::Error;
use crate::folded;
use crate::input::{ReadAhead, Source};
use crate::profile::{Frames, Weights};

/// Number of stacks that a sorting thread hands over at once.
const CHUNK: usize = 4096;

/// The end of a stack in a sorted part. It is less than any frame, so that a stack comes before its extensions.
const LAST: u32 = 0;

/// Draws a folded file in any order.
///
/// Returns `None` if `source` is not a regular file, if reading it would warn (the caller then reads it again and
/// reports the warnings in order), or if it has more frames than bytes. Only a compressed file can have that many. A
/// profile is better for it, because this way needs memory for each line, which can be too much for a small file.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn draw_file(source: &Source, options: &Options) -> Result<Option<Drawing>, Error> {
    let Some(metadata) = source.regular_file().and_then(|file| file.metadata().ok()) else { return Ok(None) };
    let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    let Some(parts) = folded::read_parallel(source, || StackList::new(size)) else { return Ok(None) };
    let differential = parts.iter().any(|part| part.differential);
    let mut frames = Frames::new();
    let part_ids: Vec<_> = parts.iter().map(|part| frames.intern_all(&part.frames)).collect();
    let ranks = frames.ranks();
    let mut cursors = BinaryHeap::new();
    for (part, ids) in parts.into_iter().zip(part_ids) {
        let part_ranks = ids.iter().map(|id| ranks[id.index()] + 1).collect();
        let mut cursor = PartCursor::new(part, part_ranks);
        if cursor.advance()? {
            cursors.push(cursor);
        }
    }
    let mut names = vec![&b""[..]; frames.len() + 1];
    for (id, name) in frames.iter() {
        names[ranks[id.index()] as usize + 1] = name;
    }
    let mut builder = DrawingBuilder::new(options, differential);
    merge(cursors, &names, &mut builder)?;
    builder.finish(options).map(Some)
}

/// Adds the stacks of all parts to `builder` in order. `names` is indexed by rank.
fn merge(mut cursors: BinaryHeap<PartCursor>, names: &[&[u8]], builder: &mut DrawingBuilder) -> Result<(), Error> {
    let mut last: Vec<u32> = Vec::new();
    while let Some(mut cursor) = cursors.peek_mut() {
        let stack = cursor.stack();
        let shared = stack.iter().zip(&last).take_while(|(a, b)| a == b).count();
        last.truncate(shared);
        last.extend_from_slice(&stack[shared..]);
        builder.add_ids(shared, &last[shared..], |rank| names[rank as usize], cursor.weights)?;
        if !cursor.advance()? {
            PeekMut::pop(cursor);
        }
    }
    Ok(())
}

/// The current stack of a sorted part.
struct PartCursor {
    chunks: ReadAhead<Chunk, Error>,
    chunk: Chunk,
    /// Index of the next stack in `chunk`.
    next: usize,
    /// The range of the current stack in `chunk.ranks`.
    range: Range<usize>,
    weights: Weights,
}

/// Consecutive stacks of a sorted part.
#[derive(Default)]
struct Chunk {
    /// The frames of all stacks, root first. A frame is its rank among the names of all parts, plus 1.
    ranks: Vec<u32>,
    /// For each stack, its end in `ranks` and its weights.
    stacks: Vec<(usize, Weights)>,
}

impl PartCursor {
    /// Sorts `part` in a thread of its own. `ranks` gives the rank plus 1 of each frame of the part.
    fn new(mut part: StackList, ranks: Vec<u32>) -> Self {
        let mut next = None;
        let chunks = ReadAhead::new(move |chunk: &mut Chunk| {
            let start = next.unwrap_or_else(|| {
                sort_by_rank(&mut part, &ranks);
                0
            });
            let end = part.stacks.len().min(start + CHUNK);
            next = Some(end);
            chunk.fill(&part, start..end);
            Ok(start < end)
        });
        let (chunk, weights) = Default::default();
        Self { chunks, chunk, next: 0, range: 0..0, weights }
    }

    /// Moves to the next stack; returns false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        if self.next == self.chunk.stacks.len() {
            if !self.chunks.next(&mut self.chunk)? {
                return Ok(false);
            }
            (self.next, self.range) = (0, 0..0);
        }
        let (end, weights) = self.chunk.stacks[self.next];
        (self.range, self.weights) = (self.range.end..end, weights);
        self.next += 1;
        Ok(true)
    }

    fn stack(&self) -> &[u32] {
        &self.chunk.ranks[self.range.clone()]
    }
}

/// Replaces each frame by its rank plus 1, and sorts the stacks.
fn sort_by_rank(part: &mut StackList, ranks: &[u32]) {
    for id in &mut part.ids {
        *id = if *id == END { LAST } else { ranks[*id as usize] };
    }
    sort(&mut part.stacks, &part.ids);
}

impl Ord for PartCursor {
    /// Compares in reverse order, because a [`BinaryHeap`] returns its greatest item first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.stack().cmp(self.stack())
    }
}

impl PartialOrd for PartCursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PartCursor {
    fn eq(&self, other: &Self) -> bool {
        self.stack() == other.stack()
    }
}

impl Eq for PartCursor {}

impl Chunk {
    /// Replaces the chunk by these stacks of a sorted part.
    fn fill(&mut self, part: &StackList, stacks: Range<usize>) {
        self.ranks.clear();
        self.stacks.clear();
        for stack in &part.stacks[stacks] {
            self.ranks.extend(part.ids[stack.start..].iter().take_while(|rank| **rank != LAST));
            self.stacks.push((self.ranks.len(), part.weights(*stack)));
        }
    }
}

/// Sorts stacks by their frames, two frames at a time. For each group of stacks that share their first frames, it
/// copies the next two frames of each stack into a key, so that comparisons do not miss the cache.
fn sort(stacks: &mut [ListedStack], ranks: &[u32]) {
    let mut pending = vec![(0..stacks.len(), 0)];
    let mut keyed: Vec<(u64, ListedStack)> = Vec::new();
    while let Some((range, depth)) = pending.pop() {
        let group = &mut stacks[range.clone()];
        keyed.clear();
        keyed.extend(group.iter().map(|stack| {
            let first = stack.start + depth;
            let second = if ranks[first] == LAST { LAST } else { ranks[first + 1] };
            (u64::from(ranks[first]) << 32 | u64::from(second), *stack)
        }));
        keyed.sort_unstable_by_key(|(key, _)| *key);
        for (slot, (_, stack)) in group.iter_mut().zip(&keyed) {
            *slot = *stack;
        }
        let mut start = range.start;
        for run in keyed.chunk_by(|a, b| a.0 == b.0) {
            let end = start + run.len();
            if run.len() > 1 && run[0].0 as u32 != LAST {
                pending.push((start..end, depth + 2));
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LAST, ListedStack, sort};

    proptest! {
        #[test]
        fn sorts_stacks_by_their_frames(stacks in prop::collection::vec(prop::collection::vec(1..5u32, 1..7), 1..80)) {
            let mut ranks = Vec::new();
            let mut sorted: Vec<ListedStack> = stacks.iter().enumerate().map(|(number, stack)| {
                let start = ranks.len();
                ranks.extend(stack);
                ranks.push(LAST);
                ListedStack { start, weight: number as u64 }
            }).collect();
            sort(&mut sorted, &ranks);
            let sorted: Vec<_> = sorted.iter().map(|stack| stacks[stack.weight as usize].clone()).collect();
            let mut expected = stacks;
            expected.sort();
            prop_assert_eq!(sorted, expected);
        }
    }
}
