//! Modules and types that have another name after: crates, namespaces, packages and classes.
//!
//! All names that contain them are others, those of library functions of such a type, too. A name is replaced only by one that the
//! other side has, so that none is compared under a name of neither side. With all names replaced that may be, the two sides must be
//! versions of one program (`own_functions.rs`): two programs have types with equal methods, too.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::counterpart::{Counterpart, NamePart};
use super::program::is_evidence;
use super::renamed::{Matching, Renamed};
use super::substitution::Substitution;
use crate::Error;
use crate::profile::{FrameId, Profile};

/// Fewest functions of a module that keep their names, if these are all that tells that it is the same.
const MIN_NAMES: usize = 3;

/// Fewest functions of a module that have the same callers, callees and weight, whatever their names.
const MIN_ALIKE: usize = 2;

/// Smallest share of the weight of the functions of a module that keep their names or are alike.
const MIN_SHARE: f64 = 0.5;

/// Most functions of a side of which each is compared with each of the other: the heaviest.
const MOST_FUNCTIONS: usize = 200;

/// Most substitutions that are judged: those that most names speak for.
const MOST_CANDIDATES: usize = 8;

/// Names of functions that types of all programs have, and parts of those without a name.
pub(super) const COMMON_NAMES: [&str; 24] = [
    "new", "default", "clone", "drop", "fmt", "next", "from", "into", "eq", "cmp", "hash", "init", "__init__", "run",
    "get", "set", "toString", "equals", "hashCode", "closure", "lambda", "genexpr", "listcomp", "operator",
];

/// A module that was renamed.
pub(super) struct Module {
    pub substitution: Substitution,
    /// Its path before and after.
    pub counterpart: Counterpart,
    /// All functions whose names contain it.
    pub functions: Vec<Renamed>,
}

/// A substitution with what speaks for it.
#[derive(Default)]
struct Candidate {
    paths: [String; 2],
    /// Names of functions that differ by it alone.
    names: usize,
    /// Functions that are alike and belong to modules that differ by it.
    alike: Vec<(FrameId, FrameId)>,
}

impl Candidate {
    fn votes(&self) -> usize {
        self.names.max(self.alike.len())
    }
}

/// Returns a module that was renamed, the one with most functions. `known` are those that were found before.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub(super) fn find_module(
    both: &Profile,
    distinct: &BTreeSet<Vec<u8>>,
    known: &[Module],
) -> Result<Option<Module>, Error> {
    let matching = Matching::new(both, distinct)?;
    if matching.unmatched(0).is_empty() || matching.unmatched(1).is_empty() {
        return Ok(None);
    }
    let sides = Sides::new(both, matching, known);
    let candidates = sides.find_candidates();
    let conflicts = |substitution: &Substitution, one: &Candidate| {
        let others = candidates.iter().filter(|(other, _)| *other != substitution);
        let is_by_relations = |one: &Candidate| !one.alike.is_empty() && one.names < MIN_NAMES;
        others.filter(|(_, other)| is_by_relations(other)).any(|(_, other)| {
            is_by_relations(one) && (other.paths[0] == one.paths[0] || other.paths[1] == one.paths[1])
        })
    };
    let mut judged: Vec<_> = candidates.iter().filter(|(_, one)| one.votes() >= MIN_ALIKE).collect();
    judged.retain(|(substitution, one)| !sides.known.contains(substitution) && !conflicts(substitution, one));
    judged.sort_by_key(|(_, one)| Reverse(one.votes()));
    judged.truncate(MOST_CANDIDATES);
    let judged = judged.into_iter().filter_map(|(substitution, one)| sides.judge(substitution, one)).collect();
    Ok(sides.select(judged).max_by_key(|module| module.functions.len()))
}

/// A substitution with the functions whose names it changes into those of the other side.
struct Judged<'c> {
    substitution: &'c Substitution,
    paths: &'c [String; 2],
    functions: Vec<(FrameId, FrameId)>,
    /// Those of the program, also under other names.
    own: BTreeSet<(FrameId, FrameId)>,
    /// True if enough of them have equal names, or are alike.
    has_evidence: bool,
}

