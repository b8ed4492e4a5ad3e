//! Writing folded text.

use std::convert::Infallible;
use std::io::{self, Read, Write};

use crate::profile::{Profile, SortedStack};

/// So many stacks are made text at once, where the text is read.
const STACKS: usize = 1024;

/// Writes a profile as sorted folded text, with two weights a line if it is differential.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut line = Line::default();
    profile.for_each_sorted(|stack| out.write_all(line.of(profile, &stack)))
}

/// A line; what it shares with the next one is not made anew.
#[derive(Default)]
struct Line {
    text: Vec<u8>,
    /// Where each frame ends.
    ends: Vec<usize>,
}

impl Line {
    /// The line of the stack that comes next.
    fn of(&mut self, profile: &Profile, stack: &SortedStack<'_>) -> &[u8] {
        let Self { text, ends } = self;
        ends.truncate(stack.shared);
        text.truncate(ends.last().copied().unwrap_or(0));
        for frame in &stack.frames[stack.shared..] {
            if !ends.is_empty() {
                text.push(b';');
            }
            text.extend_from_slice(profile.frames.name(*frame));
            ends.push(text.len());
        }
        text.push(b' ');
        if profile.is_differential() {
            stack.weights.before.write_to(text);
            text.push(b' ');
        }
        stack.weights.after.write_to(text);
        text.push(b'\n');
        text
    }
}

/// A profile as sorted folded text that is read.
pub(super) struct Text {
    profile: Profile,
    /// How many stacks are text already.
    stacks: usize,
    text: Vec<u8>,
    taken: usize,
}

impl Text {
    /// The text of a profile that was put in order. Nothing if it begins as what is no plain text does: compressed text, or a
    /// byte order mark.
    pub(super) fn new(profile: Profile) -> Option<Self> {
        let mut text = Self { profile, stacks: 0, text: Vec::new(), taken: 0 };
        text.go_on();
        let mut start = text.text.iter().take(4);
        let is_plain = start.clone().next().is_none_or(u8::is_ascii_graphic)
            && start.all(|byte| matches!(byte, b' '..=b'~' | b'\n'));
        is_plain.then_some(text)
    }

    /// Makes text of more stacks.
    fn go_on(&mut self) {
        let Self { profile, stacks, text, taken } = self;
        let places = *stacks..(*stacks + STACKS).min(profile.len());
        (*taken, *stacks) = (0, places.end);
        text.clear();
        let mut line = Line::default();
        let Ok(()) = profile.for_each_in_range::<Infallible>(places, |stack| {
            text.extend_from_slice(line.of(profile, &stack));
            Ok(())
        });
    }
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.text.len() {
            self.go_on();
        }
        let read = (&self.text[self.taken..]).read(buffer)?;
        self.taken += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::Text;
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
    fn the_order_is_by_frames_and_not_by_lines() {
        let profile = profile(&[&["main", "foo.cold", "x"], &["main", "foo", "y"], &["main", "foo"], &["main"]]);
        assert_eq!(written(&profile), "main 1\nmain;foo 1\nmain;foo;y 1\nmain;foo.cold;x 1\n");
    }

    #[test]
    fn what_is_read_is_what_is_written() {
        for count in [0, 1, 1023, 1024, 1025, 5000] {
            let names: Vec<String> = (0..count).map(|number| format!("f{}", number * 7919 % 5000)).collect();
            let stacks: Vec<[&str; 2]> = names.iter().map(|name| ["main", name.as_str()]).collect();
            let mut profile = profile(&stacks.iter().map(|stack| &stack[..]).collect::<Vec<_>>());
            let expected = written(&profile);
            profile.presort(1);
            let mut read = String::new();
            Text::new(profile).unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, expected);
        }
    }
}
