//! The weight of own functions, divided among themselves and the functions of libraries and the kernel that they call.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::context::Context;
use crate::Error;
use crate::markers;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Weight, Weights};

/// Functions are looked at as far as this many below an own one.
const MAX_DEPTH: usize = 40;

/// A function below a callee is named with it if it has this part of the callee's weight in percent.
const INNER_PART: u128 = 70;

/// The activity of a thread while weight was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Activity {
    /// It ran on a CPU.
    #[default]
    Running,
    /// It was blocked.
    Blocked,
    /// It waited for a CPU.
    Runnable,
    /// It ran without being sampled.
    Unsampled,
}

impl Activity {
    /// Returns the activity that a thread state at the end of a stack tells.
    pub(super) fn from_state(state: Option<&[u8]>) -> Self {
        match state {
            Some(markers::OFF_CPU) => Self::Blocked,
            Some(markers::RUNNABLE) => Self::Runnable,
            Some(_) => Self::Unsampled,
            None => Self::Running,
        }
    }
}

/// The part of an own function's weight that is in one callee, or in itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// The callee; `None` for the function itself.
    pub(super) callee: Option<FrameId>,
    pub(super) activity: Activity,
    pub(super) weights: Weights,
    /// The weights by kind of work, and without one.
    pub(super) kinds: BTreeMap<Option<&'static str>, Weights>,
    /// The own functions that the callee calls back, with their weights.
    pub(super) callbacks: Vec<(FrameId, Weights)>,
    /// The innermost function that has nearly all of the weight.
    pub(super) inner: Option<(FrameId, Weights)>,
}

/// The weight of an own function by what it does.
#[derive(Clone, Debug, Default)]
pub(super) struct Below {
    /// The largest part first.
    pub(super) parts: Vec<Part>,
    /// Number of calls of the function in a stack, by the weight of such stacks; only those with several.
    pub(super) recursion: BTreeMap<usize, Weights>,
    /// The own function and the library's function through which it is called back, with the weight.
    pub(super) called_back: Vec<(FrameId, FrameId, Weights)>,
    /// True if the function has no name of its own: several with this name may call each other.
    pub(super) is_anonymous: bool,
}

/// The sums from which the parts are made.
#[derive(Default)]
struct Sums {
    parts: HashMap<(Option<FrameId>, Activity), PartSums, FxBuildHasher>,
    callbacks: HashMap<(FrameId, FrameId), Weights, FxBuildHasher>,
    called_back: HashMap<(FrameId, FrameId), Weights, FxBuildHasher>,
    recursion: BTreeMap<usize, Weights>,
}

#[derive(Default)]
struct PartSums {
    weights: Weights,
    kinds: BTreeMap<Option<&'static str>, Weights>,
    /// The weight of each function below the callee, with the sum of its depths by weight.
    inner: HashMap<FrameId, (Weights, u128), FxBuildHasher>,
}

/// Finds what these own functions spend their weight in, the largest part first.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn find(context: &Context<'_>, functions: &[FrameId]) -> Result<Vec<Below>, Error> {
    let numbers: HashMap<FrameId, usize, FxBuildHasher> = functions.iter().copied().zip(0..).collect();
    let mut sums: Vec<Sums> = functions.iter().map(|_| Sums::default()).collect();
    let profile = context.profile;
    profile.for_each(|stack, weights| {
        let place = context.origins.place(stack);
        let own = place.own.unwrap_or(0);
        if let Some(number) = numbers.get(&stack[own]) {
            sums[*number].add_below(context, stack, own, weights)?;
        }
        if place.own.is_some()
            && let Some((caller, callee)) = callback(context, stack, own)
        {
            if let Some(number) = numbers.get(&stack[own]) {
                sums[*number].called_back.entry((stack[caller], callee)).or_default().add(weights)?;
            }
            if let Some(number) = numbers.get(&stack[caller]) {
                sums[*number].callbacks.entry((callee, stack[own])).or_default().add(weights)?;
            }
        }
        Ok(())
    })?;
    let ranks = context.ranks();
    let below = sums.into_iter().zip(functions).map(|(sums, function)| Below {
        is_anonymous: is_anonymous(context.profile.frames.name(*function)),
        ..sums.finish(&ranks, profile.is_differential())
    });
    Ok(below.collect())
}

/// True for the name of a function that has none.
fn is_anonymous(name: &[u8]) -> bool {
    ["anonymous", "closure", "lambda", "<module>", "genexpr", "block in", "func1"]
        .iter()
        .any(|word| name.windows(word.len()).any(|part| part == word.as_bytes()))
}

/// Returns the own function that is the last one above another, and the library's function between them.
fn callback(context: &Context<'_>, stack: &[FrameId], own: usize) -> Option<(usize, FrameId)> {
    // Two own functions side by side are the usual case.
    let between_end = own.checked_sub(1)?;
    let is_own = context.origins.find_own(&stack[..own]);
    let caller = is_own.iter().rposition(|is_own| *is_own)?;
    let between = &stack[caller + 1..=between_end];
    let callee = context.origins.callee(between).map(|callee| between[callee])?;
    (context.origins.says_something(callee) && stack[caller] != stack[own]).then_some((caller, callee))
}

