//! The weight of a profile by group of threads, by entry of the program, and by kind of work.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::below::Activity;
use super::context::Context;
use super::idle::{self, Inactivity, InactivityFinder, Rank};
use super::page::{Fact, Item, Number, Value};
use crate::Error;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Weight, Weights};

/// Groups and kinds below this share in percent are left out.
const MIN_SHARE: f64 = 1.0;

/// The place where a group of threads spent most is named if it has at least this part of the group in percent.
const MIN_PART: f64 = 10.0;

/// Callers are missing if a larger share of the weight in percent is in stacks that begin with a function of a library.
const MOST_STARTLESS: f64 = 10.0;

/// Most functions that are named for a kind of work.
const MOST_FUNCTIONS: usize = 2;

/// A function that has nearly all of a kind of work is named without a share.
const NEARLY_ALL: f64 = 0.95;

/// The same as a part.
const NEARLY_ALL_OF_GROUP: (u128, u128) = (19, 20);

/// The kind of the program's own functions themselves.
const OWN_CODE: &str = "own code";

/// The kind of waits for a CPU.
const WAITING_FOR_CPU: &str = "waiting for a CPU";

/// The kind of waits for the end of a thread.
const THREAD_JOIN: &str = "thread join";

/// A group with this share in percent is nearly all.
const SINGLE_GROUP: f64 = 75.0;

/// Threads run functions of the program if stacks with some have this part of their weight.
const OWN_PART: (u128, u128) = (1, 10);

/// Groups below this share in percent do not count.
const LARGE_GROUP: f64 = 5.0;

/// A kind that counts for others is named with all its weight if that has this share in percent.
const MIN_WHOLE_KIND: f64 = 10.0;

/// Threads whose names are equal but for digits, or stacks with the same entry.
#[derive(Debug, Default)]
struct Group {
    weights: Weights,
    /// The weight of its stacks with functions of the program.
    own: Weights,
    /// The weight of its stacks that are idle, or wait for the end of others.
    inactive: Weights,
    /// The weight of waits for the end of threads.
    joins: Weights,
    threads: HashSet<FrameId, FxBuildHasher>,
    /// The weight by the own function and by what it called.
    places: HashMap<(FrameId, Option<FrameId>), Weights, FxBuildHasher>,
}

/// A stack that is added to a group.
struct Added {
    weights: Weights,
    is_own: bool,
    is_inactive: bool,
    is_join: bool,
    root: FrameId,
    place: (FrameId, Option<FrameId>),
}

/// The weight by thread and by entry.
pub(super) struct Groups {
    /// The one that tells what the program does.
    pub(super) first: Option<Fact>,
    pub(super) others: Vec<Fact>,
}

impl Group {
    fn add(&mut self, added: &Added) -> Result<(), Error> {
        let Added { weights, is_own, is_inactive, is_join, root, place } = *added;
        self.weights.add(weights)?;
        self.threads.insert(root);
        self.places.entry(place).or_default().add(weights)?;
        if is_own {
            self.own.add(weights)?;
        }
        if is_inactive {
            self.inactive.add(weights)?;
        }
        if is_join {
            self.joins.add(weights)?;
        }
        Ok(())
    }

    /// True if nearly all of its stacks count for this own function.
    fn is_of(&self, own: FrameId) -> bool {
        let weights =
            self.places.iter().filter(|((other, _), _)| *other == own).map(|(_, weights)| weights.after.millionths());
        is_at_least(weights.fold(0, u128::saturating_add), NEARLY_ALL_OF_GROUP, self.weights.after.millionths())
    }

    /// Returns the weight of its stacks that are not idle, and do not wait for the end of others.
    fn work(&self) -> Weight {
        self.weights.after.saturating_sub(self.inactive.after)
    }
}

