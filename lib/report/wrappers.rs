//! New functions between others that were there before, and those that are gone.
//!
//! What they call was called without them: by their callers, not by a function that replaced them.
//!
//! A new function may also call others more often, while all that was there before becomes less in the same time. What all calls of
//! these functions cost tells one from the other.

use std::cmp::Reverse;
use std::convert::Infallible;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::context::Context;
use super::page::{Fact, Item, Number, Value};
use crate::Error;
use crate::profile::{FrameId, Weights, is_at_least};

/// Most wrappers that are named.
const MOST_WRAPPERS: usize = 2;

/// Functions that did not change have at least this part of a wrapper's weight.
const EQUAL_PART: (u128, u128) = (9, 10);

/// Least part of what a wrapper calls that the other side calls without it. That is the weight which its callees have there
/// without functions of one side above them, as far as it exceeds the same weight on this side.
const CALLED_WITHOUT_PART: (u128, u128) = (1, 2);

/// Callees with less than this part of the wrapper's weight are not named.
const NAMED_PART: (u128, u128) = (1, 10);

/// Most callees that are named.
const MOST_CALLEES: usize = 2;

/// The functions of one side that only call functions of both sides, the largest first. The weight of these did not change by
/// more than noise, and the other side calls them without the wrapper.
#[derive(Debug, Default)]
pub(super) struct Wrappers(Vec<Wrapper>);

#[derive(Debug)]
struct Wrapper {
    frame: FrameId,
    weights: Weights,
    /// The outermost own functions of both sides below it that are worth a name, the largest first.
    callees: Vec<FrameId>,
}

/// The functions below a function.
#[derive(Debug)]
struct Below {
    /// The weight of the outermost functions of both sides; `None` where there is none.
    callees: HashMap<Option<FrameId>, u128, FxBuildHasher>,
    /// The number of functions above it, at least.
    depth: usize,
}

impl Wrappers {
    /// Finds them among the functions whose inclusive weight changed by more than noise.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub(super) fn find(context: &Context<'_>) -> Result<Self, Error> {
        let changed = context.judged.map_or(&[][..], |judged| judged.inclusive());
        let is_candidate = |frame: FrameId, weights: Weights| {
            is_on_one_side(weights) && context.is_own_function(frame) && !context.renamed.contains(frame)
        };
        let candidates: Vec<(FrameId, Weights)> =
            changed.iter().copied().filter(|(frame, weights)| is_candidate(*frame, *weights)).collect();
        if candidates.is_empty() {
            return Ok(Self::default());
        }
        let changed: HashSet<FrameId, FxBuildHasher> = changed.iter().map(|(frame, _)| *frame).collect();
        let below = find_below(context, candidates.iter().map(|(frame, _)| *frame).collect());
        let ranks = context.profile.frames.ranks();
        let direct = weigh_direct_calls(context, &below)?;
        let mut wrappers: Vec<(Wrapper, usize)> = Vec::new();
        for (frame, weights) in candidates {
            let Some(Below { callees, depth }) = below.get(&frame) else { continue };
            let total = weights.before.max(weights.after).millionths();
            let mut callees: Vec<(FrameId, u128)> =
                callees.iter().filter_map(|(callee, weight)| Some(((*callee)?, *weight))).collect();
            callees.retain(|(callee, _)| !changed.contains(callee));
            callees.sort_by_key(|(callee, weight)| (Reverse(*weight), ranks[callee.index()]));
            let called: u128 = callees.iter().map(|(_, weight)| weight).sum();
            let without = callees.iter().map(|(callee, _)| {
                let Weights { before, after } = direct.get(callee).copied().unwrap_or_default();
                let (this, other) = if weights.before.is_zero() { (after, before) } else { (before, after) };
                other.millionths().saturating_sub(this.millionths())
            });
            let is_wrapper =
                is_at_least(called, EQUAL_PART, total) && is_at_least(without.sum(), CALLED_WITHOUT_PART, called);
            callees.retain(|(_, weight)| is_at_least(*weight, NAMED_PART, total));
            if is_wrapper && !callees.is_empty() {
                let callees = callees.into_iter().map(|(callee, _)| callee).collect();
                wrappers.push((Wrapper { frame, weights, callees }, *depth));
            }
        }
        wrappers.sort_by_key(|(wrapper, depth)| (Reverse(wrapper.weights.difference()), *depth));
        Ok(Self(wrappers.into_iter().map(|(wrapper, _)| wrapper).collect()))
    }

    /// True if a function is a wrapper.
    pub(super) fn contains(&self, frame: FrameId) -> bool {
        self.0.iter().any(|wrapper| wrapper.frame == frame)
    }

    /// Returns the fact that names them with their changes, and with those of what they call, if there are some. Of those around
    /// the same calls, it names the largest.
    pub(super) fn fact(&self, context: &Context<'_>) -> Option<Fact> {
        let mut named = HashSet::<FrameId, FxBuildHasher>::default();
        let mut shown: Vec<&Wrapper> = self.0.iter().collect();
        shown.retain(|wrapper| wrapper.callees.iter().filter(|callee| named.insert(**callee)).count() > 0);
        let change = |weights| Some(Number::Change(context.change(weights)));
        let items = shown.iter().take(MOST_WRAPPERS).flat_map(|wrapper| {
            let state = if wrapper.weights.before.is_zero() { "new" } else { "gone" };
            let name = format!("{} is {state}", context.name(wrapper.frame));
            let callees = wrapper.callees.iter().take(MOST_CALLEES).map(|callee| {
                let weights = context.survey.functions[callee.index()].inclusive;
                Item::new(format!("all calls of {}", context.name(*callee)), change(weights))
            });
            [Item::new(name, change(wrapper.weights))].into_iter().chain(callees).collect::<Vec<_>>()
        });
        (!shown.is_empty()).then(|| Fact::new("wrapper", Value::List(items.collect())))
    }
}