impl Judged<'_> {
    /// True if both are of one module: of one that was split, or of several that became one.
    fn shares_module(&self, other: &Self) -> bool {
        self.paths[0] == other.paths[0] || self.paths[1] == other.paths[1]
    }
}

/// The names of both sides.
struct Sides<'p> {
    names: Vec<String>,
    /// All functions before, and by name after, that the other side does not have. Programs and threads are none.
    before: Vec<FrameId>,
    after: FxHashMap<&'p [u8], FrameId>,
    /// Own functions that only one side has, the heaviest first.
    own: [Vec<FrameId>; 2],
    /// The functions with their names after because of known modules alone, and those that are probably pairs, too.
    matching: Matching<'p>,
    paired: Matching<'p>,
    /// The modules that were found before, and the functions that have their names after because of them.
    known: Vec<Substitution>,
    renamed: BTreeSet<&'p [u8]>,
}

impl<'p> Sides<'p> {
    fn new(both: &'p Profile, matching: Matching<'p>, known: &'p [Module]) -> Self {
        let names = both.frames.iter().map(|(_, name)| String::from_utf8_lossy(name).into_owned()).collect();
        let only = |this: usize, other: usize| {
            let functions = matching.relations[this].iter().filter(|(_, relations)| !relations.is_root());
            let only = functions.filter(|(frame, _)| !matching.relations[other].contains_key(*frame));
            only.map(|(frame, _)| *frame).collect::<Vec<_>>()
        };
        let (before, after) = (only(0, 1), only(1, 0));
        let own = [(0, &before), (1, &after)].map(|(side, functions)| {
            let mut own: Vec<_> = functions.iter().copied().filter(|frame| matching.own.contains(*frame)).collect();
            own.sort_by(|a, b| {
                let [a, b] = [a, b].map(|frame| matching.relations[side][frame].inclusive);
                b.total_cmp(&a)
            });
            own
        });
        let after = after.into_iter().map(|frame| (both.frames.name(frame), frame)).collect();
        let renamed = known.iter().flat_map(|module| module.functions.iter().map(|pair| &pair.after[..])).collect();
        let known = known.iter().map(|module| module.substitution.clone()).collect();
        let paired = matching.clone().find_pairs();
        Self { names, before, after, own, matching, paired, known, renamed }
    }

    fn name(&self, frame: FrameId) -> &str {
        &self.names[frame.index()]
    }

    /// Returns the substitutions by which names differ.
    fn find_candidates(&self) -> BTreeMap<Substitution, Candidate> {
        let mut candidates = BTreeMap::<Substitution, Candidate>::new();
        let [old, new] = [0, 1].map(|side| &self.own[side][..self.own[side].len().min(MOST_FUNCTIONS)]);
        let named = old.iter().flat_map(|old| new.iter().map(move |new| (*old, *new)));
        for (old, new) in named {
            if let Some(found) = Substitution::between(self.name(old), self.name(new)) {
                let candidate = candidates.entry(found.substitution).or_default();
                candidate.names += 1;
                candidate.paths = found.paths;
            }
        }
        for (old, new) in self.paired.pairs() {
            if let Some(found) = Substitution::between_modules(self.name(old), self.name(new)) {
                let candidate = candidates.entry(found.substitution).or_default();
                candidate.alike.push((old, new));
                candidate.paths = found.paths;
            }
        }
        candidates
    }