/// Sums over all stacks.
#[derive(Debug, Default)]
pub(super) struct Overview {
    /// By the name of the thread.
    threads: BTreeMap<String, Group>,
    /// By the outermost own function.
    entries: BTreeMap<FrameId, Group>,
    /// The weight of stacks without own functions that begin with a function that nothing starts.
    startless: Weights,
    /// By kind of work, and by the own function that it is done for.
    kinds: BTreeMap<&'static str, Functions>,
    /// By kind of the functions that do the work, where it counts as the kind of a function that asked for it.
    hidden: BTreeMap<&'static str, Functions>,
}

/// Weights by own function.
type Functions = HashMap<FrameId, Weights, FxBuildHasher>;

impl Overview {
    /// Sums up a profile.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn new(context: &Context<'_>) -> Result<Self, Error> {
        let mut overview = Self::default();
        let roots = context.survey.roots.keys().filter(|root| !context.is_state(**root));
        let names: BTreeMap<FrameId, String> =
            roots.map(|root| (*root, context.name(context.pools.pool(*root)))).collect();
        let finder = InactivityFinder::new(&context.profile.frames, context.origins, context.work);
        context.profile.for_each(|stack, weights| {
            let Some((root, name)) = stack.first().and_then(|root| names.get_key_value(root)) else { return Ok(()) };
            let own = context.origins.place(stack).own;
            let index = own.unwrap_or(0);
            let end = stack.iter().rposition(|frame| !context.is_state(*frame)).map_or(0, |last| last + 1);
            let below = &stack[(index + 1).min(end)..end];
            let state = stack.get(end).map(|state| context.profile.frames.name(*state));
            let activity = Activity::from_state(state);
            let callee = match activity {
                Activity::Runnable => None,
                _ => context.origins.callee(below).map(|callee| below[callee]),
            };
            let inactivity = finder.find(&context.profile.frames, stack);
            let kind = kind_of_work(context, stack, own, below, activity);
            let added = Added {
                weights,
                is_own: own.is_some_and(|own| own > 0),
                is_inactive: matches!(inactivity, Some(Inactivity::Idle | Inactivity::Join)),
                is_join: inactivity != Some(Inactivity::Idle) && kind == Some(THREAD_JOIN),
                root: *root,
                place: (stack[index], callee),
            };
            overview.threads.entry(name.clone()).or_default().add(&added)?;
            // The root is the name of a thread.
            match context.own_on_path(stack).into_iter().find(|entry| *entry > 0) {
                Some(entry) => overview.entries.entry(stack[entry]).or_default().add(&added)?,
                None if lacks_start(context, stack) => overview.startless.add(weights)?,
                None => {}
            }
            if inactivity == Some(Inactivity::Idle) {
                return overview.kinds.entry(idle::MARK).or_default().entry(stack[index]).or_default().add(weights);
            }
            let Some(kind) = kind else { return Ok(()) };
            overview.kinds.entry(kind).or_default().entry(stack[index]).or_default().add(weights)?;
            let inner = context.work.inner_kind(kind, below).filter(|_| activity == Activity::Running);
            inner.map_or(Ok(()), |inner| {
                overview.hidden.entry(inner).or_default().entry(stack[index]).or_default().add(weights)
            })
        })?;
        Ok(overview)
    }

    /// Returns the weight by thread, if there are several, and by entry, if there are several. The first one that tells what the
    /// program does comes first; `None` in its place if neither does.
    pub(super) fn groups(&self, context: &Context<'_>) -> Groups {
        let mut threads = self.threads(context);
        let mut entries = self.entries(context, threads.is_some());
        let first = match () {
            () if is_divided(context, self.threads.values()) => threads.take(),
            () if is_divided(context, self.entries.values()) => entries.take(),
            () => None,
        };
        Groups { first, others: threads.into_iter().chain(entries).collect() }
    }

    /// Returns the weight by group of threads.
    fn threads(&self, context: &Context<'_>) -> Option<Fact> {
        let name = |name: &String| name.clone();
        groups_fact(context, "threads", &self.threads, name, |_, group, own| group.threads.contains(own))
    }

    /// Returns the weight by outermost own function, unless these are those of the table of own functions, or each is that of threads
    /// with another name, which are shown. Nothing is known of entries if many stacks lack their callers.
    fn entries(&self, context: &Context<'_>, has_threads: bool) -> Option<Fact> {
        let shown = self.entries.iter().filter(|(_, group)| context.share(group.weights.after) >= MIN_SHARE);
        let mut names = HashSet::<FrameId, FxBuildHasher>::default();
        let mut has_own_name = |group: &Group| {
            let mut names_of_group = group.threads.iter().map(|thread| context.pools.pool(*thread));
            let first = names_of_group.next();
            names_of_group.all(|name| Some(name) == first) && first.is_some_and(|name| names.insert(name))
        };
        if context.share(self.startless.after) > MOST_STARTLESS
            || shown.clone().all(|(entry, group)| group.is_of(*entry))
            || has_threads && shown.clone().all(|(_, group)| has_own_name(group))
        {
            return None;
        }
        let name = |entry: &FrameId| context.name(*entry);
        groups_fact(context, "entries", &self.entries, name, |entry, _, own| entry == own)
    }

    /// Returns the weight by kind of work.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn work(&self, context: &Context<'_>) -> Result<Option<Fact>, Error> {
        let ranks = context.ranks();
        let (mut kinds, whole_kinds) = (self.kinds.clone(), self.whole_kinds(context)?);
        kinds.retain(|kind, _| !whole_kinds.contains_key(kind));
        let whole_kinds = whole_kinds.iter().map(|(kind, functions)| (format!("{kind} in all"), functions));
        let kinds = kinds.iter().map(|(kind, functions)| ((*kind).to_owned(), functions)).chain(whole_kinds);
        let mut kinds: Vec<(Weight, String, &Functions)> =
            kinds.map(|(kind, functions)| (sum(functions), kind, functions)).collect();
        kinds.sort_by(|a, b| (rank_of_kind(&a.1), Reverse(a.0), &a.1).cmp(&(rank_of_kind(&b.1), Reverse(b.0), &b.1)));
        let items: Vec<Item> = kinds
            .into_iter()
            .map(|(weight, kind, functions)| (context.share(weight), kind, functions))
            .filter(|(share, _, _)| *share >= MIN_SHARE)
            .map(|(share, kind, functions)| Item {
                parts: largest_functions(context, functions, share, &ranks),
                ..Item::share(kind, share)
            })
            .collect();
        Ok((!items.is_empty()).then(|| Fact::new("work", Value::List(items))))
    }

    /// Returns the kinds of which much counts for other kinds, with all weight of the functions that do the work.
    fn whole_kinds(&self, context: &Context<'_>) -> Result<BTreeMap<&'static str, Functions>, Error> {
        let mut kinds = BTreeMap::new();
        for (kind, hidden) in &self.hidden {
            let mut whole = self.kinds.get(kind).cloned().unwrap_or_default();
            let known = sum(&whole).millionths();
            for (function, weights) in hidden {
                whole.entry(*function).or_default().add(*weights)?;
            }
            let is_large = context.share(sum(&whole)) >= MIN_WHOLE_KIND;
            if is_large && is_at_least(sum(hidden).millionths(), (1, 2), known) {
                kinds.insert(*kind, whole);
            }
        }
        Ok(kinds)
    }
}

