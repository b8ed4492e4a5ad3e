//! Stacks that arrive in sorted order, as most profiles contain them: they need no hash table, and no sorting.

use std::cmp::Ordering;
use std::io::Write;

use crate::Error;
use crate::folded::LineBuffer;
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// Size of the stacks that [`StackWriter`] collects before it writes them, in bytes.
const CHUNK: usize = 256 * 1024;

/// A stack after the one before it.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// The order of the stack, relative to the one before it.
    order: Ordering,
    /// Number of frames that both share.
    shared: usize,
}

/// Compares a stack with the one before it.
fn locate(frames: &Frames, last: &[FrameId], stack: &[FrameId]) -> Position {
    let shared = last.iter().zip(stack).take_while(|(a, b)| a == b).count();
    let order = match (stack.get(shared), last.get(shared)) {
        (Some(new), Some(old)) => frames.name(*new).cmp(frames.name(*old)),
        (new, old) => new.is_some().cmp(&old.is_some()),
    };
    Position { order, shared }
}

/// A list of sorted stacks, each stored as its difference from the one before it.
#[derive(Debug, Default)]
pub(super) struct SortedStacks {
    /// The frames of each stack that the one before it does not share.
    ids: Vec<FrameId>,
    entries: Vec<Entry>,
    last: Vec<FrameId>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    shared: usize,
    /// End of its frames in [`SortedStacks::ids`].
    end: usize,
    weights: Weights,
}

impl SortedStacks {
    /// Adds a stack; returns `false`, and adds nothing, if it comes before the last one.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub(super) fn add(&mut self, frames: &Frames, stack: &[FrameId], weights: Weights) -> Result<bool, Error> {
        let Position { order, shared } = locate(frames, &self.last, stack);
        match (order, self.entries.last_mut()) {
            (Ordering::Less, _) => return Ok(false),
            (Ordering::Equal, Some(entry)) => entry.weights.add(weights)?,
            _ => {
                self.ids.extend_from_slice(&stack[shared..]);
                self.entries.push(Entry { shared, end: self.ids.len(), weights });
                self.last.truncate(shared);
                self.last.extend_from_slice(&stack[shared..]);
            }
        }
        Ok(true)
    }

    /// Returns the size in bytes.
    pub(super) fn size(&self) -> usize {
        size_of_val(&self.ids[..]) + size_of_val(&self.entries[..])
    }

    /// Removes all stacks; the next one is still compared with the last one.
    pub(super) fn forget(&mut self) {
        self.ids.clear();
        self.entries.clear();
    }

    /// Returns the stacks as a profile without the names of its frames.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub(super) fn into_profile(mut self, frames: &Frames, is_differential: bool) -> Result<Profile, Error> {
        let (mut profile, mut batch, mut stack) = (Profile::new(is_differential), Batch::default(), Vec::new());
        self.take(self.len(), |shared, added, weights| {
            stack.truncate(shared);
            stack.extend_from_slice(added);
            batch.push(&stack, weights, frames);
            if batch.is_full() { profile.add_batch(&mut batch) } else { Ok(()) }
        })?;
        profile.add_batch(&mut batch)?;
        Ok(profile)
    }

    /// Removes the first `count` stacks, and calls `each` with the number of frames that each shares with the one before it,
    /// its other frames, and its weights.
    ///
    /// # Errors
    /// The first error of `each`.
    pub(super) fn take<E>(
        &mut self,
        count: usize,
        mut each: impl FnMut(usize, &[FrameId], Weights) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        for Entry { shared, end, weights } in self.entries.drain(..count) {
            each(shared, &self.ids[start..end], weights)?;
            start = end;
        }
        self.ids.drain(..start);
        self.entries.iter_mut().for_each(|entry| entry.end -= start);
        Ok(())
    }

    /// True if there is no stack.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of stacks.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Writes sorted stacks as they arrive.
pub(super) struct StackWriter<'a> {
    pub(super) stacks: SortedStacks,
    is_differential: bool,
    line: LineBuffer,
    out: &'a mut dyn Write,
    /// The name of the output, for errors.
    name: &'a str,
}

impl<'a> StackWriter<'a> {
    pub(super) fn new(stacks: SortedStacks, is_differential: bool, name: &'a str, out: &'a mut dyn Write) -> Self {
        Self { stacks, is_differential, line: LineBuffer::default(), out, name }
    }

    /// Adds a stack, like [`SortedStacks::add`], and writes stacks from time to time.
    ///
    /// # Errors
    /// [`Error::Write`], and [`Error::Overflow`] if a sum does not fit.
    pub(super) fn add(&mut self, frames: &Frames, stack: &[FrameId], weights: Weights) -> Result<bool, Error> {
        if self.stacks.size() > CHUNK {
            // Equal stacks may follow the last one.
            self.write(frames, self.stacks.len() - 1)?;
        }
        self.stacks.add(frames, stack, weights)
    }

    /// Writes the stacks that are left.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(super) fn finish(mut self, frames: &Frames) -> Result<(), Error> {
        self.write(frames, self.stacks.len())
    }

    fn write(&mut self, frames: &Frames, count: usize) -> Result<(), Error> {
        let Self { stacks, is_differential, line, out, name } = self;
        stacks.take(count, |shared, added, weights| {
            let text = line.format(frames, shared, added, weights, *is_differential);
            out.write_all(text).map_err(|error| Error::write(*name, error))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SortedStacks, StackWriter};
    use crate::profile::{Frames, Weight, Weights};

    proptest! {
        #[test]
        fn keeps_sorted_stacks_and_refuses_others(
            stacks in prop::collection::vec(prop::collection::vec("[ab.]{1,2}", 1..4), 0..20),
            sorts in any::<bool>(),
        ) {
            let mut stacks = stacks;
            if sorts {
                stacks.sort();
            }
            let mut frames = Frames::new();
            let mut text = Vec::new();
            let mut writer = StackWriter::new(SortedStacks::default(), false, "out", &mut text);
            let mut expected: Vec<(Vec<String>, u64)> = Vec::new();
            for stack in stacks {
                let ids: Vec<_> = stack.iter().map(|name| frames.intern(name.as_bytes())).collect();
                let is_added = writer.add(&frames, &ids, Weights::plain(Weight::ONE)).unwrap();
                prop_assert_eq!(is_added, expected.last().is_none_or(|(last, _)| *last <= stack));
                match expected.last_mut() {
                    _ if !is_added => {}
                    Some((last, count)) if *last == stack => *count += 1,
                    _ => expected.push((stack, 1)),
                }
            }
            writer.finish(&frames).unwrap();
            let expected: String = expected.iter().map(|(stack, count)| format!("{} {count}\n", stack.join(";"))).collect();
            prop_assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }
}
