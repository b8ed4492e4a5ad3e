//! Other stacks to draw, made of the profile's.

use crate::Error;
use crate::markers;
use crate::profile::{FrameId, Frames, Profile, Weights};

/// Each stack turned round: leaves become roots.
///
/// # Errors
/// [`Error::Overflow`].
pub fn reversed(profile: &Profile) -> Result<Profile, Error> {
    reshaped(profile, |_, frames, weights| Some((frames.iter().rev().copied().collect(), weights)))
}

/// Only stacks with one of the frames, from the first such frame on.
///
/// # Errors
/// [`Error::Overflow`].
pub fn based(profile: &Profile, bases: &[String]) -> Result<Profile, Error> {
    reshaped(profile, |names, frames, weights| {
        let is_base = |frame: &FrameId| bases.iter().any(|base| base.as_bytes() == names.name(*frame));
        frames.iter().position(is_base).map(|base| (frames[base..].to_vec(), weights))
    })
}

/// Only what vanished: the stacks that weigh nothing after, as wide as before.
///
/// # Errors
/// [`Error::Overflow`].
pub fn vanished(profile: &Profile) -> Result<Profile, Error> {
    reshaped(profile, |_, frames, Weights { before, after }| {
        let swapped = Weights { before: after, after: before };
        after.is_zero().then(|| (frames.to_vec(), swapped))
    })
}

/// Wakeup chains as the palette for them wants them: what stands behind a `--` are wakers, and named as such.
///
/// # Errors
/// [`Error::Overflow`].
pub fn wakers(profile: &Profile) -> Result<Profile, Error> {
    let mut reshaped = Profile::new(profile.is_differential());
    profile.for_each(|frames, weights| {
        let mut is_waker = false;
        let mut name = |frame: &FrameId| {
            let name = profile.frames.name(*frame);
            let is_border = name == b"--";
            let suffix: &[u8] =
                if is_waker && !is_border && !name.ends_with(markers::WAKER) { markers::WAKER } else { b"" };
            is_waker |= is_border;
            reshaped.frames.intern(&[name, suffix].concat())
        };
        let stack: Vec<FrameId> = frames.iter().map(&mut name).collect();
        reshaped.add(&stack, weights)
    })?;
    Ok(reshaped)
}

fn reshaped(
    profile: &Profile,
    mut reshape: impl FnMut(&Frames, &[FrameId], Weights) -> Option<(Vec<FrameId>, Weights)>,
) -> Result<Profile, Error> {
    let mut reshaped = Profile::new(profile.is_differential());
    let ids: Vec<FrameId> = profile.frames.iter().map(|(_, name)| reshaped.frames.intern(name)).collect();
    profile.for_each(|frames, weights| {
        let Some((mut stack, weights)) = reshape(&profile.frames, frames, weights) else { return Ok(()) };
        stack.iter_mut().for_each(|frame| *frame = ids[frame.index()]);
        reshaped.add(&stack, weights)
    })?;
    Ok(reshaped)
}
