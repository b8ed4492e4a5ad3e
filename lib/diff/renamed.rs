//! Pairs functions that vanished with functions that are new: a function that was renamed has the same callers, callees and
//! weight as before. That of callers and weight alone is no evidence (`rename_evidence.rs`).
//!
//! Only functions of the program are paired, and only within one program or thread: no build renames those of libraries and
//! of the kernel, and two programs that share a library are not one program with other names. All functions tell if two sides
//! are versions of it: most have the same name or a pair, and cost about the same. Two programs have functions that are alike, too, such as
//! the heaviest below `main`: so pairs count only if most functions that are left have one. A thread may have one or two functions: these must
//! agree, and those of all threads must be enough.

use std::collections::{BTreeMap, BTreeSet};

use bstr::ByteSlice as _;

use super::candidates::Candidates;
use super::name_words::LikeNames;
use super::own_functions::{Agreement, OwnFunctions, Presence};
use super::relations::{NamedRelations, Relations, find_relations};
use crate::Error;
use crate::profile::{FrameId, Frames, Profile};

/// Smallest similarity of a pair by which two sides may be versions of one program.
///
/// Other pairs of versions have at least `candidates::MIN_SIMILARITY`. In 500 comparisons of two generated programs of up to four
/// functions each that share up to three others, 0.5 gave three wrong pairs and 0.7 one; of 351 renamed functions, of which five to seven
/// made up a program with the other ones, 299 and 290 were found.
const MIN_CERTAIN: f64 = 0.7;

/// A function with another name on each side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name before.
    pub before: Vec<u8>,
    /// The name after.
    pub after: Vec<u8>,
}

/// Returns the functions of a differential profile that were probably renamed, in the order of their names before.
///
/// `distinct` has the functions whose weight on one side only is no chance: only these are paired.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub(super) fn find_renamed(both: &Profile, distinct: &BTreeSet<Vec<u8>>) -> Result<Vec<Renamed>, Error> {
    let names = both.frames.iter().map(|(frame, name)| (frame, name.to_vec())).collect::<BTreeMap<_, _>>();
    let found = Matching::new(both, distinct)?.find_pairs();
    let mut renamed: Vec<Renamed> =
        found.pairs().map(|(old, new)| Renamed { before: names[&old].clone(), after: names[&new].clone() }).collect();
    renamed.sort_by(|a, b| a.before.cmp(&b.before));
    Ok(renamed)
}

/// The own functions of both sides while they are paired.
#[derive(Clone, Debug)]
pub(super) struct Matching<'p> {
    pub frames: &'p Frames,
    pub own: OwnFunctions,
    pub like_names: LikeNames,
    /// The relations of all functions before and after.
    pub relations: [BTreeMap<FrameId, Relations>; 2],
    /// The functions whose weight on one side only is no chance.
    distinct: BTreeSet<FrameId>,
    /// Own functions of only one side that have no other name yet.
    unmatched: [BTreeSet<FrameId>; 2],
    /// The names after of functions before.
    names: BTreeMap<FrameId, FrameId>,
    /// The other names of functions before and after that are probably one, if the two sides are versions of one program.
    probable: [BTreeMap<FrameId, FrameId>; 2],
    /// The programs and threads whose functions may be paired: those of scripts, or others.
    pub versions: BTreeSet<(FrameId, bool)>,
}

