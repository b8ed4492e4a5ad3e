//! New functions that only call what was there before, and those that are gone: what they call costs what it did.
//!
//! They are in the verdict: a new function may call others more often, while all that was there before becomes less in the same
//! time. What they call tells one from the other.

use std::cmp::Reverse;
use std::convert::Infallible;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::context::Context;
use super::measure::format_count;
use super::page::{Fact, Value};
use crate::profile::{FrameId, Weights, is_at_least};

/// Most wrappers that are named.
const MOST_WRAPPERS: usize = 2;

/// Functions that did not change have at least this part of a wrapper's weight.
const EQUAL_PART: (u128, u128) = (9, 10);

/// Callees with less than this part of the wrapper's weight are not named.
const NAMED_PART: (u128, u128) = (1, 10);

/// Most callees that are named.
const MOST_CALLEES: usize = 3;

/// The functions of one side that only call functions of both sides whose weight did not change by more than noise, the largest
/// first.
#[derive(Debug, Default)]
pub(super) struct Wrappers(Vec<Wrapper>);

#[derive(Debug)]
struct Wrapper {
    frame: FrameId,
    /// True if it is new, false if it is gone.
    is_new: bool,
    /// The outermost own functions of both sides below it that are worth a name, the largest first.
    callees: Vec<FrameId>,
}

/// The weight of the outermost functions of both sides below each function; `None` where there is none.
type WeightsBelow = HashMap<FrameId, HashMap<Option<FrameId>, u128, FxBuildHasher>, FxBuildHasher>;

impl Wrappers {
    /// Finds them among the functions whose inclusive weight changed by more than noise.
    pub(super) fn find(context: &Context<'_>) -> Self {
        let changed = context.judged.map_or(&[][..], |judged| judged.inclusive());
        let is_candidate = |frame: FrameId, weights: Weights| {
            is_on_one_side(weights) && context.is_own_function(frame) && !context.renamed.contains(frame)
        };
        let candidates: Vec<(FrameId, Weights)> =
            changed.iter().copied().filter(|(frame, weights)| is_candidate(*frame, *weights)).collect();
        if candidates.is_empty() {
            return Self::default();
        }
        let changed: HashSet<FrameId, FxBuildHasher> = changed.iter().map(|(frame, _)| *frame).collect();
        let below = weights_below(context, candidates.iter().map(|(frame, _)| *frame).collect());
        let ranks = context.profile.frames.ranks();
        let wrappers = candidates.into_iter().filter_map(|(frame, weights)| {
            let total = weights.before.max(weights.after).millionths();
            let mut callees: Vec<(FrameId, u128)> =
                below.get(&frame)?.iter().filter_map(|(callee, weight)| Some(((*callee)?, *weight))).collect();
            callees.retain(|(callee, _)| !changed.contains(callee));
            callees.sort_by_key(|(callee, weight)| (Reverse(*weight), ranks[callee.index()]));
            let is_wrapper = is_at_least(callees.iter().map(|(_, weight)| weight).sum(), EQUAL_PART, total);
            callees.retain(|(_, weight)| is_at_least(*weight, NAMED_PART, total));
            let callees: Vec<FrameId> = callees.into_iter().map(|(callee, _)| callee).collect();
            (is_wrapper && !callees.is_empty()).then_some(Wrapper { frame, is_new: weights.before.is_zero(), callees })
        });
        Self(wrappers.collect())
    }

    /// True if a function is a wrapper.
    pub(super) fn contains(&self, frame: FrameId) -> bool {
        self.0.iter().any(|wrapper| wrapper.frame == frame)
    }

    /// Returns the fact that names them, if there are some. Of those around the same calls, it names the largest.
    pub(super) fn fact(&self, context: &Context<'_>) -> Option<Fact> {
        let mut named = HashSet::<FrameId, FxBuildHasher>::default();
        let mut shown: Vec<&Wrapper> = self.0.iter().collect();
        shown.retain(|wrapper| wrapper.callees.iter().filter(|callee| named.insert(**callee)).count() > 0);
        let texts: Vec<String> = shown.iter().take(MOST_WRAPPERS).map(|wrapper| wrapper.describe(context)).collect();
        let mut text = texts.join("; ");
        if shown.len() > MOST_WRAPPERS {
            text.push_str(&format!("; {} more", format_count(shown.len() - MOST_WRAPPERS)));
        }
        (!shown.is_empty()).then(|| Fact::new("wrapper", Value::Text(text)))
    }
}

impl Wrapper {
    fn describe(&self, context: &Context<'_>) -> String {
        let mut names: Vec<String> =
            self.callees.iter().take(MOST_CALLEES).map(|callee| context.name(*callee)).collect();
        if self.callees.len() > MOST_CALLEES {
            names.push(format!("{} more", format_count(self.callees.len() - MOST_CALLEES)));
        }
        let (is, calls) = if self.is_new { ("new", "calls") } else { ("gone", "called") };
        let has = if names.len() == 1 { "has" } else { "have" };
        let name = context.name(self.frame);
        format!("{name} is {is}; {}, which it {calls}, {has} not changed beyond noise", names.join(", "))
    }
}

fn is_on_one_side(weights: Weights) -> bool {
    weights.before.is_zero() != weights.after.is_zero()
}

/// Returns what is below these functions. A function that also calls the one on one side is none of its callees: it contains what the
/// other one adds.
fn weights_below(context: &Context<'_>, wanted: HashSet<FrameId, FxBuildHasher>) -> WeightsBelow {
    let is_of_both = |frame: FrameId| {
        !is_on_one_side(context.survey.functions[frame.index()].inclusive) && context.is_own_function(frame)
    };
    let mut below = WeightsBelow::default();
    let mut seen = HashSet::<FrameId, FxBuildHasher>::default();
    let Ok(()) = context.profile.for_each(|stack, weights| {
        seen.clear();
        for (index, frame) in stack.iter().enumerate() {
            if !wanted.contains(frame) || !seen.insert(*frame) {
                continue;
            }
            let (above, callees) = (&stack[..index], &stack[index + 1..]);
            let callee = callees.iter().copied().find(|callee| is_of_both(*callee) && !above.contains(callee));
            let sums = below.entry(*frame).or_default();
            *sums.entry(callee).or_default() += weights.before.max(weights.after).millionths();
        }
        Ok::<(), Infallible>(())
    });
    below
}
