//! The weight of a profile by group of threads, and by kind of work.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::below::Activity;
use super::context::{Context, display_name};
use super::page::{Fact, Item, Number, Value};
use crate::Error;
use crate::profile::{FrameId, Weight, Weights};

/// Groups and kinds below this share in percent are left out.
const MIN_SHARE: f64 = 1.0;

/// The place where a group of threads spent most is named if it has at least this part of the group in percent.
const MIN_PART: f64 = 10.0;

/// Most functions that are named for a kind of work.
const MOST_FUNCTIONS: usize = 2;

/// A function that has nearly all of a kind of work is named without a share.
const NEARLY_ALL: f64 = 0.95;

/// Threads with equal names but for digits that run the same function of the program.
#[derive(Debug, Default)]
struct Group {
    weights: Weights,
    threads: HashSet<FrameId, FxBuildHasher>,
    /// The weight by the own function and by what it called.
    places: HashMap<(FrameId, Option<FrameId>), Weights, FxBuildHasher>,
}

/// Sums over all stacks.
#[derive(Debug, Default)]
pub(super) struct Overview {
    /// By the name of the thread, and by the outermost own function.
    groups: BTreeMap<(String, Option<FrameId>), Group>,
    /// By kind of work, and by the own function that it is done for.
    kinds: BTreeMap<&'static str, HashMap<FrameId, Weights, FxBuildHasher>>,
}

impl Overview {
    /// Sums up a profile.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn new(context: &Context<'_>) -> Result<Self, Error> {
        let mut overview = Self::default();
        let mut names = HashMap::<FrameId, String, FxBuildHasher>::default();
        context.profile.for_each(|stack, weights| {
            let Some(root) = stack.first().filter(|root| !context.is_state(**root)) else { return Ok(()) };
            let own = context.origins.place(stack).own;
            let entry = own.and_then(|own| context.origins.find_own(&stack[..=own]).iter().position(|is_own| *is_own));
            let name = names.entry(*root).or_insert_with(|| generic_name(&context.name(*root)));
            let group = overview.groups.entry((name.clone(), entry.map(|entry| stack[entry]))).or_default();
            group.weights.add(weights)?;
            group.threads.insert(*root);
            let index = own.unwrap_or(0);
            let end = stack.iter().rposition(|frame| !context.is_state(*frame)).map_or(0, |last| last + 1);
            let below = &stack[(index + 1).min(end)..end];
            let state = stack.get(end).map(|state| context.profile.frames.name(*state));
            let activity = Activity::from_state(state);
            let callee = match activity {
                Activity::Runnable => None,
                _ => context.origins.callee(below).map(|callee| below[callee]),
            };
            group.places.entry((stack[index], callee)).or_default().add(weights)?;
            // Threads of a runtime that wait for work do none.
            let is_idle = own.is_none() && activity == Activity::Blocked;
            match context.work.kind(stack[index], below).filter(|_| callee.is_some() && !is_idle) {
                Some(kind) => overview.kinds.entry(kind).or_default().entry(stack[index]).or_default().add(weights),
                None => Ok(()),
            }
        })?;
        Ok(overview)
    }

    /// Returns the weight by group of threads, if there are several.
    pub(super) fn threads(&self, context: &Context<'_>) -> Option<Fact> {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| Reverse(group.weights.after));
        let items: Vec<Item> = groups
            .iter()
            .map(|(key, group)| (*key, *group, context.share(group.weights.after)))
            .filter(|(_, _, share)| *share >= MIN_SHARE)
            .map(|(key, group, share)| Item {
                parts: place(context, key.1, group).into_iter().collect(),
                ..Item::share(self.name_group(context, key, group), share)
            })
            .collect();
        (items.len() > 1).then(|| Fact::new("threads", Value::List(items)))
    }

    /// Returns the name of a group: of its threads, with its outermost own function if others have the same threads, and
    /// how many threads it has.
    fn name_group(&self, context: &Context<'_>, key: &(String, Option<FrameId>), group: &Group) -> String {
        let (thread, entry) = key;
        let is_shared = self.groups.keys().filter(|(other, _)| other == thread).count() > 1;
        let name = match entry {
            // The name of a thread says more than that of its pool.
            Some(entry) if is_shared && group.threads.contains(entry) => context.name(*entry),
            Some(entry) if is_shared => format!("{thread}: {}", context.name(*entry)),
            _ => thread.clone(),
        };
        if group.threads.len() > 1 { format!("{name} ×{}", group.threads.len()) } else { name }
    }

    /// Returns the weight by kind of work.
    pub(super) fn work(&self, context: &Context<'_>) -> Option<Fact> {
        let ranks = context.ranks();
        let mut kinds: Vec<(Weight, &str, _)> = self
            .kinds
            .iter()
            .map(|(kind, functions)| {
                let whole = functions.values().map(|weights| weights.after.millionths()).sum();
                (Weight::from_millionths(whole), *kind, functions)
            })
            .collect();
        kinds.sort_by_key(|(weight, kind, _)| (Reverse(*weight), *kind));
        let items: Vec<Item> = kinds
            .into_iter()
            .map(|(weight, kind, functions)| (context.share(weight), kind, functions))
            .filter(|(share, _, _)| *share >= MIN_SHARE)
            .map(|(share, kind, functions)| Item {
                parts: largest_functions(context, functions, share, &ranks),
                ..Item::share(kind, share)
            })
            .collect();
        (!items.is_empty()).then(|| Fact::new("work", Value::List(items)))
    }
}

