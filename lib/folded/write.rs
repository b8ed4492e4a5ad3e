//! Writing folded text.

use std::io::{self, Write};

use crate::profile::Profile;

/// Writes a profile as sorted folded text, with two weights a line if it is differential.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    let mut ends: Vec<usize> = Vec::new();
    profile.for_each_sorted(|stack| {
        ends.truncate(stack.shared);
        line.truncate(ends.last().copied().unwrap_or(0));
        for frame in &stack.frames[stack.shared..] {
            if !ends.is_empty() {
                line.push(b';');
            }
            line.extend_from_slice(profile.frames.name(*frame));
            ends.push(line.len());
        }
        line.push(b' ');
        if profile.is_differential() {
            stack.weights.before.write_to(&mut line);
            line.push(b' ');
        }
        stack.weights.after.write_to(&mut line);
        line.push(b'\n');
        out.write_all(&line)
    })
}

#[cfg(test)]
mod tests {
    use crate::profile::{Profile, Weight, Weights};

    #[test]
    fn the_order_is_by_frames_and_not_by_lines() {
        let mut profile = Profile::new(false);
        for stack in [&["main", "foo.cold", "x"][..], &["main", "foo", "y"], &["main", "foo"], &["main"]] {
            let frames: Vec<_> = stack.iter().map(|name| profile.frames.intern(name.as_bytes())).collect();
            profile.add(&frames, Weights::plain(Weight::ONE)).unwrap();
        }
        let mut text = Vec::new();
        super::write(&profile, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "main 1\nmain;foo 1\nmain;foo;y 1\nmain;foo.cold;x 1\n");
    }
}