    /// Returns the functions of a substitution if it may be that of a module.
    fn judge<'c>(&self, substitution: &'c Substitution, candidate: &'c Candidate) -> Option<Judged<'c>> {
        let all = sorted([&self.known[..], std::slice::from_ref(substitution)].concat());
        let functions = self.before.iter().filter_map(|old| {
            let name = substitution.apply(self.name(*old))?;
            // A module that was split has functions in several modules after.
            let names = [name, apply_all(&all, self.name(*old))];
            names.iter().find_map(|name| Some((*old, *self.after.get(name.as_bytes())?)))
        });
        let functions: Vec<(FrameId, FrameId)> = functions.collect();
        let own =
            functions.iter().filter(|(old, new)| [old, new].iter().all(|frame| self.matching.own.contains(**frame)));
        let own: BTreeSet<(FrameId, FrameId)> = own.chain(&candidate.alike).copied().collect();
        let names: BTreeSet<&str> = own.iter().filter_map(|(old, new)| self.common_name(*old, *new)).collect();
        let count_alike = || {
            let matching = self.paired.with_names_of(&functions);
            let is_alike = |(old, new): &(FrameId, FrameId)| matching.similarity(*old, *new).is_some();
            own.iter().filter(|pair| candidate.alike.contains(pair) || is_alike(pair)).count()
        };
        let is_module =
            !functions.is_empty() && !self.is_function(&candidate.paths[0]) && self.are_one_sided(&candidate.paths);
        let has_evidence = is_module && (names.len() >= MIN_NAMES || count_alike() >= MIN_ALIKE);
        is_module.then_some(Judged { substitution, paths: &candidate.paths, functions, own, has_evidence })
    }

    /// Returns the modules for which enough speaks if the two sides are versions of one program when all modules have their names
    /// after, also those for which little speaks until others have them.
    fn select<'c>(&self, mut judged: Vec<Judged<'c>>) -> impl Iterator<Item = Module> {
        let mut matching = self.matching.clone();
        for (old, new) in judged.iter().flat_map(|one| &one.functions) {
            if matching.is_unmatched(*old, *new) {
                matching.add(*old, *new);
            }
        }
        judged.retain(|one| one.has_evidence);
        let has_share = |one: &Judged<'c>| {
            let own = judged.iter().filter(|other| one.shares_module(other)).flat_map(|other| &other.own);
            self.has_share(one.substitution, &own.copied().collect())
        };
        let shares: Vec<bool> = judged.iter().map(has_share).collect();
        let mut shares = shares.into_iter();
        judged.retain(|_| shares.next().unwrap_or(false));
        let all = matching.all_versions();
        let are_versions = |one: &Judged<'c>| {
            let programs = one.own.iter().map(|(old, new)| {
                let roots = matching.own.roots(*old).chain(matching.own.roots(*new));
                (roots.collect(), matching.has_file(*old))
            });
            let programs: BTreeSet<(BTreeSet<FrameId>, bool)> = programs.collect();
            programs.iter().any(|(roots, are_scripts)| matching.are_versions(roots, *are_scripts, all))
        };
        judged.retain(are_versions);
        let modules = judged.into_iter().map(|one| {
            let [before, after] = one.paths.clone();
            Module {
                substitution: one.substitution.clone(),
                counterpart: Counterpart { before, after, part: NamePart::Module },
                functions: one.functions.iter().map(|pair| self.renamed(*pair)).collect(),
            }
        });
        modules.collect::<Vec<_>>().into_iter()
    }

    fn renamed(&self, (old, new): (FrameId, FrameId)) -> Renamed {
        let [before, after] = [old, new].map(|frame| self.matching.frames.name(frame).to_vec());
        Renamed { before, after }
    }

    /// Returns the name of a function in its module or type, if it is the same on both sides and few have it.
    fn common_name(&self, old: FrameId, new: FrameId) -> Option<&str> {
        let [old, new] = [old, new].map(|frame| Substitution::last_word(self.name(frame)));
        let is_numbered = |name: &str| name.trim_start_matches("func").bytes().all(|byte| byte.is_ascii_digit());
        (old? == new?)
            .then_some(old?)
            .filter(|name| is_evidence(name) && !COMMON_NAMES.contains(name) && !is_numbered(name))
    }

    /// True if a path is that of a function, in which others are defined.
    fn is_function(&self, path: &str) -> bool {
        let path = path.trim_end_matches([':', '.', ')']);
        self.own[0].iter().any(|frame| {
            self.name(*frame).strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '(']))
        })
    }

    /// True if neither side has a function in the module of the other.
    fn are_one_sided(&self, [before, after]: &[String; 2]) -> bool {
        let has = |side: usize, path: &str| {
            let mut names =
                self.matching.relations[side].keys().filter(|frame| Substitution::contains(self.name(**frame), path));
            names.any(|frame| side == 1 || !self.renamed.contains(self.matching.frames.name(*frame)))
        };
        !has(1, before) && !has(0, after)
    }

    /// True if functions have most of the weight of those whose names contain the module.
    fn has_share(&self, substitution: &Substitution, functions: &BTreeSet<(FrameId, FrameId)>) -> bool {
        [0, 1].into_iter().all(|side| {
            let contains = |frame: &FrameId| match side {
                0 => substitution.apply(self.name(*frame)).is_some(),
                _ => substitution.is_in_after(self.name(*frame)),
            };
            let sum = |frames: BTreeSet<FrameId>| {
                let frames = frames.into_iter().filter(contains);
                frames.map(|frame| self.matching.relations[side][&frame].inclusive).sum::<f64>()
            };
            let found = sum(functions.iter().map(|(old, new)| if side == 0 { *old } else { *new }).collect());
            found > 0.0 && found >= MIN_SHARE * sum(self.own[side].iter().copied().collect())
        })
    }
}

