//! The functions of the program in a differential profile. They tell if its two sides are versions of one program.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::program::is_evidence;
use crate::categories::Categories;
use crate::own_code::Origins;
use crate::profile::{FrameId, Profile};

/// A function counts from this share of the own weight of its program or thread on.
const MIN_WEIGHT: f64 = 0.01;

/// Fewest functions of equal name and cost by which two sides are versions of a program.
const MIN_COMMON: usize = 2;

/// The same with those that probably have another name.
const MIN_ALIKE: usize = 4;

/// Smallest weight of one of two functions relative to the other that are one function of equal cost.
const MIN_WEIGHT_RATIO: f64 = 0.5;

/// The frames of a profile that may be functions of the program: those that fg-report takes for own ones, unless each program has them.
pub(super) struct OwnFrames {
    origins: Origins<'static>,
    is_evidence: Vec<bool>,
}

impl OwnFrames {
    /// Finds them in a profile.
    pub fn new(profile: &Profile) -> Self {
        let names = profile.frames.iter().map(|(_, name)| is_evidence(&String::from_utf8_lossy(name)));
        Self { is_evidence: names.collect(), origins: Origins::find(profile, Categories::of_default(), None) }
    }

    /// Returns those of a stack, root first. The root is a program or a thread.
    pub fn find<'s>(&'s self, stack: &'s [FrameId]) -> impl Iterator<Item = FrameId> + 's {
        let open = self.origins.place(stack).open;
        let own = stack.iter().zip(self.origins.find_own(stack)).take(open).skip(1);
        own.filter(|(frame, is_own)| *is_own && self.is_evidence[frame.index()]).map(|(frame, _)| *frame)
    }
}

/// The sides that a function of a side is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Presence {
    /// On the other side, too.
    #[default]
    Both,
    /// Only on this side, but the other one has a function that is probably the same under another name.
    Renamed,
    /// Only on this side.
    One,
    /// Not known: nothing is to be told from it.
    Unknown,
}

/// The own functions of a profile.
#[derive(Clone, Debug)]
pub(super) struct OwnFunctions {
    /// The programs and threads in which each function was seen: the first frames of its stacks.
    roots: FxHashMap<FrameId, FxHashSet<FrameId>>,
    /// The weight before and after of the stacks of a program or thread whose innermost own function is this one.
    weights: BTreeMap<FrameId, BTreeMap<FrameId, [f64; 2]>>,
}

impl OwnFunctions {
    /// Finds the own functions.
    pub fn new(both: &Profile) -> Self {
        let own = OwnFrames::new(both);
        let mut found = Self { roots: FxHashMap::default(), weights: BTreeMap::new() };
        let _ = both.for_each(|stack, weights| {
            let Some(root) = stack.first() else { return Ok::<(), ()>(()) };
            let mut innermost = None;
            for function in own.find(stack) {
                found.roots.entry(function).or_default().insert(*root);
                innermost = Some(function);
            }
            if let Some(function) = innermost {
                let sums = found.weights.entry(*root).or_default().entry(function).or_default();
                sums[0] += weights.before.as_f64();
                sums[1] += weights.after.as_f64();
            }
            Ok(())
        });
        found
    }

    /// True for an own function.
    pub fn contains(&self, function: FrameId) -> bool {
        self.roots.contains_key(&function)
    }

    /// Returns the programs and threads in which a function was seen.
    pub fn roots(&self, function: FrameId) -> impl Iterator<Item = FrameId> {
        self.roots.get(&function).into_iter().flatten().copied()
    }

    /// Returns the programs and threads in which both functions were seen.
    pub fn common_roots(&self, one: FrameId, other: FrameId) -> impl Iterator<Item = FrameId> {
        let other = self.roots.get(&other);
        self.roots(one).filter(move |root| other.is_some_and(|roots| roots.contains(root)))
    }

    /// Returns the weights before and after of the functions of some programs and threads, or of all.
    fn sum_weights(&self, roots: Option<&BTreeSet<FrameId>>) -> BTreeMap<FrameId, [f64; 2]> {
        let mut sums = BTreeMap::<FrameId, [f64; 2]>::new();
        let selected: Vec<_> = match roots {
            Some(roots) => roots.iter().filter_map(|root| self.weights.get(root)).collect(),
            None => self.weights.values().collect(),
        };
        for (function, weights) in selected.into_iter().flatten() {
            let sum = sums.entry(*function).or_default();
            (0..2).for_each(|side| sum[side] += weights[side]);
        }
        sums
    }

