//! The functions of two sides that are alike, while they are paired.
//!
//! A pair changes the relations of its callers and callees alone, so only these are compared again.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::relations::NamedRelations;
use super::renamed::Matching;
use crate::profile::FrameId;

/// Smallest similarity of a pair.
///
/// Without it, chance paired functions of programs that share others. Of 164 renamed functions of generated programs, all were found with
/// 0 to 0.5, and 162 with 0.6.
const MIN_SIMILARITY: f64 = 0.5;

/// Largest similarity of another candidate, relative to that of the best one.
const MAX_RIVAL: f64 = 0.8;

/// Factor of the similarity of candidates with other names: one with a like name is better than any that is only as similar.
const OTHER_NAME: f64 = 0.75;

/// Most functions of a side that are compared with those of the other at a time: the heaviest without another name.
const MOST_FUNCTIONS: usize = 1000;

/// Most callers, callees and candidates that are looked at; then no more pairs are looked for. 1,000 functions of one caller, each
/// compared with each, are a few millions.
const MAX_WORK: usize = 20_000_000;

/// The functions of both sides that are compared.
pub(super) struct Candidates {
    sides: [Side; 2],
    /// The functions whose candidates have changed since the last call of [`Candidates::find_best`].
    changed: [BTreeSet<FrameId>; 2],
    work: usize,
}

/// The functions of a side.
struct Side {
    /// Those that are not compared yet, the lightest first.
    waiting: Vec<FrameId>,
    compared: BTreeMap<FrameId, Compared>,
    /// The compared functions by caller whose other name is known.
    by_caller: FxHashMap<Option<FrameId>, BTreeSet<FrameId>>,
}

/// A function with those of the other side that are alike.
struct Compared {
    relations: NamedRelations,
    candidates: BTreeMap<FrameId, Candidate>,
}

/// A function of the other side that is alike.
#[derive(Clone, Copy)]
struct Candidate {
    similarity: f64,
    has_like_name: bool,
}

impl Candidate {
    fn rank(self) -> f64 {
        if self.has_like_name { self.similarity } else { OTHER_NAME * self.similarity }
    }
}

impl Compared {
    /// Returns the function that is by far the best match.
    fn best(&self) -> Option<FrameId> {
        let (function, best) = self.candidates.iter().max_by(|(_, a), (_, b)| a.rank().total_cmp(&b.rank()))?;
        let mut others = self.candidates.iter().filter(|(other, _)| *other != function);
        let has_rival = others.any(|(_, other)| other.rank() > MAX_RIVAL * best.rank());
        (best.similarity >= MIN_SIMILARITY && !has_rival).then_some(*function)
    }
}

impl Candidates {
    /// Compares the heaviest functions.
    pub fn new(matching: &Matching<'_>) -> Self {
        let sides = [0, 1].map(|side| Side {
            waiting: matching.by_weight(side),
            compared: BTreeMap::new(),
            by_caller: FxHashMap::default(),
        });
        let mut candidates = Self { sides, changed: Default::default(), work: 0 };
        candidates.compare(matching, Default::default());
        candidates
    }

    /// Returns the pairs of which each function is by far the best match of the other; none after too much work.
    pub fn find_best(&mut self) -> BTreeSet<(FrameId, FrameId)> {
        let changed = std::mem::take(&mut self.changed);
        if self.work > MAX_WORK {
            return BTreeSet::new();
        }
        let mut pairs = BTreeSet::new();
        for (side, functions) in changed.iter().enumerate() {
            for function in functions {
                let Some(best) = self.best(side, *function) else { continue };
                if self.best(1 - side, best) == Some(*function) {
                    pairs.insert(if side == 0 { (*function, best) } else { (best, *function) });
                }
            }
        }
        pairs
    }

    fn best(&mut self, side: usize, function: FrameId) -> Option<FrameId> {
        let compared = self.sides[side].compared.get(&function)?;
        self.work += compared.candidates.len();
        compared.best()
    }

    /// Removes pairs, and compares their callers and callees again.
    pub fn update(&mut self, matching: &Matching<'_>, pairs: &BTreeSet<(FrameId, FrameId)>) {
        let mut stale = [BTreeSet::new(), BTreeSet::new()];
        for (vanished, new) in pairs {
            for (side, function) in [(0, *vanished), (1, *new)] {
                self.remove(side, function);
                stale[side].extend(matching.relations[side][&function].neighbours());
            }
        }
        for (side, functions) in stale.iter_mut().enumerate() {
            functions.retain(|function| self.sides[side].compared.contains_key(function));
            functions.iter().for_each(|function| self.remove(side, *function));
        }
        self.compare(matching, stale);
    }