/// Returns substitutions so that those of modules in modules come before these.
fn sorted(mut all: Vec<Substitution>) -> Vec<Substitution> {
    all.sort_by_key(|one| Reverse(one.len()));
    all
}

fn apply_all(all: &[Substitution], name: &str) -> String {
    all.iter().fold(name.to_owned(), |name, one| one.apply(&name).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::find_module;
    use crate::diff::differential_profile;

    /// Returns the path before and after of the module that is found in functions that have ten times the weight after.
    fn find(before: &[&str], after: &[&str]) -> Option<String> {
        let sides = [(before, "50 0"), (after, "0 500")];
        let lines = sides
            .iter()
            .flat_map(|(names, weights)| names.iter().map(move |name| format!("app;main;{name} {weights}")));
        let lines: Vec<String> = lines.chain(["app;main;other 90 90".to_owned()]).collect();
        let profile = differential_profile(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let distinct = profile.frames.iter().map(|(_, name)| name.to_vec()).collect();
        let module = find_module(&profile, &distinct, &[]).unwrap()?;
        Some([module.counterpart.before, module.counterpart.after].join(">"))
    }

    #[test]
    fn functions_of_a_renamed_module_keep_their_names() {
        let [old, new] = [["a::load", "a::sort", "a::join"], ["b::load", "b::sort", "b::join"]];
        assert_eq!(find(&old, &new).as_deref(), Some("a::>b::"));
        assert_eq!(find(&old[..2], &new[..2]), None, "two equal names may be chance");
        let with_rest = |side: &[&'static str], more: &[&'static str]| [side, more].concat();
        assert_eq!(find(&old, &with_rest(&new, &["a::scan"])), None, "both modules are there after");
        let rest = ["scan", "read", "hash", "pack"];
        let [many, others] = [rest.map(|name| format!("a::{name}")), rest.map(|name| format!("b::new_{name}"))];
        let many: Vec<&str> = old.into_iter().chain(many.iter().map(String::as_str)).collect();
        let others: Vec<&str> = new.into_iter().chain(others.iter().map(String::as_str)).collect();
        assert_eq!(find(&many, &others), None, "most functions are others");
    }

    #[test]
    fn all_types_have_some_functions() {
        let functions = ["new", "next", "fmt", "drop"];
        let [old, new] =
            ["tree::Node", "text::Row"].map(|name| functions.map(|function| format!("{name}::{function}")));
        let [old, new] = [&old, &new].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(find(&old, &new), None);
        let closures = ["load", "load::{closure#0}", "load::{closure#1}", "load::{closure#2}"];
        assert_eq!(
            find(&closures, &closures.map(|name| name.replace("load", "save")).each_ref().map(String::as_str)),
            None
        );
    }
}
