//! Changes with all that a function calls, where others changed by themselves.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::context::Context;
use super::wrappers::Wrappers;
use crate::Error;
use crate::profile::{FrameId, Weights};

/// The innermost function is named that has this part of the largest change, of those that are new, gone or more than doubled:
/// there may be several that have one caller.
const MUCH_OF_CHANGE: f64 = 0.4;

/// The same of all functions, if there are none of those.
const SAME_CHANGE: f64 = 0.9;

/// Returns the function with the largest inclusive change beyond noise, without what the functions that changed by themselves
/// have of it. `None` if their largest change, in millionths, is larger.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn find(
    context: &Context<'_>,
    changed: &HashSet<FrameId, FxBuildHasher>,
    wrappers: &Wrappers,
    largest: u128,
) -> Result<Option<(FrameId, Weights)>, Error> {
    let inclusive = context.judged.map_or(&[][..], |judged| judged.inclusive());
    let candidates = inclusive.iter().filter(|(frame, weights)| {
        context.is_own_function(*frame)
            && !changed.contains(frame)
            && !wrappers.contains(*frame)
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
    let size = |(_, weights): &(FrameId, Weights)| weights.before.max(weights.after).millionths();
    let change =
        |(frame, _): &(FrameId, Weights)| rest.get(frame).map_or(0, |(rest, _)| rest.difference().millionths());
    let ranks = context.ranks();
    let innermost = |part: f64, is_wanted: &dyn Fn(&(FrameId, Weights)) -> bool| {
        let wanted = || inclusive.iter().filter(|function| change(function) > largest && is_wanted(function));
        let most = wanted().map(change).max()? as f64;
        let found = wanted().filter(|function| change(function) as f64 >= part * most);
        found.min_by_key(|function| (size(function), Reverse(ranks[function.0.index()]))).copied()
    };
    let is_other = |function: &(FrameId, Weights)| change(function).saturating_mul(2) > size(function);
    Ok(innermost(MUCH_OF_CHANGE, &is_other).or_else(|| innermost(SAME_CHANGE, &|_| true)))
}