/// True for a stack that begins below the name of its thread with neither the start of a thread nor the kernel.
fn lacks_start(context: &Context<'_>, stack: &[FrameId]) -> bool {
    let first = stack.get(1).filter(|first| !context.is_state(**first));
    first.is_some_and(|first| !context.origins.is_start(*first) && !context.origins.is_kernel(*first))
}

/// Returns the rank of a kind: work comes before waits for others, and what is idle last.
fn rank_of_kind(kind: &str) -> Rank {
    match kind {
        idle::MARK => Rank::Idle,
        _ if idle::JOINS.contains(&kind) => Rank::Join,
        _ => Rank::Work,
    }
}

/// Returns the weight after of all functions.
fn sum(functions: &Functions) -> Weight {
    let weights = functions.values().map(|weights| weights.after.millionths());
    Weight::from_millionths(weights.fold(0, u128::saturating_add))
}

/// Returns the kind of what a thread does in a stack whose part below the own function is `below`; `None` if there is no word
/// for it.
fn kind_of_work(
    context: &Context<'_>,
    stack: &[FrameId],
    own: Option<usize>,
    below: &[FrameId],
    activity: Activity,
) -> Option<&'static str> {
    match (own, activity) {
        (Some(_), Activity::Runnable) => Some(WAITING_FOR_CPU),
        // Threads of a runtime that wait for work do none.
        (None, Activity::Blocked | Activity::Runnable) => None,
        (Some(_), Activity::Running) if below.is_empty() => Some(OWN_CODE),
        (_, Activity::Running) if below.is_empty() => None,
        _ => context.work.kind(stack[own.unwrap_or(0)], below),
    }
}