impl Sums {
    fn add_below(
        &mut self,
        context: &Context<'_>,
        stack: &[FrameId],
        own: usize,
        weights: Weights,
    ) -> Result<(), Error> {
        let end = stack.iter().rposition(|frame| !context.is_state(*frame)).map_or(0, |last| last + 1).max(own + 1);
        let activity = Activity::from_state(stack.get(end).map(|state| context.profile.frames.name(*state)));
        let below = &stack[own + 1..end.min(own + 1 + MAX_DEPTH)];
        let index = context.origins.callee(below).filter(|_| activity != Activity::Runnable);
        let part = self.parts.entry((index.map(|index| below[index]), activity)).or_default();
        part.weights.add(weights)?;
        if let Some(index) = index {
            part.kinds.entry(context.work.kind(stack[own], below)).or_default().add(weights)?;
            let end =
                below.iter().position(|frame| context.origins.is_closed(*frame)).map_or(below.len(), |end| end + 1);
            part.add_inner(context, &below[index..end.max(index)], weights)?;
        }
        // The name of a thread is often that of its function.
        let first = context.origins.first_function();
        let calls = stack[first.min(own)..=own].iter().filter(|frame| **frame == stack[own]).count();
        if calls > 1 { self.recursion.entry(calls).or_default().add(weights) } else { Ok(()) }
    }

    fn finish(self, ranks: &[u32], is_differential: bool) -> Below {
        let mut callbacks: Vec<_> = self.callbacks.into_iter().collect();
        callbacks.sort_by_key(|((callee, function), weights)| {
            (Reverse(size(weights, is_differential)), ranks[callee.index()], ranks[function.index()])
        });
        let parts = self.parts.into_iter().map(|((callee, activity), part)| Part {
            callee,
            activity,
            inner: callee.and_then(|callee| part.innermost(callee, ranks)),
            weights: part.weights,
            kinds: part.kinds,
            callbacks: Vec::new(),
        });
        let mut parts: Vec<Part> = parts.collect();
        for ((callee, function), weights) in callbacks {
            let part = parts.iter_mut().find(|part| part.callee == Some(callee) && part.activity == Activity::Running);
            match part {
                Some(part) => part.callbacks.push((function, weights)),
                None => {
                    parts.push(Part { callee: Some(callee), callbacks: vec![(function, weights)], ..Part::default() })
                }
            }
        }
        parts.sort_by_key(|part| {
            let callbacks = part.callbacks.iter().map(|(_, weights)| weights);
            let sizes = callbacks.chain([&part.weights]).map(|weights| size(weights, is_differential).millionths());
            (
                Reverse(sizes.fold(0, u128::saturating_add)),
                part.callee.map_or(u32::MAX, |callee| ranks[callee.index()]),
                part.activity,
            )
        });
        let mut called_back: Vec<_> =
            self.called_back.into_iter().map(|((caller, callee), weights)| (caller, callee, weights)).collect();
        called_back.sort_by_key(|(caller, callee, weights)| {
            (Reverse(size(weights, is_differential)), ranks[caller.index()], ranks[callee.index()])
        });
        Below { parts, recursion: self.recursion, called_back, is_anonymous: false }
    }
}

/// Returns the weight by which parts are ranked: that of a profile, or the difference of a comparison.
fn size(weights: &Weights, is_differential: bool) -> Weight {
    if is_differential { weights.difference() } else { weights.after }
}

impl PartSums {
    /// Adds the functions below a callee, each once.
    fn add_inner(&mut self, context: &Context<'_>, below: &[FrameId], weights: Weights) -> Result<(), Error> {
        for (depth, frame) in below.iter().enumerate().skip(1) {
            if context.origins.says_something(*frame) && !below[..depth].contains(frame) {
                let (sum, depths) = self.inner.entry(*frame).or_default();
                sum.add(weights)?;
                *depths = depths.saturating_add(weights.after.millionths().saturating_mul(depth as u128));
            }
        }
        Ok(())
    }

    /// Returns the innermost of the functions that have nearly all of the weight.
    fn innermost(&self, callee: FrameId, ranks: &[u32]) -> Option<(FrameId, Weights)> {
        let whole = self.weights.after.millionths();
        let large = self.inner.iter().filter(|(frame, (weights, _))| {
            **frame != callee
                && weights.after > Weight::ZERO
                && is_at_least(weights.after.millionths(), (INNER_PART, 100), whole)
        });
        let inner = large.max_by_key(|(frame, (weights, depths))| {
            let mean_depth = depths.saturating_mul(1000) / weights.after.millionths().max(1);
            (mean_depth, ranks[frame.index()])
        });
        inner.map(|(frame, (weights, _))| (*frame, *weights))
    }
}
