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
    pub fn with_names(&self, names: &BTreeMap<FrameId, FrameId>, unmatched: &BTreeSet<FrameId>) -> NamedRelations {
        let new_name = |frame: FrameId| match unmatched.contains(&frame) {
            true => UNMATCHED,
            false => names.get(&frame).copied().unwrap_or(frame),
        };
        NamedRelations {
            inclusive: self.inclusive,
            callers: Distribution::new(&self.callers, new_name),
            callees: Distribution::new(&self.callees, new_name),
        }
    }

    /// Returns all callers and callees.
    pub fn neighbours(&self) -> impl Iterator<Item = FrameId> {
        self.callers.keys().chain(self.callees.keys()).flatten().copied()
    }

    /// Returns the weight of each callee.
    pub fn callees(&self) -> impl Iterator<Item = (FrameId, f64)> {
        self.callees.iter().filter_map(|(callee, weight)| Some(((*callee)?, *weight)))
    }

    /// True for a program or thread.
    pub fn is_root(&self) -> bool {
        self.callers.contains_key(&None)
    }
}

/// The callers and callees of a function by their names after.
#[derive(Clone, Debug)]
pub(super) struct NamedRelations {
    inclusive: f64,
    callers: Distribution,
    callees: Distribution,
}

impl NamedRelations {
    /// Returns how similar two functions are, up to 1; `None` if they are not.
    pub fn similarity(&self, other: &Self) -> Option<f64> {
        let weight = self.inclusive.min(other.inclusive) / self.inclusive.max(other.inclusive);
        if weight < MIN_WEIGHT_RATIO {
            return None;
        }
        // That two callers are not matched does not make them one.
        let callers = self.callers.overlap(&other.callers, |frame| *frame != Some(UNMATCHED));
        let callees = self.callees.overlap(&other.callees, |_| true);
        (callers >= MIN_OVERLAP && callees >= MIN_OVERLAP).then_some(callers * callees * weight)
    }

    /// Returns the callers that are matched. Similar functions have one in common.
    pub fn known_callers(&self) -> impl Iterator<Item = Option<FrameId>> {
        self.callers.weights.keys().copied().filter(|frame| *frame != Some(UNMATCHED))
    }

    /// Returns the number of callers and callees.
    pub fn len(&self) -> usize {
        self.callers.weights.len() + self.callees.weights.len()
    }
}

/// The weights of the callers or callees of a function.
#[derive(Clone, Debug)]
struct Distribution {
    weights: BTreeMap<Option<FrameId>, f64>,
    sum: f64,
}

impl Distribution {
    /// Adds up the weights of frames that have one name now.
    fn new(weights: &BTreeMap<Option<FrameId>, f64>, new_name: impl Fn(FrameId) -> FrameId) -> Self {
        let mut renamed = BTreeMap::new();
        for (frame, weight) in weights {
            *renamed.entry(frame.map(&new_name)).or_default() += weight;
        }
        Self { sum: renamed.values().sum(), weights: renamed }
    }

    /// Returns the share that is equal, of the frames that count.
    fn overlap(&self, other: &Self, counts: impl Fn(&Option<FrameId>) -> bool) -> f64 {
        let [few, many] = if self.weights.len() <= other.weights.len() { [self, other] } else { [other, self] };
        let shares = few.weights.iter().filter(|(frame, _)| counts(frame)).filter_map(|(frame, weight)| {
            let other = many.weights.get(frame)?;
            Some((weight / few.sum).min(other / many.sum))
        });
        shares.sum()
    }
}
