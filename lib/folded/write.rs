//! Writes folded text.

use std::io::{self, Write};

use crate::profile::{FrameId, Frames, Profile, SortedStack, Weights};

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

#[cfg(test)]
mod tests {
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
}