    /// Removes a function, also from the candidates of others.
    fn remove(&mut self, side: usize, function: FrameId) {
        let Some(removed) = self.sides[side].compared.remove(&function) else { return };
        for caller in removed.relations.known_callers() {
            if let Some(functions) = self.sides[side].by_caller.get_mut(&caller) {
                functions.remove(&function);
            }
        }
        for other in removed.candidates.into_keys() {
            if let Some(compared) = self.sides[1 - side].compared.get_mut(&other) {
                compared.candidates.remove(&function);
                self.changed[1 - side].insert(other);
            }
        }
    }

    /// Compares functions, and the next heaviest ones.
    fn compare(&mut self, matching: &Matching<'_>, mut functions: [BTreeSet<FrameId>; 2]) {
        for (side, functions) in functions.iter_mut().enumerate() {
            while self.sides[side].compared.len() + functions.len() < MOST_FUNCTIONS {
                let Some(next) = self.sides[side].waiting.pop() else { break };
                functions.insert(next);
            }
        }
        for (side, functions) in functions.into_iter().enumerate() {
            functions.into_iter().for_each(|function| self.add(matching, side, function));
        }
    }

    /// Adds a function, also to the candidates of others.
    fn add(&mut self, matching: &Matching<'_>, side: usize, function: FrameId) {
        let relations = matching.with_names(side, function);
        self.work += relations.len();
        let mut others = BTreeSet::new();
        for caller in relations.known_callers() {
            others.extend(self.sides[1 - side].by_caller.get(&caller).into_iter().flatten());
            self.sides[side].by_caller.entry(caller).or_default().insert(function);
        }
        let mut candidates = BTreeMap::new();
        for other in others {
            let Some(compared) = self.sides[1 - side].compared.get_mut(&other) else { continue };
            self.work += 1 + relations.len().min(compared.relations.len());
            let [before, after] =
                if side == 0 { [&relations, &compared.relations] } else { [&compared.relations, &relations] };
            let (vanished, new) = if side == 0 { (function, other) } else { (other, function) };
            let similarity = before.similarity(after).filter(|_| matching.may_be_one(vanished, new));
            if let Some(similarity) = similarity {
                let candidate = Candidate { similarity, has_like_name: matching.like_names.are_alike(vanished, new) };
                candidates.insert(other, candidate);
                compared.candidates.insert(function, candidate);
                self.changed[1 - side].insert(other);
            }
        }
        self.changed[side].insert(function);
        self.sides[side].compared.insert(function, Compared { relations, candidates });
    }
}

#[cfg(test)]
mod tests {
    use super::Candidates;
    use crate::diff::differential_profile;
    use crate::diff::renamed::Matching;

    /// Pairs the functions of a chain, each of which is known by its caller. Returns the number of pairs and the work.
    fn pair_chain(length: usize) -> (usize, usize) {
        let chain = |prefix: &str, depth: usize| {
            let names: Vec<String> = (0..=depth).map(|number| format!("{prefix}{number}")).collect();
            format!("app;main;{};lib{depth}", names.join(";"))
        };
        let stacks = (0..length).flat_map(|depth| [chain("old", depth) + " 50 0", chain("new", depth) + " 0 50"]);
        let common = (0..10).map(|number| format!("app;main;common{number} 999999 999999"));
        let lines: Vec<String> = stacks.chain(common).collect();
        let profile = differential_profile(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let distinct = profile.frames.iter().map(|(_, name)| name.to_vec()).collect();
        let mut matching = Matching::new(&profile, &distinct).unwrap();
        matching.versions = matching.programs();
        let mut candidates = Candidates::new(&matching);
        let mut count = 0;
        loop {
            let pairs = candidates.find_best();
            if pairs.is_empty() {
                return (count, candidates.work);
            }
            count += pairs.len();
            pairs.iter().for_each(|(vanished, new)| matching.add(*vanished, *new));
            candidates.update(&matching, &pairs);
        }
    }

    #[test]
    fn the_work_is_linear_in_the_length_of_a_chain() {
        let [(few, work), (many, more)] = [50, 400].map(pair_chain);
        assert_eq!((few, many), (50, 400));
        // Eight times the functions.
        assert!(more < 10 * work, "{work} and {more}");
        assert!(more < 100 * 400, "{more}");
    }
}
