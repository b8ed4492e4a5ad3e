//! Drawing a file whose stacks come in any order: each core reads a part of them and puts it in order, and the parts are
//! merged as they are drawn.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::hint::black_box;
use std::ops::Range;

use super::divide::{END, Heap, Stack};
use super::drawing::{Drawing, Pen};
use super::options::Options;
use crate::Error;
use crate::folded;
use crate::input::{ReadAhead, Source};
use crate::profile::{Frames, Weights};

/// How many stacks are handed over at once.
const PIECE: usize = 4096;

/// How many stacks are fetched in a row from where they stand far away, so that waiting for them overlaps.
const FETCHED: usize = 64;

/// In a part in order, behind a stack's last frame: less than any frame, so that a stack stands before its extensions.
const LAST: u32 = 0;

impl Drawing {
    /// Draws a folded file in any order. `None` if it is no file, if there is anything to say of it, or if it is compressed:
    /// then its stacks are better gathered, for what is kept here of each line may be more than a small file should take.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn of_file(source: &Source, options: &Options) -> Result<Option<Self>, Error> {
        let Some(size) = source.regular_file().and_then(|file| file.metadata().ok()) else { return Ok(None) };
        let read = || Heap::up_to(usize::try_from(size.len()).unwrap_or(usize::MAX));
        let Some(mut parts) = folded::read_parallel(source, read) else { return Ok(None) };
        let differential = parts.iter().any(|part| part.differential);
        let mut frames = Frames::new();
        let ids: Vec<_> = parts.iter().map(|part| frames.intern_all(&part.frames)).collect();
        let ranks = frames.ranks();
        let mut heads = BinaryHeap::new();
        for (part, ids) in parts.drain(..).zip(ids) {
            let places = ids.iter().map(|id| ranks[id.index()] + 1).collect();
            let mut head = Head::new(part, places);
            if head.step()? {
                heads.push(head);
            }
        }
        let mut names = vec![&b""[..]; frames.len() + 1];
        for (id, name) in frames.iter() {
            names[ranks[id.index()] as usize + 1] = name;
        }
        draw(heads, &names, Pen::new(options, differential))?.finish(options).map(Some)
    }
}

/// Draws the parts' stacks, of which the least is always next.
fn draw(mut heads: BinaryHeap<Head>, names: &[&[u8]], mut pen: Pen) -> Result<Pen, Error> {
    let mut last: Vec<u32> = Vec::new();
    while let Some(mut head) = heads.peek_mut() {
        let stack = head.stack();
        let shared = stack.iter().zip(&last).take_while(|(a, b)| a == b).count();
        last.truncate(shared);
        last.extend_from_slice(&stack[shared..]);
        pen.add_known(shared, &last[shared..], |place| names[place as usize], head.weights)?;
        if !head.step()? {
            PeekMut::pop(head);
        }
    }
    Ok(pen)
}

/// The next stack of a part.
struct Head {
    pieces: ReadAhead<Piece, Error>,
    piece: Piece,
    next: usize,
    /// Where its frames stand in the piece.
    frames: Range<usize>,
    weights: Weights,
}

/// Some stacks of a part, in order.
#[derive(Default)]
struct Piece {
    /// The frames by their places among all names, one stack's behind the other's.
    frames: Vec<u32>,
    /// Where each stack's frames end, and what it weighs.
    stacks: Vec<(usize, Weights)>,
}

impl Head {
    /// `places` are the frames' among all names in order. The part is put in order in a thread of its own.
    fn new(mut part: Heap, places: Vec<u32>) -> Self {
        let mut next = None;
        let fill = move |piece: &mut Piece| {
            let from = next.unwrap_or_else(|| {
                for id in &mut part.ids {
                    *id = if *id == END { LAST } else { places[*id as usize] };
                }
                sort(&mut part.stacks, &part.ids);
                0
            });
            let to = part.stacks.len().min(from + PIECE);
            next = Some(to);
            piece.fill(&part, from..to);
            Ok(from < to)
        };
        let (piece, weights) = Default::default();
        Self { pieces: ReadAhead::new(fill), piece, next: 0, frames: 0..0, weights }
    }

    /// Goes to the next stack; `false` at the end.
    fn step(&mut self) -> Result<bool, Error> {
        if self.next == self.piece.stacks.len() {
            if !self.pieces.next(&mut self.piece)? {
                return Ok(false);
            }
            (self.next, self.frames) = (0, 0..0);
        }
        let (end, weights) = self.piece.stacks[self.next];
        (self.frames, self.weights) = (self.frames.end..end, weights);
        self.next += 1;
        Ok(true)
    }

    fn stack(&self) -> &[u32] {
        &self.piece.frames[self.frames.clone()]
    }
}

impl Ord for Head {
    /// The least stack is the greatest of the binary heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.stack().cmp(self.stack())
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.stack() == other.stack()
    }
}

impl Eq for Head {}

impl Piece {
    fn fill(&mut self, part: &Heap, stacks: Range<usize>) {
        self.frames.clear();
        self.stacks.clear();
        for stacks in part.stacks[stacks].chunks(FETCHED) {
            black_box(stacks.iter().fold(0, |seen, stack| seen ^ part.ids[stack.at]));
            for stack in stacks {
                let frames = part.ids[stack.at..].iter().take_while(|frame| **frame != LAST);
                self.frames.extend(frames);
                self.stacks.push((self.frames.len(), part.weights(*stack)));
            }
        }
    }
}

/// Puts stacks in order, two frames at once: what stands far away is fetched once for every two frames that a stack shares
/// with others.
fn sort(stacks: &mut [Stack], frames: &[u32]) {
    let mut waiting = vec![(0..stacks.len(), 0)];
    let mut keyed: Vec<(u64, Stack)> = Vec::new();
    while let Some((range, depth)) = waiting.pop() {
        let group = &mut stacks[range.clone()];
        keyed.clear();
        keyed.extend(group.iter().map(|stack| {
            let at = stack.at + depth;
            let second = if frames[at] == LAST { LAST } else { frames[at + 1] };
            (u64::from(frames[at]) << 32 | u64::from(second), *stack)
        }));
        keyed.sort_unstable_by_key(|(key, _)| *key);
        for (place, (_, stack)) in group.iter_mut().zip(&keyed) {
            *place = *stack;
        }
        let mut start = range.start;
        for run in keyed.chunk_by(|a, b| a.0 == b.0) {
            let end = start + run.len();
            if run.len() > 1 && run[0].0 as u32 != LAST {
                waiting.push((start..end, depth + 2));
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LAST, Stack, sort};

    proptest! {
        #[test]
        fn the_order_is_that_of_the_stacks_frames(stacks in prop::collection::vec(prop::collection::vec(1..5u32, 1..7), 1..80)) {
            let mut frames = Vec::new();
            let mut sorted: Vec<Stack> = stacks.iter().enumerate().map(|(number, stack)| {
                let at = frames.len();
                frames.extend(stack);
                frames.push(LAST);
                Stack { at, weight: number as u64 }
            }).collect();
            sort(&mut sorted, &frames);
            let sorted: Vec<_> = sorted.iter().map(|stack| stacks[stack.weight as usize].clone()).collect();
            let mut expected = stacks;
            expected.sort();
            prop_assert_eq!(sorted, expected);
        }
    }
}
