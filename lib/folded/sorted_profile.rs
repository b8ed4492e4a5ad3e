//! The stacks of a profile as lines of sorted text, which are not parsed.

use std::convert::Infallible;

use super::sorted_reader::Lines;
use super::stack_order::common_prefix;
use crate::profile::{Frames, Profile, SortedStack};

/// Number of stacks that are formatted at once.
const CHUNK: usize = 1024;

/// A profile whose stacks are read in sorted order.
pub struct SortedProfile {
    profile: Profile,
    /// Number of stacks that were read.
    read: usize,
    last: StackText,
}

impl SortedProfile {
    /// Sorts the stacks.
    pub fn new(mut profile: Profile) -> Self {
        profile.presort(1);
        Self { profile, read: 0, last: StackText::default() }
    }

    /// Replaces the lines by those of the next stacks; `false` at the end.
    pub(super) fn fill(&mut self, lines: &mut Lines) -> bool {
        let Self { profile, read, last } = self;
        let range = *read..(*read + CHUNK).min(profile.len());
        if range.is_empty() {
            return false;
        }
        *read = range.end;
        let mut text = lines.take_text();
        let Ok(()) = profile.for_each_in_range::<Infallible>(range, |stack| {
            let (start, shared) = (text.len(), last.replace(&profile.frames, &stack));
            text.extend_from_slice(&last.text);
            lines.push(&text, start..text.len(), shared, stack.weights);
            Ok(())
        });
        lines.set_text(text);
        true
    }
}

/// The text of a stack.
#[derive(Default)]
struct StackText {
    text: Vec<u8>,
    /// End of each frame in `text`.
    ends: Vec<usize>,
    /// The text of the stack before, after the frames that both share.
    before: Vec<u8>,
}

impl StackText {
    /// Replaces the text by that of the next stack; returns how many bytes both share.
    fn replace(&mut self, frames: &Frames, stack: &SortedStack<'_>) -> usize {
        let Self { text, ends, before } = self;
        ends.truncate(stack.shared);
        let kept = ends.last().copied().unwrap_or(0);
        before.clear();
        before.extend_from_slice(&text[kept..]);
        text.truncate(kept);
        for frame in &stack.frames[stack.shared..] {
            if !ends.is_empty() {
                text.push(b';');
            }
            text.extend_from_slice(frames.name(*frame));
            ends.push(text.len());
        }
        kept + common_prefix(before, &text[kept..])
    }
}

#[cfg(test)]
mod tests {
    use super::SortedProfile;
    use crate::folded::sorted_reader::{SortedInput, read_sorted};
    use crate::input::Blocks;
    use crate::profile::{Profile, Weight, Weights};

    /// Returns what merges use of each stack.
    fn read(input: SortedInput) -> Vec<(Vec<u8>, usize, Weights)> {
        let mut reader = read_sorted([input]).remove(0);
        std::iter::from_fn(|| {
            let is_stack = reader.next_stack().unwrap();
            is_stack.then(|| (reader.stack().to_vec(), reader.shared_bytes(), reader.weights()))
        })
        .collect()
    }

    #[test]
    fn stacks_are_those_of_the_written_text() {
        for count in [0, 1, 1023, 1024, 1025, 5000] {
            let mut profile = Profile::new(false);
            for number in 0..count {
                let names = ["main".to_owned(), format!("f{}", number * 7919 % 5000), "leaf".to_owned()];
                let stack = names.map(|name| profile.frames.intern(name.as_bytes()));
                let depth = 1 + number % 3;
                profile.add(&stack[..depth], Weights::plain(Weight::new(number as u64))).unwrap();
            }
            let mut text = Vec::new();
            crate::folded::write(&profile, &mut text).unwrap();
            let text = Blocks::new("t".to_owned(), Box::new(std::io::Cursor::new(text))).unwrap();
            let expected = read(SortedInput::Text(text));
            assert_eq!(read(SortedInput::Profile(Box::new(SortedProfile::new(profile)))), expected);
        }
    }
}