/// Returns the place in which a group of threads spent most of its time.
fn place(context: &Context<'_>, entry: Option<FrameId>, group: &Group) -> Option<Item> {
    let ranks = context.ranks();
    let rank = |frame: &FrameId| ranks[frame.index()];
    let ((own, callee), weights) = group
        .places
        .iter()
        .max_by_key(|((own, callee), weights)| (weights.after, Reverse(rank(own)), callee.as_ref().map(rank)))?;
    let part = 100.0 * weights.after.as_f64() / group.weights.after.as_f64().max(f64::MIN_POSITIVE);
    let is_thread = group.threads.contains(own) || entry == Some(*own);
    let name = match callee {
        Some(callee) if is_thread => context.name(*callee),
        Some(callee) => format!("{} > {}", context.name(*own), context.name(*callee)),
        None if is_thread => return None,
        None => context.name(*own),
    };
    (part >= MIN_PART).then(|| Item::new(name, Some(Number::Part(part))))
}

/// Returns the functions that have most of a kind of work, with their shares.
fn largest_functions(
    context: &Context<'_>,
    functions: &HashMap<FrameId, Weights, FxBuildHasher>,
    whole: f64,
    ranks: &[u32],
) -> Vec<Item> {
    let mut functions: Vec<_> = functions.iter().collect();
    functions.sort_by_key(|(frame, weights)| (Reverse(weights.after), ranks[frame.index()]));
    let shares = functions.into_iter().map(|(frame, weights)| (context.name(*frame), context.share(weights.after)));
    let mut items: Vec<Item> = shares
        .take(MOST_FUNCTIONS)
        .filter(|(_, share)| *share >= whole / 10.0)
        .map(|(name, share)| Item::share(name, share))
        .collect();
    if let Some(first) = items.first_mut()
        && matches!(first.number, Some(Number::Share(share)) if share >= whole * NEARLY_ALL)
    {
        first.number = None;
        items.truncate(1);
    }
    items
}

/// Returns the name of a thread with `N` for each run of digits at its end: `worker-12` becomes `worker-N`.
pub(super) fn generic_name(name: &str) -> String {
    let stem = name.trim_end_matches(|last: char| last.is_ascii_digit());
    match stem.is_empty() || stem.len() == name.len() || !stem.ends_with(['-', '_', '#', ' ', ':', '/']) {
        true => name.to_owned(),
        false => format!("{}N", display_name(stem.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::generic_name;

    #[test]
    fn threads_of_a_pool_have_one_name() {
        for (name, expected) in [
            ("clerk-12", "clerk-N"),
            ("GC Thread#0", "GC Thread#N"),
            ("python3.11", "python3.11"),
            ("7", "7"),
            ("md5", "md5"),
        ] {
            assert_eq!(generic_name(name), expected);
        }
    }
}