/// Returns the weight that each function below others has without own functions of one side above it.
fn weigh_direct_calls(
    context: &Context<'_>,
    below: &HashMap<FrameId, Below, FxBuildHasher>,
) -> Result<HashMap<FrameId, Weights, FxBuildHasher>, Error> {
    let callees = below.values().flat_map(|below| below.callees.keys()).flatten();
    let mut direct: HashMap<FrameId, Weights, FxBuildHasher> =
        callees.map(|callee| (*callee, Weights::default())).collect();
    let is_on_one_side = |frame: &FrameId| {
        is_on_one_side(context.survey.functions[frame.index()].inclusive) && context.is_own_function(*frame)
    };
    let mut seen = HashSet::<FrameId, FxBuildHasher>::default();
    context.profile.for_each(|stack, weights| {
        seen.clear();
        let common = stack.iter().take_while(|frame| !is_on_one_side(frame));
        for frame in common.filter(|frame| seen.insert(**frame)) {
            direct.get_mut(frame).map_or(Ok(()), |sum| sum.add(weights))?;
        }
        Ok::<(), Error>(())
    })?;
    Ok(direct)
}

fn is_on_one_side(weights: Weights) -> bool {
    weights.before.is_zero() != weights.after.is_zero()
}

/// Returns what is below these functions. A function that also calls the one on one side is none of its callees: it contains what
/// the other one adds.
fn find_below(
    context: &Context<'_>,
    wanted: HashSet<FrameId, FxBuildHasher>,
) -> HashMap<FrameId, Below, FxBuildHasher> {
    let is_of_both = |frame: FrameId| {
        !is_on_one_side(context.survey.functions[frame.index()].inclusive) && context.is_own_function(frame)
    };
    let mut found = HashMap::<FrameId, Below, FxBuildHasher>::default();
    let mut seen = HashSet::<FrameId, FxBuildHasher>::default();
    let Ok(()) = context.profile.for_each(|stack, weights| {
        seen.clear();
        for (depth, frame) in stack.iter().enumerate() {
            if !wanted.contains(frame) || !seen.insert(*frame) {
                continue;
            }
            let (above, callees) = (&stack[..depth], &stack[depth + 1..]);
            let callee = callees.iter().copied().find(|callee| is_of_both(*callee) && !above.contains(callee));
            let below = found.entry(*frame).or_insert_with(|| Below { callees: HashMap::default(), depth });
            *below.callees.entry(callee).or_default() += weights.before.max(weights.after).millionths();
            below.depth = below.depth.min(depth);
        }
        Ok::<(), Infallible>(())
    });
    found
}
