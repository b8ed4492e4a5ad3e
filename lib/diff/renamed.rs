//! Pairs functions that vanished with functions that are new: a function that was renamed has the same callers, callees and
//! weight as before.
//!
//! Only functions of the program are paired, and only within one program or thread: no build renames those of libraries and
//! of the kernel, and two programs that share a library are not one program with other names.

use std::collections::{BTreeMap, BTreeSet};

use bstr::ByteSlice as _;
use rustc_hash::{FxHashMap, FxHashSet};

use super::program::own_functions;
use crate::Error;
use crate::profile::{FrameId, Frames, Profile};
use crate::tally::{GroupBy, tally_profile};

/// Smallest share of the weight of two functions that comes from equal callers, or goes to equal callees.
///
/// Rates of wrong and missed pairs in releases of real programs: `benches/README.md`.
const MIN_OVERLAP: f64 = 0.5;

/// Smallest weight of one function relative to the other.
const MIN_WEIGHT_RATIO: f64 = 0.5;

/// Largest similarity of another candidate, relative to that of the best one.
const MAX_RIVAL: f64 = 0.8;

/// Functions that call nothing are pairs if at least this part of the functions of a side is.
const MIN_FOUND_PART: usize = 2;

/// A function calls others if these have this part of its weight.
const MIN_CALLEES: f64 = 0.1;

/// Most functions of a side that are matched: the heaviest.
const MOST_FUNCTIONS: usize = 1000;

/// Represents all functions whose other name is not known yet.
const UNMATCHED: FrameId = FrameId::from_index(u32::MAX);

/// A function with another name on each side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name before.
    pub before: Vec<u8>,
    /// The name after.
    pub after: Vec<u8>,
}

/// The callers and callees of a function, by weight.
#[derive(Debug, Default)]
struct Relations {
    inclusive: f64,
    /// Weight by caller; `None` for stacks that the function is the root of.
    callers: BTreeMap<Option<FrameId>, f64>,
    /// Weight by callee; `None` for the function itself.
    callees: BTreeMap<Option<FrameId>, f64>,
}

/// A vanished and a new function, which may be the same.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    vanished: FrameId,
    new: FrameId,
    similarity: f64,
}

/// Returns the functions of a differential profile that were probably renamed, in the order of their names before.
///
/// `distinct` has the functions whose weight on one side only is no chance: only these are paired. A pair counts only if each
/// of the two is by far the best match of the other.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub(super) fn find_renamed(both: &Profile, distinct: &BTreeSet<Vec<u8>>) -> Result<Vec<Renamed>, Error> {
    let sides = [relations(both, true)?, relations(both, false)?];
    let roots = Roots::new(both)?;
    let mut unmatched = [(0, 1), (1, 0)].map(|(this, other)| roots.functions_only_in(&sides[this], &sides[other]));
    let distinct = both.frames.iter().filter(|(_, name)| distinct.contains(*name)).map(|(frame, _)| frame).collect();
    let all = [0, 1].map(|side| unmatched[side].intersection(&distinct).count()).into_iter().max();
    let mut names = BTreeMap::new();
    // A pair makes the callers and callees of others known.
    loop {
        let pairs = find_pairs(&sides, &unmatched, &names, &distinct, &roots, &both.frames);
        if pairs.is_empty() {
            break;
        }
        for pair in pairs {
            unmatched[0].remove(&pair.vanished);
            unmatched[1].remove(&pair.new);
            names.insert(pair.vanished, pair.new);
        }
    }
    // Two functions that call nothing are alike by their weight alone.
    if names.len() * MIN_FOUND_PART < all.unwrap_or(0) {
        names.retain(|vanished, _| sides[0][vanished].calls_others());
    }
    let names = names.into_iter().map(|pair: (FrameId, FrameId)| (both.frames.name(pair.0), both.frames.name(pair.1)));
    let mut renamed: Vec<Renamed> =
        names.map(|(before, after)| Renamed { before: before.to_vec(), after: after.to_vec() }).collect();
    renamed.sort_by(|a, b| a.before.cmp(&b.before));
    Ok(renamed)
}

/// The programs and threads in which each function of the program was seen: the first frames of its stacks.
struct Roots(FxHashMap<FrameId, FxHashSet<FrameId>>);

