//! Writes folded text.

use std::convert::Infallible;
use std::io::{self, Read, Write};

use crate::profile::{FrameId, Frames, Profile, SortedStack, Weights};

/// Number of stacks that [`SortedText`] formats at once.
const CHUNK: usize = 1024;

/// Writes a profile as sorted folded text, with two weights per line if it is differential.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut line = LineBuffer::default();
    profile.for_each_sorted(|stack| out.write_all(line.format_stack(profile, &stack)))
}

/// The text of a line. The frames that the next line shares are kept.
#[derive(Default)]
pub struct LineBuffer {
    text: Vec<u8>,
    /// End of each frame in `text`.
    ends: Vec<usize>,
}

impl LineBuffer {
    /// Returns the line of the next stack: `shared` frames of the one before, then the frames `added`.
    pub fn format(
        &mut self,
        frames: &Frames,
        shared: usize,
        added: &[FrameId],
        weights: Weights,
        is_differential: bool,
    ) -> &[u8] {
        let Self { text, ends } = self;
        ends.truncate(shared);
        text.truncate(ends.last().copied().unwrap_or(0));
        for frame in added {
            if !ends.is_empty() {
                text.push(b';');
            }
            text.extend_from_slice(frames.name(*frame));
            ends.push(text.len());
        }
        text.push(b' ');
        if is_differential {
            weights.before.write_to(text);
            text.push(b' ');
        }
        weights.after.write_to(text);
        text.push(b'\n');
        text
    }

    fn format_stack(&mut self, profile: &Profile, stack: &SortedStack<'_>) -> &[u8] {
        let added = &stack.frames[stack.shared..];
        self.format(&profile.frames, stack.shared, added, stack.weights, profile.is_differential())
    }
}

/// A reader that formats a profile as sorted folded text.
pub(super) struct SortedText {
    profile: Profile,
    /// Number of stacks that were formatted.
    formatted: usize,
    text: Vec<u8>,
    /// Number of bytes of `text` that were read.
    consumed: usize,
}

impl SortedText {
    /// Creates the text of a presorted profile.
    ///
    /// `None` if the text starts like something else, which its reader would decode: compressed data, or a byte order
    /// mark.
    pub(super) fn new(profile: Profile) -> Option<Self> {
        let mut text = Self { profile, formatted: 0, text: Vec::new(), consumed: 0 };
        text.format_chunk();
        let mut start = text.text.iter().take(4);
        let is_plain = start.clone().next().is_none_or(u8::is_ascii_graphic)
            && start.all(|byte| matches!(byte, b' '..=b'~' | b'\n'));
        is_plain.then_some(text)
    }

    /// Replaces the text by that of the next stacks.
    fn format_chunk(&mut self) {
        let Self { profile, formatted, text, consumed } = self;
        let range = *formatted..(*formatted + CHUNK).min(profile.len());
        (*consumed, *formatted) = (0, range.end);
        text.clear();
        let mut line = LineBuffer::default();
        let Ok(()) = profile.for_each_in_range::<Infallible>(range, |stack| {
            text.extend_from_slice(line.format_stack(profile, &stack));
            Ok(())
        });
    }
}

impl Read for SortedText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.consumed == self.text.len() {
            self.format_chunk();
        }
        let read = (&self.text[self.consumed..]).read(buffer)?;
        self.consumed += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::SortedText;
    use crate::profile::{Profile, Weight, Weights};

    fn profile(stacks: &[&[&str]]) -> Profile {
        let mut profile = Profile::new(false);
        for stack in stacks {
            let frames: Vec<_> = stack.iter().map(|name| profile.frames.intern(name.as_bytes())).collect();
            profile.add(&frames, Weights::plain(Weight::ONE)).unwrap();
        }
        profile
    }

    fn written(profile: &Profile) -> String {
        let mut text = Vec::new();
        super::write(profile, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn sorts_by_frames_and_not_by_lines() {
        let profile = profile(&[&["main", "foo.cold", "x"], &["main", "foo", "y"], &["main", "foo"], &["main"]]);
        assert_eq!(written(&profile), "main 1\nmain;foo 1\nmain;foo;y 1\nmain;foo.cold;x 1\n");
    }

    #[test]
    fn sorted_text_equals_written_text() {
        for count in [0, 1, 1023, 1024, 1025, 5000] {
            let names: Vec<String> = (0..count).map(|number| format!("f{}", number * 7919 % 5000)).collect();
            let stacks: Vec<[&str; 2]> = names.iter().map(|name| ["main", name.as_str()]).collect();
            let mut profile = profile(&stacks.iter().map(|stack| &stack[..]).collect::<Vec<_>>());
            let expected = written(&profile);
            profile.presort(1);
            let mut read = String::new();
            SortedText::new(profile).unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, expected);
        }
    }
}
