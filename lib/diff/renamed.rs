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
        let (names, probable, versions) = Default::default();
        Ok(Self { frames: &both.frames, own, relations, distinct, unmatched, names, probable, versions })
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
    fn pairs_functions_that_call_little_by_their_names() {
        assert_eq!(pairs(&["main;parse_v1 50 0", "main;parse 0 52"]), ["parse_v1>parse"]);
        // Another one at the same place is as heavy.
        let two = ["main;parse_v1 50 0", "main;render 49 0", "main;parse 0 52", "main;warm_cache 0 50"];
        assert_eq!(pairs(&two), ["parse_v1>parse"]);
    }

    #[test]
    fn renamed_callees_are_evidence_if_they_have_some() {
        let chain = ["main;a;b;c;read_it 50 0", "main;x;y;z;read_it 0 52", "main;d;read_it 4 4"];
        assert_eq!(pairs(&chain), ["a>x", "b>y", "c>z"]);
        assert_eq!(pairs(&["main;a;b;c 50 0", "main;x;y;z 0 52"]), [""; 0]);
        // What calls itself is no evidence of itself.
        assert_eq!(pairs(&["main;a;a;a 50 0", "main;x;x;x 0 52"]), [""; 0]);
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
            // They have the callers and the weight in common, but not what they call.
            &["main;render 70 0", "main;render;x 20 0", "main;render;y 20 0", "main;warm_cache 0 110"],
            &["main;render 110 0", "main;warm_cache 0 70", "main;warm_cache;x 0 20", "main;warm_cache;y 0 20"],
            &["main;render;x 60 0", "main;render;y 40 0", "main;warm_cache;z 0 58", "main;warm_cache;q 0 41"],
            &["main;old 50 0", "main;new 0 50"],
            // Others call it as much, or all functions do.
            &["main;old 80 0", "main;old;log_it 20 0", "main;new 0 80", "main;new;log_it 0 20", "main;a;log_it 30 30"],
            &["main;old 50 0", "main;old;qsort 50 0", "main;new 0 50", "main;new;qsort 0 50", "main;a;qsort 99 99"],
            &["main;old;do_fault_[k] 50 0", "main;new;do_fault_[k] 0 50"],
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
    fn most_of_the_program_may_have_another_name() {
        let rest = ["main;a 60 61", "main;b 50 52", "main;c 9 8"];
        let with_rest = |lines: &[&'static str]| [&rest[..], lines].concat();
        // More than half of the weight.
        assert_eq!(pairs_of_lines(&with_rest(&["main;old;read 200 0", "main;new;read 0 204"])), ["old>new"]);
        assert_eq!(pairs_of_lines(&with_rest(&["main;old 200 0", "main;new 0 204"])), [""; 0], "by weight alone");
        assert_eq!(pairs_of_lines(&with_rest(&["main;join_v1 200 0", "main;join 0 204"])), ["join_v1>join"]);
        let leaves = ["main;f 200 0", "main;g 90 0", "main;h 30 0", "main;x 0 204", "main;y 0 91", "main;z 0 29"];
        assert_eq!(pairs_of_lines(&with_rest(&leaves)), [""; 0], "by weight alone");
        // Most functions, if all are alike.
        let others = ["main;f;read 80 0", "main;g;write 40 0", "main;x;read 0 79", "main;y;write 0 42"];
        let three = [&others[..], &["main;h;malloc 20 0", "main;z;malloc 0 19", "main;a 60 61"]].concat();
        assert_eq!(pairs_of_lines(&three), ["f>x", "g>y", "h>z"]);
        assert_eq!(pairs_of_lines(&[&others[..], &rest[..1]].concat()), [""; 0], "three functions may be chance");
        // Some functions of two programs are alike.
        let chance =
            [&others[..2], &["main;h 70 0", "main;x;read 0 79", "main;y;memcpy 0 45", "main;z;malloc 0 66"]].concat();
        assert_eq!(pairs_of_lines(&[&rest[..2], &chance].concat()), [""; 0]);
        let costs = ["main;a 60 61", "main;b 50 9", "main;c 9 80"];
        assert_eq!(pairs_of_lines(&[&costs[..], &others].concat()), [""; 0], "what both have costs other than before");
    }

    #[test]
    fn all_threads_tell_if_two_sides_are_versions() {
        let threads = ["w0;load;read 30 31", "w1;rank;memcpy 40 39", "w2;pack 35 34"];
        let with_threads = |lines: &[&'static str]| pairs_of_lines(&[&threads[..], lines].concat());
        assert_eq!(with_threads(&["w3;dump;write 50 0", "w3;emit;write 0 51"]), ["dump>emit"]);
        assert_eq!(with_threads(&["w3;dump;write 50 0", "w4;emit;write 0 51"]), [""; 0], "another thread");
        let other = ["w3;dump;write 50 0", "w3;emit;write 0 51", "w3;f;read 90 0", "w3;g;write 0 70"];
        assert_eq!(with_threads(&other), [""; 0], "most of the thread is another");
        let lines = ["w0;load 30 0", "w1;rank 40 39", "w2;pack 0 34", "w3;dump;write 50 0", "w3;emit;write 0 51"];
        assert_eq!(pairs_of_lines(&lines), [""; 0], "two programs");
    }

    #[test]
    fn only_functions_of_the_program_make_two_sides_versions() {
        let lines = ["main;old;read 100 0", "main;new;read 0 102", "main;a 60 61", "main;b 50 52", "main;c 9 8"];
        assert_eq!(pairs_of_lines(&lines), ["old>new"]);
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