impl Roots {
    fn new(both: &Profile) -> Result<Self, Error> {
        let names: Vec<String> =
            both.frames.iter().map(|(_, name)| String::from_utf8_lossy(name).into_owned()).collect();
        let mut by_name: FxHashMap<&str, FxHashSet<FrameId>> = FxHashMap::default();
        both.for_each(|stack, _| {
            let Some((root, callees)) = stack.split_first() else { return Ok::<(), Error>(()) };
            for function in own_functions(callees.iter().map(|frame| &names[frame.index()][..])) {
                by_name.entry(function).or_default().insert(*root);
            }
            Ok(())
        })?;
        let roots = both.frames.iter().filter_map(|(frame, _)| Some((frame, by_name.remove(&*names[frame.index()])?)));
        Ok(Self(roots.collect()))
    }

    /// Returns the functions that the other side does not have.
    fn functions_only_in(
        &self,
        side: &BTreeMap<FrameId, Relations>,
        other: &BTreeMap<FrameId, Relations>,
    ) -> BTreeSet<FrameId> {
        let only = side.keys().copied().filter(|frame| !other.contains_key(frame));
        only.filter(|frame| self.0.contains_key(frame)).collect()
    }

    /// Returns true if two functions were seen in one program or thread.
    fn have_common(&self, vanished: FrameId, new: FrameId) -> bool {
        let [vanished, new] = [vanished, new].map(|frame| self.0.get(&frame));
        vanished.zip(new).is_some_and(|(vanished, new)| !vanished.is_disjoint(new))
    }
}

/// Returns the relations of all functions that have weight on a side.
fn relations(both: &Profile, is_before: bool) -> Result<BTreeMap<FrameId, Relations>, Error> {
    let mut relations = BTreeMap::<FrameId, Relations>::new();
    for by in [GroupBy::Function, GroupBy::Comm, GroupBy::Edge] {
        for row in tally_profile(both, by)? {
            let weights = row.weights.iter().map(|weights| if is_before { weights.before } else { weights.after });
            let weights: Vec<f64> = weights.map(|weight| weight.as_f64()).collect();
            let weight = weights.last().copied().unwrap_or_default();
            if weight == 0.0 {
                continue;
            }
            match (by, &row.frames[..]) {
                (GroupBy::Function, [function]) => {
                    let function = relations.entry(*function).or_default();
                    function.inclusive = weight;
                    function.callees.insert(None, weights[0]);
                }
                (GroupBy::Comm, [root]) => {
                    relations.entry(*root).or_default().callers.insert(None, weight);
                }
                (GroupBy::Edge, [caller, callee]) => {
                    relations.entry(*caller).or_default().callees.insert(Some(*callee), weight);
                    relations.entry(*callee).or_default().callers.insert(Some(*caller), weight);
                }
                _ => {}
            }
        }
    }
    Ok(relations)
}

/// Returns the pairs of which each function is by far the best match of the other. `names` are those of known pairs.
fn find_pairs(
    sides: &[BTreeMap<FrameId, Relations>; 2],
    unmatched: &[BTreeSet<FrameId>; 2],
    names: &BTreeMap<FrameId, FrameId>,
    distinct: &BTreeSet<FrameId>,
    roots: &Roots,
    frames: &Frames,
) -> Vec<Candidate> {
    // Functions of scripts have their file: none becomes a function of another language.
    let has_file = |frame: FrameId| frames.name(frame).ends_with(b")") && frames.name(frame).contains_str(" (");
    let [vanished, new] = [0, 1].map(|side| find_heaviest(&sides[side], &unmatched[side], names, distinct));
    let candidates: Vec<Candidate> = vanished
        .iter()
        .flat_map(|(vanished, before)| {
            new.iter().filter_map(|(new, after)| {
                let similarity = before
                    .similarity(after)
                    .filter(|_| roots.have_common(*vanished, *new) && has_file(*vanished) == has_file(*new))?;
                Some(Candidate { vanished: *vanished, new: *new, similarity })
            })
        })
        .collect();
    // The best and second-best similarity of each function.
    let mut best = BTreeMap::<(bool, FrameId), [f64; 2]>::new();
    for Candidate { vanished, new, similarity } in &candidates {
        for function in [(true, *vanished), (false, *new)] {
            let [first, second] = best.entry(function).or_default();
            if *similarity > *first {
                (*first, *second) = (*similarity, *first);
            } else if *similarity > *second {
                *second = *similarity;
            }
        }
    }
    let mut found = candidates;
    found.retain(|one| {
        [(true, one.vanished), (false, one.new)].iter().all(|function| {
            let [first, second] = best.get(function).copied().unwrap_or_default();
            one.similarity == first && second <= MAX_RIVAL * first
        })
    });
    found
}

