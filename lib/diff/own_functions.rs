//! The functions of the program in a differential profile. They tell if its two sides are versions of one program.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::program::is_evidence;
use crate::categories::Categories;
use crate::own_code::Origins;
use crate::profile::{FrameId, Profile};

/// A function counts from this share of the own weight of its program or thread on.
const MIN_WEIGHT: f64 = 0.01;

/// Fewest functions that two versions of a program have in common.
const MIN_COMMON: usize = 2;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Presence {
    /// On the other side, too.
    #[default]
    Both,
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
    weights: FxHashMap<FrameId, BTreeMap<FrameId, [f64; 2]>>,
}

impl OwnFunctions {
    /// Finds the own functions.
    pub fn new(both: &Profile) -> Self {
        let own = OwnFrames::new(both);
        let mut found = Self { roots: FxHashMap::default(), weights: FxHashMap::default() };
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

    /// Returns the weights before and after of the functions of some programs and threads.
    fn sum_weights(&self, roots: &BTreeSet<FrameId>) -> BTreeMap<FrameId, [f64; 2]> {
        let mut sums = BTreeMap::<FrameId, [f64; 2]>::new();
        for (function, weights) in roots.iter().filter_map(|root| self.weights.get(root)).flatten() {
            let sum = sums.entry(*function).or_default();
            (0..2).for_each(|side| sum[side] += weights[side]);
        }
        sums
    }

    /// True if the two sides of some programs or threads are versions of one: most of the large functions of each side have the same
    /// name on the other and cost about the same, and those of the same name have half of the weight or more.
    ///
    /// `names` are the names after of functions before. `presence` says on which sides a function of a side is.
    pub fn are_versions(
        &self,
        roots: &BTreeSet<FrameId>,
        names: &BTreeMap<FrameId, FrameId>,
        presence: impl Fn(usize, FrameId) -> Presence,
    ) -> bool {
        let mut functions = BTreeMap::<FrameId, Function>::new();
        for (function, weights) in self.sum_weights(roots) {
            let name = names.get(&function).copied().unwrap_or(function);
            let named = functions.entry(name).or_default();
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
        (0..2).all(|side| {
            let large = functions.values().filter(|one| is_large(one, side));
            have_much_in_common(large, side, ratio)
        })
    }
}

/// A function with its weight before and after.
#[derive(Clone, Copy, Debug, Default)]
struct Function {
    weights: [f64; 2],
    presence: [Presence; 2],
}

/// True if most of the functions of a side are also on the other one.
fn have_much_in_common<'f>(functions: impl Iterator<Item = &'f Function>, side: usize, ratio: f64) -> bool {
    let known = functions.filter(|one| one.presence[side] != Presence::Unknown);
    let (common, others): (Vec<&Function>, Vec<&Function>) =
        known.partition(|one| one.presence[side] == Presence::Both);
    let alike = common.iter().filter(|one| are_alike(one.weights[0] * ratio, one.weights[1])).count();
    let [common_weight, other_weight] =
        [&common, &others].map(|functions| functions.iter().map(|one| one.weights[side]).sum::<f64>());
    alike >= MIN_COMMON && 2 * alike > common.len() + others.len() && common_weight >= other_weight
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
