//! Modules and types that have another name after: crates, namespaces, packages and classes.
//!
//! All names that contain them are others, those of library functions of such a type, too. A name is replaced only by one that the
//! other side has, so that none is compared under a name of neither side.

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
const COMMON_NAMES: [&str; 24] = [
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
    let sides = Sides::new(both, matching.find_pairs(), known);
    let candidates = sides.find_candidates();
    let conflicts = |substitution: &Substitution, one: &Candidate| {
        let others = candidates.iter().filter(|(other, _)| *other != substitution);
        others.filter(|(_, other)| !other.alike.is_empty()).any(|(_, other)| {
            !one.alike.is_empty() && (other.paths[0] == one.paths[0] || other.paths[1] == one.paths[1])
        })
    };
    let mut judged: Vec<_> = candidates.iter().filter(|(_, one)| one.votes() >= MIN_ALIKE).collect();
    judged.retain(|(substitution, one)| !sides.known.contains(substitution) && !conflicts(substitution, one));
    judged.sort_by_key(|(_, one)| Reverse(one.votes()));
    judged.truncate(MOST_CANDIDATES);
    let modules = judged.into_iter().filter_map(|(substitution, one)| sides.judge(substitution, one));
    Ok(modules.max_by_key(|module| module.functions.len()))
}

/// The names of both sides.
struct Sides<'p> {
    names: Vec<String>,
    /// All functions before, and by name after, that the other side does not have. Programs and threads are none.
    before: Vec<FrameId>,
    after: FxHashMap<&'p [u8], FrameId>,
    /// Own functions that only one side has, the heaviest first.
    own: [Vec<FrameId>; 2],
    matching: Matching<'p>,
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
        Self { names, before, after, own, matching, known, renamed }
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
        for (old, new) in self.matching.pairs() {
            if let Some(found) = Substitution::between_modules(self.name(old), self.name(new)) {
                let candidate = candidates.entry(found.substitution).or_default();
                candidate.alike.push((old, new));
                candidate.paths = found.paths;
            }
        }
        candidates
    }

    /// Returns the module of a substitution if enough speaks for it.
    fn judge(&self, substitution: &Substitution, candidate: &Candidate) -> Option<Module> {
        let all = sorted([&self.known[..], std::slice::from_ref(substitution)].concat());
        let functions: Vec<(FrameId, FrameId)> = self
            .before
            .iter()
            .filter_map(|old| {
                substitution.apply(self.name(*old))?;
                Some((*old, *self.after.get(apply_all(&all, self.name(*old)).as_bytes())?))
            })
            .collect();
        let own =
            functions.iter().filter(|(old, new)| [old, new].iter().all(|frame| self.matching.own.contains(**frame)));
        let own: BTreeSet<(FrameId, FrameId)> = own.chain(&candidate.alike).copied().collect();
        let names: BTreeSet<&str> = own.iter().filter_map(|(old, new)| self.common_name(*old, *new)).collect();
        let is_module = !self.is_function(&candidate.paths[0]) && self.are_one_sided(&candidate.paths);
        let has_evidence =
            || names.len() >= MIN_NAMES || self.count_alike(&functions, &own, &candidate.alike) >= MIN_ALIKE;
        let [before, after] = candidate.paths.clone();
        (is_module && !functions.is_empty() && self.has_share(substitution, &own) && has_evidence()).then(|| Module {
            substitution: substitution.clone(),
            counterpart: Counterpart { before, after, part: NamePart::Module },
            functions: functions.iter().map(|pair| self.renamed(*pair)).collect(),
        })
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
        let weight = |side: usize, frame: FrameId| self.matching.relations[side][&frame].inclusive;
        let found = [
            functions.iter().map(|(old, _)| weight(0, *old)).sum::<f64>(),
            functions.iter().map(|(_, new)| weight(1, *new)).sum::<f64>(),
        ];
        [0, 1].into_iter().all(|side| {
            let contains = |name: &str| match side {
                0 => substitution.apply(name).is_some(),
                _ => substitution.is_in_after(name),
            };
            let own = self.own[side].iter().filter(|frame| contains(self.name(**frame)));
            let all: f64 = own.map(|frame| weight(side, *frame)).sum();
            found[side] > 0.0 && found[side] >= MIN_SHARE * all
        })
    }

    /// Returns how many own functions have the same callers, callees and weight if all functions have their names after.
    fn count_alike(
        &self,
        functions: &[(FrameId, FrameId)],
        own: &BTreeSet<(FrameId, FrameId)>,
        alike: &[(FrameId, FrameId)],
    ) -> usize {
        let mut matching = self.matching.clone();
        functions.iter().for_each(|(old, new)| matching.add(*old, *new));
        own.iter().filter(|pair| alike.contains(pair) || matching.similarity(pair.0, pair.1).is_some()).count()
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