    /// Returns what the two sides of some programs or threads have in common, or of all.
    ///
    /// `name_after` returns the name after of a function before. `presence` says on which sides a function of a side is.
    pub fn agreement(
        &self,
        roots: Option<&BTreeSet<FrameId>>,
        name_after: impl Fn(FrameId) -> FrameId,
        presence: impl Fn(usize, FrameId) -> Presence,
    ) -> Agreement {
        let mut functions = BTreeMap::<FrameId, Function>::new();
        for (function, weights) in self.sum_weights(roots) {
            let named = functions.entry(name_after(function)).or_default();
            for side in (0..2).filter(|side| weights[*side] > 0.0) {
                named.weights[side] += weights[side];
                named.presence[side] = presence(side, function);
            }
        }
        let all = [0, 1].map(|side| functions.values().map(|one| one.weights[side]).sum::<f64>());
        let is_large =
            |one: &Function, side: usize| one.weights[side] > 0.0 && one.weights[side] >= MIN_WEIGHT * all[side];
        functions.retain(|_, one| (0..2).any(|side| is_large(one, side)));
        let ratio = median_ratio(functions.values());
        let sides = [0, 1].map(|side| {
            let large = functions.values().filter(|one| is_large(one, side));
            Agreement::new(large, side, ratio)
        });
        Agreement {
            has_most: sides.iter().all(|side| side.has_most),
            has_evidence: sides.iter().all(|side| side.has_evidence),
        }
    }
}

/// The functions that two sides have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreement {
    /// True if most of the large functions of each side are on the other one at about the same cost, those that are there have half of
    /// the weight or more, and half of those of equal names cost about the same.
    pub has_most: bool,
    /// True if these are enough to tell.
    pub has_evidence: bool,
}

impl Agreement {
    /// Compares the large functions of a side with the other one. Those that probably have another name count as common if they are most
    /// of the functions that only this side has, and have half of their weight or more: some functions of two programs are alike by
    /// chance, but not most.
    fn new<'f>(functions: impl Iterator<Item = &'f Function>, side: usize, ratio: f64) -> Self {
        let mut groups: BTreeMap<Presence, Group> = BTreeMap::new();
        functions.for_each(|one| groups.entry(one.presence[side]).or_default().add(one, side, ratio));
        let mut take = |presence| groups.remove(&presence).unwrap_or_default();
        let [same, renamed, others] = [Presence::Both, Presence::Renamed, Presence::One].map(&mut take);
        let (common, others) = match renamed.count > others.count && renamed.weight >= others.weight {
            true => (same.join(renamed), others),
            false => (same, others.join(renamed)),
        };
        Self {
            has_most: 2 * same.alike >= same.count
                && 2 * common.alike > common.count + others.count
                && common.weight >= others.weight,
            has_evidence: same.alike >= MIN_COMMON || common.alike >= MIN_ALIKE,
        }
    }
}

/// Functions of a side.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    count: usize,
    /// Those of about the same cost on both sides.
    alike: usize,
    weight: f64,
}

impl Group {
    fn add(&mut self, function: &Function, side: usize, ratio: f64) {
        self.count += 1;
        self.alike += usize::from(are_alike(function.weights[0] * ratio, function.weights[1]));
        self.weight += function.weights[side];
    }

    fn join(self, other: Self) -> Self {
        Self { count: self.count + other.count, alike: self.alike + other.alike, weight: self.weight + other.weight }
    }
}

/// A function with its weight before and after.
#[derive(Clone, Copy, Debug, Default)]
struct Function {
    weights: [f64; 2],
    presence: [Presence; 2],
}

/// True if two functions may be one of equal cost.
fn are_alike(one: f64, other: f64) -> bool {
    one.min(other) >= MIN_WEIGHT_RATIO * one.max(other)
}

/// Returns the median of the weights after relative to those before, of the functions that both sides have.
fn median_ratio<'f>(functions: impl Iterator<Item = &'f Function>) -> f64 {
    let both = functions.map(|one| one.weights).filter(|[before, after]| *before > 0.0 && *after > 0.0);
    let mut ratios: Vec<f64> = both.map(|[before, after]| after / before).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(1.0)
}