impl<'p> Matching<'p> {
    /// Finds the functions that only one side has.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn new(both: &'p Profile, distinct: &BTreeSet<Vec<u8>>) -> Result<Self, Error> {
        let relations = [find_relations(both, true)?, find_relations(both, false)?];
        let own = OwnFunctions::new(both);
        let unmatched = [(0, 1), (1, 0)].map(|(this, other)| {
            let only = relations[this].keys().filter(|frame| !relations[other].contains_key(*frame));
            only.copied().filter(|frame| own.contains(*frame)).collect()
        });
        let distinct = both.frames.iter().filter(|(_, name)| distinct.contains(*name)).map(|(frame, _)| frame);
        let distinct = distinct.collect();
        let like_names = LikeNames::find(&both.frames, &relations);
        let (names, probable, versions) = Default::default();
        Ok(Self { frames: &both.frames, own, like_names, relations, distinct, unmatched, names, probable, versions })
    }

    /// Returns the own functions of a side that have no other name.
    pub fn unmatched(&self, side: usize) -> &BTreeSet<FrameId> {
        &self.unmatched[side]
    }

    /// Returns the functions with their other names.
    pub fn pairs(&self) -> impl Iterator<Item = (FrameId, FrameId)> {
        self.names.iter().map(|(old, new)| (*old, *new))
    }

    /// Pairs functions of which each is by far the best match of the other, where they belong to versions of one program.
    pub fn find_pairs(mut self) -> Self {
        // Which sides are versions is known only when it is known which functions are alike.
        self.versions = self.programs();
        self.pair();
        self.keep_evident();
        self.keep_versions();
        self
    }

    /// Returns the programs and threads of functions that only one side has.
    pub fn programs(&self) -> BTreeSet<(FrameId, bool)> {
        let functions = self.unmatched.iter().flatten().map(|function| (*function, self.has_file(*function)));
        functions
            .flat_map(|(function, is_script)| self.own.roots(function).map(move |root| (root, is_script)))
            .collect()
    }

    fn pair(&mut self) {
        // A pair makes the callers and callees of others known.
        let mut candidates = Candidates::new(self);
        loop {
            let pairs = candidates.find_best();
            if pairs.is_empty() {
                return;
            }
            pairs.iter().for_each(|(vanished, new)| self.add(*vanished, *new));
            candidates.update(self, &pairs);
        }
    }

    /// Keeps the pairs of programs and threads whose two sides are versions of one.
    fn keep_versions(&mut self) {
        let is_probable = |(old, new): &(FrameId, FrameId)| self.similarity(*old, *new) >= Some(MIN_CERTAIN);
        let probable: BTreeMap<_, _> = self.pairs().filter(is_probable).collect();
        let reversed = probable.iter().map(|(old, new)| (*new, *old)).collect();
        self.probable = [probable, reversed];
        let pairs = self.take_pairs();
        let mut versions = std::mem::take(&mut self.versions);
        let all = self.all_versions();
        versions.retain(|(root, are_scripts)| self.are_versions(&[*root].into(), *are_scripts, all));
        self.versions = versions;
        let kept = pairs.into_iter().filter(|(old, new)| self.may_be_one(*old, *new)).collect::<Vec<_>>();
        kept.into_iter().for_each(|(old, new)| self.add(old, new));
    }

    /// True if the two sides are versions of one program as a whole: by the functions that are not of scripts, and by those of scripts.
    pub fn all_versions(&self) -> [bool; 2] {
        [false, true].map(|are_scripts| {
            let all = self.agreement(None, are_scripts);
            all.has_most && all.has_evidence
        })
    }

    /// True if the two sides of some programs or threads are versions of one. Only functions of scripts, or only others, are looked at:
    /// an interpreter is the same for all scripts. A thread may have too few functions to tell: then all threads and programs must tell
    /// it, of which `all_versions` is known.
    pub fn are_versions(&self, roots: &BTreeSet<FrameId>, are_scripts: bool, all_versions: [bool; 2]) -> bool {
        let agreement = self.agreement(Some(roots), are_scripts);
        agreement.has_most && (agreement.has_evidence || all_versions[usize::from(are_scripts)])
    }

    fn agreement(&self, roots: Option<&BTreeSet<FrameId>>, are_scripts: bool) -> Agreement {
        let name_after = |function: FrameId| {
            let name = self.names.get(&function).or_else(|| self.probable[0].get(&function));
            name.copied().unwrap_or(function)
        };
        self.own.agreement(roots, name_after, |side, function| match self.unmatched[side].contains(&function) {
            _ if self.has_file(function) != are_scripts => Presence::Unknown,
            true if self.probable[side].contains_key(&function) => Presence::Renamed,
            true => Presence::One,
            false => Presence::Both,
        })
    }

    /// Adds a pair.
    pub fn add(&mut self, vanished: FrameId, new: FrameId) {
        self.unmatched[0].remove(&vanished);
        self.unmatched[1].remove(&new);
        self.names.insert(vanished, new);
    }

    /// True for own functions of one side each that have no other name.
    pub fn is_unmatched(&self, old: FrameId, new: FrameId) -> bool {
        self.unmatched[0].contains(&old) && self.unmatched[1].contains(&new)
    }

    /// Returns the functions with these pairs, too.
    pub fn with_names_of(&self, pairs: &[(FrameId, FrameId)]) -> Self {
        let mut named = self.clone();
        pairs.iter().for_each(|(old, new)| named.add(*old, *new));
        named
    }

    /// Removes and returns all pairs.
    pub fn take_pairs(&mut self) -> BTreeMap<FrameId, FrameId> {
        let pairs = std::mem::take(&mut self.names);
        self.unmatched[0].extend(pairs.keys());
        self.unmatched[1].extend(pairs.values());
        pairs
    }

    /// Returns the name after of a function of either side.
    pub fn name_after(&self, function: FrameId) -> FrameId {
        self.names.get(&function).copied().unwrap_or(function)
    }

    /// Returns how similar a function before and one after are; `None` if they are not.
    pub fn similarity(&self, vanished: FrameId, new: FrameId) -> Option<f64> {
        self.with_names(0, vanished).similarity(&self.with_names(1, new))
    }

    /// Returns the relations of a function by the names that are known.
    pub fn with_names(&self, side: usize, function: FrameId) -> NamedRelations {
        self.relations[side][&function].with_names(&self.names, &self.unmatched[side])
    }

    /// True for functions of scripts: none becomes a function of another language.
    pub fn has_file(&self, function: FrameId) -> bool {
        let name = self.frames.name(function);
        name.ends_with(b")") && name.contains_str(" (")
    }

    /// True for functions of one version of a program, both of scripts or neither.
    pub fn may_be_one(&self, vanished: FrameId, new: FrameId) -> bool {
        let are_scripts = self.has_file(vanished);
        let mut roots = self.own.common_roots(vanished, new);
        are_scripts == self.has_file(new) && roots.any(|root| self.versions.contains(&(root, are_scripts)))
    }

    /// Returns the functions of a side that have no other name and may be paired, the lightest first.
    pub fn by_weight(&self, side: usize) -> Vec<FrameId> {
        let mut functions: Vec<_> = self.unmatched[side].intersection(&self.distinct).copied().collect();
        functions.reverse();
        functions.sort_by(|a, b| {
            let [a, b] = [a, b].map(|function| self.relations[side][function].inclusive);
            a.total_cmp(&b)
        });
        functions
    }
}

#[cfg(test)]
mod tests;
