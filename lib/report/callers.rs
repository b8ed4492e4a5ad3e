//! The callers of a function.

use std::cmp::Reverse;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::call_tree::CallTree;
use super::context::Context;
use super::page::{Item, Note, Number};
use crate::Error;
use crate::profile::{FrameId, Weights};
use crate::tally::Charging;

/// Details below this share in percent are left out.
const MIN_DETAIL: f64 = 0.3;

/// Details below this part of their row are left out.
const MIN_PART: f64 = 0.03;

/// Most callers that a note names.
const MOST_CALLERS: usize = 2;

/// A caller with this part of a function's weight is named alone, and without a share.
const NEARLY_ALL: f64 = 0.95;

/// The label of a note with callers.
pub(super) const CALLED_BY: &str = "called by";

type Sums = HashMap<FrameId, Weights, FxBuildHasher>;

/// Returns for each leaf the nearest own function above it, or its caller, by weight.
pub(super) fn of_leaves(context: &Context<'_>, leaves: &[FrameId]) -> Result<Vec<Vec<Item>>, Error> {
    let profile = context.profile;
    let mut sums = vec![Sums::default(); leaves.len()];
    let wanted: HashMap<FrameId, usize, FxBuildHasher> = leaves.iter().copied().zip(0..).collect();
    let charging = Charging::new(&profile.frames);
    profile.for_each(|stack, weights| {
        let Some(leaf) = charging.charged(stack) else { return Ok(()) };
        let Some(number) = wanted.get(&leaf) else { return Ok(()) };
        let index = stack.iter().rposition(|frame| *frame == leaf).unwrap_or(0);
        let above = &stack[..index];
        let own = context.origins.place(above).own.filter(|own| *own > 0);
        match own.map(|own| above[own]).or(above.last().copied()) {
            Some(caller) => sums[*number].entry(caller).or_default().add(weights),
            None => Ok(()),
        }
    })?;
    let ranks = context.ranks();
    Ok(sums
        .into_iter()
        .zip(leaves)
        .map(|(callers, leaf)| {
            let mut callers: Vec<_> = callers.into_iter().collect();
            callers.sort_by_key(|(frame, weights)| (Reverse(weights.after), ranks[frame.index()]));
            shares(
                callers
                    .into_iter()
                    .map(|(frame, weights)| Item::share(context.name(frame), context.share(weights.after))),
                context.share(context.survey.functions[leaf.index()].self_weights.after),
            )
        })
        .collect())
}

/// Returns for each of these own functions a note with the own functions that call it, unless it is on the hot path, or one of the
/// branches at its end: the facts at the top of the page show these.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn notes(context: &Context<'_>, functions: &[FrameId], tree: &CallTree) -> Result<Vec<Option<Note>>, Error> {
    let path: Vec<FrameId> = context.hot_path(tree).iter().filter_map(|node| node.frame).collect();
    let end = path.last();
    let notes = functions.iter().zip(of_own(context, functions)?).map(|(function, callers)| {
        let is_known = path.contains(function) || callers.first().is_some_and(|(caller, _)| Some(caller) == end);
        let items = callers.into_iter().take(MOST_CALLERS);
        let items = items.map(|(caller, weights)| Item::share(context.name(caller), context.share(weights.after)));
        let whole = context.share(context.survey.own[function].weights.after);
        let mut items = shares(items, whole);
        if let Some(first) = items.first_mut()
            && matches!(first.number, Some(Number::Share(share)) if share >= whole * NEARLY_ALL)
        {
            first.number = None;
            items.truncate(1);
        }
        (!is_known && !items.is_empty()).then(|| Note { label: CALLED_BY.to_owned(), items })
    });
    Ok(notes.collect())
}

/// Returns for each own function the own functions that call it, the largest first. Its own calls of itself are left out.
fn of_own(context: &Context<'_>, functions: &[FrameId]) -> Result<Vec<Vec<(FrameId, Weights)>>, Error> {
    let mut sums = vec![Sums::default(); functions.len()];
    let wanted: HashMap<FrameId, usize, FxBuildHasher> = functions.iter().copied().zip(0..).collect();
    context.profile.for_each(|stack, weights| {
        let Some(own) = context.origins.place(stack).own else { return Ok(()) };
        let Some(number) = wanted.get(&stack[own]) else { return Ok(()) };
        let is_own = context.origins.find_own(&stack[..own]);
        let caller = (0..own).rev().find(|index| is_own[*index] && stack[*index] != stack[own]);
        caller.map_or(Ok(()), |caller| sums[*number].entry(stack[caller]).or_default().add(weights))
    })?;
    let ranks = context.ranks();
    let callers = sums.into_iter().map(|callers| {
        let mut callers: Vec<_> = callers.into_iter().collect();
        callers.sort_by_key(|(frame, weights)| (Reverse(weights.after), ranks[frame.index()]));
        callers
    });
    Ok(callers.collect())
}

/// Returns the items that are large enough to matter for a row of this share.
fn shares(items: impl Iterator<Item = Item>, row: f64) -> Vec<Item> {
    let min = (row * MIN_PART).max(MIN_DETAIL);
    items.filter(|item| matches!(item.number, Some(Number::Share(share)) if share >= min)).collect()
}
