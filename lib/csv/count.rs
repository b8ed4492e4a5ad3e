//! Self and inclusive weights.

use crate::Error;
use crate::profile::{FrameId, Profile, Weights};

/// Leaves that are states of a thread and not functions.
const STATES: [&[u8]; 3] = [b"[off-cpu]", b"[runnable]", b"[unsampled]"];

/// What a frame weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The weight of stacks in which it is the leaf, or is in the state that its leaf names: `[off-cpu]`, `[runnable]`
    /// and `[unsampled]` have no self weight, but for stacks of nothing else. Over all frames this adds up to the total.
    pub own: Weights,
    /// The weight of all stacks in which it stands, each once however often it recurs.
    pub inclusive: Weights,
}

/// The weights of every frame, at its index.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn count(profile: &Profile) -> Result<Vec<Count>, Error> {
    let is_state: Vec<bool> = profile.frames.iter().map(|(_, name)| STATES.contains(&name)).collect();
    let mut counts = vec![Count::default(); profile.frames.len()];
    let mut last_seen = vec![0usize; profile.frames.len()];
    let mut number = 0;
    profile.for_each(|stack, weights| {
        number += 1;
        for frame in stack {
            if std::mem::replace(&mut last_seen[frame.index()], number) != number {
                counts[frame.index()].inclusive.add(weights)?;
            }
        }
        match charged(stack, &is_state) {
            Some(frame) => counts[frame.index()].own.add(weights),
            None => Ok(()),
        }
    })?;
    Ok(counts)
}

/// The frame that a stack's self weight belongs to.
fn charged(stack: &[FrameId], is_state: &[bool]) -> Option<FrameId> {
    let function = stack.iter().rfind(|frame| !is_state[frame.index()]);
    function.or(stack.last()).copied()
}
