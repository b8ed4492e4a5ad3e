//! The functions of the program in a differential profile: where they were seen, and what their programs have in common.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::program::is_evidence;
use crate::markers;
use crate::profile::{FrameId, Profile};
use crate::script_source::{SourceOrigin, find_origin};
use crate::symbol_name::inherent::without_type_brackets;
use crate::symbol_name::library::{calls_no_program, is_library};
use crate::symbol_name::module::split_module;
use crate::symbol_name::return_type::without_return_type;

/// A function counts from this share of the own weight of its program or thread on.
pub(super) const MIN_WEIGHT: f64 = 0.01;

/// Fewest functions that two versions of a program or thread have in common, under the same or another name.
const MIN_COMMON: usize = 2;

/// A frame by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A function that may be the program's.
    Own,
    /// One with a source file, of a script.
    OwnScript,
    /// One of a library, or one that each program has.
    Other,
    /// Such a one of a script.
    OtherScript,
    /// One below which nothing is the program's: of the kernel, or of a library that calls no functions of others.
    Closed,
}

/// The frames of a profile that may be functions of the program.
pub(super) struct OwnFrames(Vec<Kind>);

impl OwnFrames {
    /// Creates them from the names of all frames.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self(names.map(kind).collect())
    }

    /// Returns those of a stack, root first. What a script calls is the program's only if it is of a script, too: most native functions
    /// are those of the interpreter.
    pub fn find<'s>(&'s self, stack: &'s [FrameId]) -> impl Iterator<Item = FrameId> + 's {
        let kinds = stack.iter().map(|frame| (*frame, self.0[frame.index()]));
        let mut is_in_script = false;
        let own = kinds.take_while(|(_, kind)| *kind != Kind::Closed).filter(move |(_, kind)| {
            is_in_script |= matches!(kind, Kind::OwnScript | Kind::OtherScript);
            *kind == Kind::OwnScript || *kind == Kind::Own && !is_in_script
        });
        own.map(|(frame, _)| frame)
    }
}

fn kind(name: &str) -> Kind {
    let plain = split_module(markers::strip_suffix(name.as_bytes())).1;
    if name.as_bytes().ends_with(markers::KERNEL) || calls_no_program(plain) {
        return Kind::Closed;
    }
    let source = find_origin(name.as_bytes());
    let is_of_library = is_library(&without_type_brackets(without_return_type(plain)))
        || matches!(source, Some(SourceOrigin::Package(_) | SourceOrigin::StandardLibrary));
    match (is_of_library || !is_evidence(name), source) {
        (true, Some(_)) => Kind::OtherScript,
        (true, None) => Kind::Other,
        (false, Some(_)) => Kind::OwnScript,
        (false, None) => Kind::Own,
    }
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
        let names: Vec<String> =
            both.frames.iter().map(|(_, name)| String::from_utf8_lossy(name).into_owned()).collect();
        let own = OwnFrames::new(names.iter().map(String::as_str));
        let mut found = Self { roots: FxHashMap::default(), weights: FxHashMap::default() };
        let _ = both.for_each(|stack, weights| {
            let Some((root, callees)) = stack.split_first() else { return Ok::<(), ()>(()) };
            let mut innermost = None;
            for function in own.find(callees) {
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

    /// Returns the programs and threads in which both functions were seen.
    pub fn common_roots(&self, one: FrameId, other: FrameId) -> impl Iterator<Item = FrameId> {
        let [one, other] = [one, other].map(|function| self.roots.get(&function));
        one.zip(other).into_iter().flat_map(|(one, other)| one.intersection(other).copied())
    }

    /// True if a program or thread has a function that counts.
    pub fn any_of(&self, root: FrameId, counts: impl Fn(FrameId) -> bool) -> bool {
        self.roots.iter().any(|(function, roots)| roots.contains(&root) && counts(*function))
    }

    /// True if more than half of the functions of each side are those of the other, of those that are large. `is_other` tells if a
    /// function of a side is none of the other; `None` if that is not known.
    pub fn are_mostly_common(&self, root: FrameId, is_other: impl Fn(usize, FrameId) -> Option<bool>) -> bool {
        let Some(functions) = self.weights.get(&root) else { return false };
        [0, 1].into_iter().all(|side| {
            let all: f64 = functions.values().map(|weights| weights[side]).sum();
            let large =
                functions.iter().filter(|(_, weights)| weights[side] > 0.0 && weights[side] >= MIN_WEIGHT * all);
            let judged: Vec<bool> = large.filter_map(|(function, _)| is_other(side, *function)).collect();
            let common = judged.iter().filter(|is_other| !**is_other).count();
            common >= MIN_COMMON && 2 * common > judged.len()
        })
    }
}
