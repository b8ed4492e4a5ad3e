//! Transforms a profile before it is drawn: selects some of the stacks, marks wakers, reverses stacks.

use super::colour::Palette;
use super::options::{Options, StackOptions};
use crate::Error;
use crate::markers;
use crate::profile::{FrameId, Frames, Profile, Weights};

/// True if stacks change with these options.
pub(super) fn is_needed(stacks: &StackOptions, options: &Options) -> bool {
    stacks.reverse || !stacks.bases.is_empty() || options.vanished || options.scheme.palette == Palette::Chain
}

/// Applies all transformations that the options ask for, except that it does not reverse stacks.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn apply(mut profile: Profile, stacks: &StackOptions, options: &Options) -> Result<Profile, Error> {
    if options.scheme.palette == Palette::Chain {
        profile = mark_wakers(&profile)?;
    }
    if options.vanished {
        profile = select_vanished(&profile)?;
    }
    if !stacks.bases.is_empty() {
        profile = cut_to_base(&profile, &stacks.bases)?;
    }
    Ok(profile)
}

/// Reverses each stack: leaves become roots.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn reverse(profile: &Profile) -> Result<Profile, Error> {
    map_stacks(profile, |_, frames, weights| Some((frames.iter().rev().copied().collect(), weights)))
}

/// Keeps only stacks with one of the frames `bases`, from the first such frame on.
fn cut_to_base(profile: &Profile, bases: &[String]) -> Result<Profile, Error> {
    map_stacks(profile, |names, frames, weights| {
        let mut names = frames.iter().map(|frame| names.name(*frame));
        let base = names.position(|name| bases.iter().any(|base| base.as_bytes() == name))?;
        Some((frames[base..].to_vec(), weights))
    })
}

/// Keeps only the stacks that weigh nothing after, and swaps their weights, so that they are as wide as before.
fn select_vanished(profile: &Profile) -> Result<Profile, Error> {
    map_stacks(profile, |_, frames, Weights { before, after }| {
        let swapped = Weights { before: after, after: before };
        after.is_zero().then(|| (frames.to_vec(), swapped))
    })
}

/// Adds the waker suffix to all frames after a `--`, for [`Palette::Chain`].
fn mark_wakers(profile: &Profile) -> Result<Profile, Error> {
    let mut marked = Profile::new(profile.is_differential());
    let mut stack = Vec::new();
    profile.for_each(|frames, weights| {
        stack.clear();
        let mut is_waker = false;
        for frame in frames {
            let name = profile.frames.name(*frame);
            let is_separator = name == markers::WAKER_SEPARATOR;
            let needs_suffix =
                is_waker && !is_separator && !markers::is_marker(name) && !name.ends_with(markers::WAKER);
            let suffix = if needs_suffix { markers::WAKER } else { b"" };
            stack.push(marked.frames.intern(&[name, suffix].concat()));
            is_waker |= is_separator;
        }
        marked.add(&stack, weights)
    })?;
    Ok(marked)
}

/// Makes a profile of what `map` returns for each stack; `None` drops the stack.
fn map_stacks(
    profile: &Profile,
    mut map: impl FnMut(&Frames, &[FrameId], Weights) -> Option<(Vec<FrameId>, Weights)>,
) -> Result<Profile, Error> {
    let mut mapped = Profile::new(profile.is_differential());
    let ids: Vec<FrameId> = profile.frames.iter().map(|(_, name)| mapped.frames.intern(name)).collect();
    profile.for_each(|frames, weights| {
        let Some((mut stack, weights)) = map(&profile.frames, frames, weights) else { return Ok(()) };
        stack.iter_mut().for_each(|frame| *frame = ids[frame.index()]);
        mapped.add(&stack, weights)
    })?;
    Ok(mapped)
}
