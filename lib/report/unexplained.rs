//! Changes with all that a function calls, where others changed by themselves.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::context::Context;
use crate::Error;
use crate::profile::{FrameId, Weights};

/// Of functions that call each other, the innermost one is named that has this part of the largest change.
const SAME_CHANGE: f64 = 0.9;

/// Returns the function with the largest inclusive change beyond noise, without what the functions that changed by themselves
/// have of it. `None` if their largest change, in millionths, is larger.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn find(
    context: &Context<'_>,
    changed: &HashSet<FrameId, FxBuildHasher>,
    largest: u128,
) -> Result<Option<(FrameId, Weights)>, Error> {
    let inclusive = context.judged.map_or(&[][..], |judged| judged.inclusive());
    let candidates = inclusive.iter().filter(|(frame, weights)| {
        context.is_own_function(*frame)
            && !changed.contains(frame)
            && !context.renamed.contains(*frame)
            && !context.inactive.is_inactive_inclusively(*frame, *weights)
    });
    let mut rest: HashMap<FrameId, (Weights, usize), FxBuildHasher> =
        candidates.map(|(frame, _)| (*frame, (Weights::default(), 0))).collect();
    if rest.is_empty() {
        return Ok(None);
    }
    let mut stacks = 0;
    context.profile.for_each(|stack, weights| {
        stacks += 1;
        if context.origins.place(stack).own.is_some_and(|own| changed.contains(&stack[own])) {
            return Ok(());
        }
        for frame in stack {
            // Each stack counts once for a function that calls itself.
            if let Some((sum, seen)) = rest.get_mut(frame)
                && std::mem::replace(seen, stacks) != stacks
            {
                sum.add(weights)?;
            }
        }
        Ok::<(), Error>(())
    })?;
    let difference = |weights: &Weights| weights.difference().millionths();
    let most = rest.values().map(|(rest, _)| difference(rest)).max().unwrap_or_default();
    if most <= largest {
        return Ok(None);
    }
    let ranks = context.ranks();
    let found = inclusive.iter().filter(|(frame, _)| {
        rest.get(frame).is_some_and(|(rest, _)| difference(rest) as f64 >= SAME_CHANGE * most as f64)
    });
    Ok(found
        .min_by_key(|(frame, weights)| {
            (weights.before.millionths().saturating_add(weights.after.millionths()), Reverse(ranks[frame.index()]))
        })
        .copied())
}