/// Returns the heaviest functions of a side that are not matched yet, with their relations.
fn find_heaviest(
    relations: &BTreeMap<FrameId, Relations>,
    unmatched: &BTreeSet<FrameId>,
    names: &BTreeMap<FrameId, FrameId>,
    distinct: &BTreeSet<FrameId>,
) -> Vec<(FrameId, Relations)> {
    let functions = unmatched.intersection(distinct);
    let mut functions: Vec<_> =
        functions.map(|frame| (*frame, relations[frame].with_names(names, unmatched))).collect();
    functions.sort_by(|a, b| b.1.inclusive.total_cmp(&a.1.inclusive));
    functions.truncate(MOST_FUNCTIONS);
    functions
}

impl Relations {
    /// Returns the relations with renamed functions under their names after. All functions that are not matched yet become one.
    fn with_names(&self, names: &BTreeMap<FrameId, FrameId>, unmatched: &BTreeSet<FrameId>) -> Self {
        let new_name = |frame: FrameId| match unmatched.contains(&frame) {
            true => UNMATCHED,
            false => names.get(&frame).copied().unwrap_or(frame),
        };
        Self {
            inclusive: self.inclusive,
            callers: rename_frames(&self.callers, new_name),
            callees: rename_frames(&self.callees, new_name),
        }
    }

    /// True for a function with much weight of functions that it calls.
    fn calls_others(&self) -> bool {
        let itself = self.callees.get(&None).copied().unwrap_or_default();
        itself <= (1.0 - MIN_CALLEES) * self.inclusive
    }

    /// Returns how similar two functions are, up to 1; `None` if they are not.
    fn similarity(&self, other: &Self) -> Option<f64> {
        // That two callers are not matched does not make them one.
        let callers = overlap(&self.callers, &other.callers, |frame| *frame != Some(UNMATCHED));
        let callees = overlap(&self.callees, &other.callees, |_| true);
        let weight = self.inclusive.min(other.inclusive) / self.inclusive.max(other.inclusive);
        (callers >= MIN_OVERLAP && callees >= MIN_OVERLAP && weight >= MIN_WEIGHT_RATIO)
            .then_some(callers * callees * weight)
    }
}

/// Adds up the weights of frames that have one name now.
fn rename_frames(
    weights: &BTreeMap<Option<FrameId>, f64>,
    new_name: impl Fn(FrameId) -> FrameId,
) -> BTreeMap<Option<FrameId>, f64> {
    let mut renamed = BTreeMap::new();
    for (frame, weight) in weights {
        *renamed.entry(frame.map(&new_name)).or_default() += weight;
    }
    renamed
}

/// Returns the share of two distributions that is equal, of the frames that count.
fn overlap(
    a: &BTreeMap<Option<FrameId>, f64>,
    b: &BTreeMap<Option<FrameId>, f64>,
    counts: impl Fn(&Option<FrameId>) -> bool,
) -> f64 {
    let sums = (a.values().sum::<f64>(), b.values().sum::<f64>());
    let shares = a.iter().filter(|(frame, _)| counts(frame)).map(|(frame, weight)| {
        let other = b.get(frame).copied().unwrap_or_default();
        (weight / sums.0).min(other / sums.1)
    });
    shares.sum()
}

#[cfg(test)]
mod tests {
    use super::find_renamed;
    use crate::diff::differential_profile;

    /// Returns the pairs found in a profile of lines `stack BEFORE AFTER`.
    fn pairs(lines: &[&str]) -> Vec<String> {
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
            &["main;work;strconv.Itoa 50 0", "main;work;fmt.Sprintf 0 50"],
            &["main;work;do_read_[k] 50 0", "main;work;do_write_[k] 0 50"],
            &["main;old 50 1", "main;new 0 50"],
            // Most functions are others.
            &[
                "main;old 50 0",
                "main;new 0 50",
                "main;a;read 99 0",
                "main;b 70 0",
                "main;x;read;y 0 40",
                "main;z;read 0 20",
            ],
            // Their callers are not the same.
            &["main;a;old 50 0", "main;a;b 99 0", "init;x;new 0 50", "init;x;c 0 300", "main;b 5 5", "init;c 5 5"],
        ] {
            assert_eq!(pairs(lines), [""; 0], "{lines:?}");
        }
    }
}
