//! Pairs functions that vanished with functions that are new: a function that was renamed has the same callers, callees and
//! weight as before.
//!
//! Only functions of the program are paired, and only within one program or thread: no build renames those of libraries and
//! of the kernel, and two programs that share a library are not one program with other names. The rest of the program tells
//! if two sides are versions of it: a function has the same name, and more than half have the same name or are paired. Two
//! programs have functions that are alike, too, such as the heaviest below `main`.

use std::collections::{BTreeMap, BTreeSet};

use bstr::ByteSlice as _;

use super::candidates::Candidates;
use super::own_functions::{OwnFunctions, Presence};
use super::relations::{NamedRelations, Relations, find_relations};
use crate::Error;
use crate::profile::{FrameId, Frames, Profile};

/// Functions that call nothing are pairs if at least this part of the functions of a side is.
const MIN_FOUND_PART: usize = 2;

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
    /// The relations of all functions before and after.
    pub relations: [BTreeMap<FrameId, Relations>; 2],
    /// The functions whose weight on one side only is no chance.
    distinct: BTreeSet<FrameId>,
    /// Own functions of only one side that have no other name yet.
    unmatched: [BTreeSet<FrameId>; 2],
    /// The names after of functions before.
    names: BTreeMap<FrameId, FrameId>,
    /// The programs and threads whose functions may be paired: those of scripts, or others.
    versions: BTreeSet<(FrameId, bool)>,
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
        let (names, versions) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self { frames: &both.frames, own, relations, distinct, unmatched, names, versions })
    }

    /// Returns the own functions of a side that have no other name.
    pub fn unmatched(&self, side: usize) -> &BTreeSet<FrameId> {
        &self.unmatched[side]
    }

    /// Returns the functions with their other names.
    pub fn pairs(&self) -> impl Iterator<Item = (FrameId, FrameId)> {
        self.names.iter().map(|(old, new)| (*old, *new))
    }

    /// Finds the programs and threads whose two sides are versions of one.
    pub fn find_versions(&mut self) {
        let functions = self.unmatched.iter().flatten().map(|function| (*function, self.has_file(*function)));
        let roots: BTreeSet<(FrameId, bool)> = functions
            .flat_map(|(function, is_script)| self.own.roots(function).map(move |root| (root, is_script)))
            .collect();
        self.versions =
            roots.into_iter().filter(|(root, are_scripts)| self.are_versions(&[*root].into(), *are_scripts)).collect();
    }

    /// Pairs functions of which each is by far the best match of the other, where they belong to versions of one program.
    pub fn find_pairs(mut self) -> Self {
        self.find_versions();
        let all = [0, 1].map(|side| self.unmatched[side].intersection(&self.distinct).count()).into_iter().max();
        // A pair makes the callers and callees of others known.
        let mut candidates = Candidates::new(&self);
        loop {
            let pairs = candidates.find_best();
            if pairs.is_empty() {
                break;
            }
            pairs.iter().for_each(|(vanished, new)| self.add(*vanished, *new));
            candidates.update(&self, &pairs);
        }
        // Two functions that call nothing are alike by their weight alone.
        if self.names.len() * MIN_FOUND_PART < all.unwrap_or(0) {
            self.retain_pairs(|this, vanished, _| this.relations[0][&vanished].calls_others());
        }
        self
    }

    /// True if the two sides of some programs or threads are versions of one. Only functions of scripts, or only others, are looked at:
    /// an interpreter is the same for all scripts.
    pub fn are_versions(&self, roots: &BTreeSet<FrameId>, are_scripts: bool) -> bool {
        self.own.are_versions(roots, &self.names, |side, function| match self.unmatched[side].contains(&function) {
            _ if self.has_file(function) != are_scripts => Presence::Unknown,
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

    fn retain_pairs(&mut self, is_kept: impl Fn(&Self, FrameId, FrameId) -> bool) {
        let others: Vec<_> = self.pairs().filter(|(vanished, new)| !is_kept(self, *vanished, *new)).collect();
        for (vanished, new) in others {
            self.names.remove(&vanished);
            self.unmatched[0].insert(vanished);
            self.unmatched[1].insert(new);
        }
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
mod tests {
    use super::find_renamed;
    use crate::diff::differential_profile;

    /// Functions by which the two sides are versions of one program.
    const COMMON: [&str; 4] = ["main;c1;p1 60 60", "main;c2;p2 60 60", "main;c3;p3 60 60", "main;c4 60 60"];

    /// Returns the pairs found in a profile of lines `stack BEFORE AFTER`, and those of common functions.
    fn pairs(lines: &[&str]) -> Vec<String> {
        pairs_of_lines(&[&COMMON, lines].concat())
    }

    fn pairs_of_lines(lines: &[&str]) -> Vec<String> {
        let profile = differential_profile(lines);
        let distinct = profile.frames.iter().map(|(_, name)| name.to_vec()).collect();
        let renamed = find_renamed(&profile, &distinct).unwrap();
        renamed
            .iter()
            .map(|pair| [&pair.before[..], &pair.after].join(&b'>'))
            .map(|text| String::from_utf8(text).unwrap())
            .collect()
    }

    #[test]
    fn pairs_functions_with_equal_relations() {
        assert_eq!(pairs(&["main;old;read 50 0", "main;new;read 0 52", "main;other 30 30"]), ["old>new"]);
        // The caller of the second function was renamed too.
        let chain = ["main;a;b;read 50 0", "main;a;c 20 0", "main;x;y;read 0 50", "main;x;c 0 21"];
        assert_eq!(pairs(&chain), ["a>x", "b>y"]);
    }

    #[test]
    fn pairs_nothing_in_doubt() {
        for lines in [
            &["main;old;read 50 0", "main;new;write 0 50", "main;read 5 5", "main;write 5 5"][..],
            &["main;old 50 0", "other;new 0 50", "main 5 5", "other 5 5"],
            &["main;old 50 0", "main;new 0 10"],
            &["main;old 50 0", "main;new 0 50", "main;rival 0 48"],
            &["main;[old] 50 0", "main;[new] 0 50"],
            // Programs are no functions, and their functions are not those of each other.
            &["old;main 9 0", "new;main 0 9"],
            &["one;main;f;read 50 0", "two;main;g;read 0 50"],
            &["python3;work (a.py);unicode_split;read 50 0", "python3;work (a.py);split (re.py);read 0 50"],
            // Functions of libraries and of the kernel.
            &["main;sort;std::sort 50 0", "main;sort;std::stable_sort 0 50"],
            &["main;runtime.main;work;strconv.Itoa 50 0", "main;runtime.main;work;fmt.Sprintf 0 50"],
            &["main;work;do_read_[k] 50 0", "main;work;do_write_[k] 0 50"],
            &["main;old 50 1", "main;new 0 50"],
            // Their callers are not the same.
            &["main;a;old 50 0", "main;a;b 99 0", "init;x;new 0 50", "init;x;c 0 300", "main;b 5 5", "init;c 5 5"],
        ] {
            assert_eq!(pairs(lines), [""; 0], "{lines:?}");
        }
    }

    #[test]
    fn pairs_nothing_in_two_programs() {
        for lines in [
            // Half of the functions are others.
            &["main;old;read 50 0", "main;new;read 0 52", "main;other 60 60"][..],
            &[
                "main;old 50 0",
                "main;new 0 50",
                "main;a;read 99 0",
                "main;b 70 0",
                "main;x;read;y 0 40",
                "main;z;read 0 20",
            ],
            // Two programs: one of three functions is alike, and what the interpreter calls is none of theirs.
            &[
                "p;main (a.py);load (a.py);eval 50 0",
                "p;main (a.py);total (a.py);eval 20 0",
                "p;main (a.py);group (a.py);eval 8 0",
                "p;main (a.py);matrix (a.py);eval 0 51",
                "p;main (a.py);tokens (a.py);eval 0 9",
                "p;main (a.py);count (a.py);eval 0 3",
                "p;main (a.py);eval 9 9",
            ],
            // They share a framework, whose functions cost more in one of them.
            &[
                "main;f;g;a 50 0",
                "main;f;g;b 9 0",
                "main;f;g;x 0 52",
                "main;f;g;y 0 8",
                "main;f 7 9",
                "main;f;g 3 40",
                "main;h 2 9",
            ],
        ] {
            assert_eq!(pairs_of_lines(lines), [""; 0], "{lines:?}");
        }
    }

    #[test]
    fn only_functions_of_the_program_make_two_sides_versions() {
        let lines = ["main;old;read 100 0", "main;new;read 0 102", "main;a 60 61", "main;b 50 52", "main;c 9 8"];
        assert_eq!(pairs_of_lines(&lines), ["old>new"]);
        let heavier = lines.map(|line| line.replace("100", "200").replace("102", "204"));
        assert_eq!(pairs_of_lines(&heavier.each_ref().map(String::as_str)), [""; 0], "most of the weight is another's");
        // Functions of libraries, of run times and of allocators are none of the program.
        let libraries =
            ["operator new", "je_malloc", "tokio::runtime::task::raw::poll", "_PyEval_EvalFrameDefault", "std::sort"];
        for library in libraries {
            let common =
                [1, 2, 3].map(|number| format!("main;{library}{} 60 60", ["", "_aligned", "(int)"][number - 1]));
            let lines = [common.each_ref().map(String::as_str).as_slice(), &lines[..2]].concat();
            assert_eq!(pairs_of_lines(&lines), [""; 0], "{library}");
        }
    }
}