/// Returns the groups as a fact, the largest first, if there are several. `is_named` tells whether the name of a group is that of an
/// own function.
fn groups_fact<K: Ord>(
    context: &Context<'_>,
    label: &'static str,
    groups: &BTreeMap<K, Group>,
    name: impl Fn(&K) -> String,
    is_named: impl Fn(&K, &Group, &FrameId) -> bool,
) -> Option<Fact> {
    if context.origins.has_function_roots() {
        return None;
    }
    let mut groups: Vec<_> = groups.iter().map(|(key, group)| (name(key), key, group)).collect();
    groups.sort_by(|(a, _, one), (b, _, other)| {
        (Reverse(one.work()), Reverse(one.weights.after), a).cmp(&(
            Reverse(other.work()),
            Reverse(other.weights.after),
            b,
        ))
    });
    let items: Vec<Item> = groups
        .into_iter()
        .map(|(name, key, group)| (name, key, group, context.share(group.weights.after)))
        .filter(|(.., share)| *share >= MIN_SHARE)
        .map(|(name, key, group, share)| Item {
            parts: place(context, group, |own| is_named(key, group, own)).into_iter().collect(),
            ..Item::share(name, share)
        })
        .collect();
    (items.len() > 1).then(|| Fact::new(label, Value::List(items)))
}

/// Returns the place in which a group spent most of its time.
fn place(context: &Context<'_>, group: &Group, is_named: impl Fn(&FrameId) -> bool) -> Option<Item> {
    let ranks = context.ranks();
    let ((own, callee), weights) = group.places.iter().max_by_key(|((own, callee), weights)| {
        (weights.after, Reverse(ranks[own.index()]), callee.map(|callee| ranks[callee.index()]))
    })?;
    let part = 100.0 * weights.after.as_f64() / group.weights.after.as_f64().max(f64::MIN_POSITIVE);
    let name = match callee {
        Some(callee) if is_named(own) => context.name(*callee),
        Some(callee) => format!("{} > {}", context.name(*own), context.name(*callee)),
        None if is_named(own) => return None,
        None => context.name(*own),
    };
    (part >= MIN_PART).then(|| Item::new(name, Some(Number::Part(part))))
}

/// True if several groups do different work: not if nearly all weight is that of one which runs functions of the program, or if all
/// others that do only wait for the end of threads.
fn is_divided<'g>(context: &Context<'_>, groups: impl Iterator<Item = &'g Group> + Clone) -> bool {
    let is_own = |group: &Group| is_at_least(group.own.after.millionths(), OWN_PART, group.weights.after.millionths());
    let has_own = groups.clone().any(is_own);
    let counting = groups.filter(|group| {
        let joins = is_at_least(group.joins.after.millionths(), (9, 10), group.weights.after.millionths());
        (is_own(group) || !has_own) && !joins
    });
    let large: Vec<(bool, f64)> = counting
        .map(|group| (is_own(group), context.share(group.weights.after)))
        .filter(|(_, share)| *share >= LARGE_GROUP)
        .collect();
    large.len() > 1 && !large.iter().any(|(is_own, share)| *is_own && *share >= SINGLE_GROUP)
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
