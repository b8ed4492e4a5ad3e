//! The callers and callees of functions, by which functions with other names are recognized.

use std::collections::{BTreeMap, BTreeSet};

use crate::Error;
use crate::profile::{FrameId, Profile};
use crate::tally::{GroupBy, tally_profile};

/// Smallest share of the weight of two functions that comes from equal callers, or goes to equal callees.
///
/// Rates of wrong and missed pairs in releases of real programs: `benches/README.md`.
const MIN_OVERLAP: f64 = 0.5;

/// Smallest weight of one function relative to the other.
const MIN_WEIGHT_RATIO: f64 = 0.5;

/// A function calls others if these have this part of its weight.
const MIN_CALLEES: f64 = 0.1;

/// Represents all functions whose other name is not known yet.
const UNMATCHED: FrameId = FrameId::from_index(u32::MAX);

/// The callers and callees of a function, by weight.
#[derive(Clone, Debug, Default)]
pub(super) struct Relations {
    pub inclusive: f64,
    /// Weight by caller; `None` for stacks that the function is the root of.
    callers: BTreeMap<Option<FrameId>, f64>,
    /// Weight by callee; `None` for the function itself.
    callees: BTreeMap<Option<FrameId>, f64>,
}

/// Returns the relations of all functions that have weight on a side.
pub(super) fn find_relations(both: &Profile, is_before: bool) -> Result<BTreeMap<FrameId, Relations>, Error> {
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

impl Relations {
    /// Returns the relations with renamed functions under their names after. All functions that are not matched yet become one.
    pub fn with_names(&self, names: &BTreeMap<FrameId, FrameId>, unmatched: &BTreeSet<FrameId>) -> Self {
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

    /// True for a program or thread.
    pub fn is_root(&self) -> bool {
        self.callers.contains_key(&None)
    }

    /// True for a function with much weight of functions that it calls.
    pub fn calls_others(&self) -> bool {
        let itself = self.callees.get(&None).copied().unwrap_or_default();
        itself <= (1.0 - MIN_CALLEES) * self.inclusive
    }

    /// Returns how similar two functions are, up to 1; `None` if they are not.
    pub fn similarity(&self, other: &Self) -> Option<f64> {
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
