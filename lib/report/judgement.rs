//! The meaning of weights, and the changes that are more than noise: the report's only use of `stats`.

use std::cmp::Reverse;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::context::Context;
use super::evidence::{Evidence, Sampling};
use super::measure::{format_count, format_microseconds, format_weight};
use super::page::Number;
use crate::Error;
use crate::markers::is_thread_state;
use crate::profile::is_at_least;
use crate::profile::{FrameId, Profile, Weight, Weights};
use crate::stats::caveat::Caveat;
use crate::stats::judgement::{Design, Observation};
use crate::stats::sample_weight::WeightKind;
use crate::tally::{self, Charging, GroupBy, Row, observe_runs, observe_sum, observe_sums, tally_profile};

/// The name by which users mean microseconds.
const MICROSECONDS: &str = "us";

/// Weights from this total on are not taken for samples: a quarter of an hour at 1000 Hz.
const MOST_SAMPLES: u64 = 1_000_000;

/// An own function has most of the change of a function that it calls from this part on.
const MOST_OF_CHANGE: (u128, u128) = (1, 2);

/// Least part of the largest change that one in the other direction has which is named beside it.
const OPPOSITE_PART: (u128, u128) = (1, 2);

/// The unit of the weights of a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount<'a> {
    unit: Unit<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Unit<'a> {
    /// The user said so, or thread states show that the weights are time.
    Microseconds,
    /// The unit that the user named.
    Named(&'a str),
    /// Samples of this weight.
    Samples(Weight),
    Unknown,
}

impl<'a> Amount<'a> {
    /// Finds out the unit of a profile.
    pub(super) fn new(context: &Context<'a>) -> Self {
        let profile = context.profile;
        let has_states = profile.frames.iter().any(|(_, name)| is_thread_state(name));
        let is_given = context.evidence.has_sample_weight();
        let unit = match (context.unit, context.evidence.sampling(profile).kind) {
            (Some(MICROSECONDS), _) => Unit::Microseconds,
            (Some(unit), _) => Unit::Named(unit),
            (None, _) if has_states => Unit::Microseconds,
            // Large weights may count anything: instructions of a simulator, nanoseconds.
            (None, WeightKind::Samples(sample)) if is_given || is_small(profile, sample) => Unit::Samples(sample),
            (None, _) => Unit::Unknown,
        };
        Self { unit }
    }

    /// Returns a weight of a table as a number with this share in percent.
    pub(super) fn number(self, weight: Weight, percent: f64) -> Number {
        Number::Weight { weight, is_time: matches!(self.unit, Unit::Microseconds), percent }
    }

    /// Formats a weight with its unit.
    pub(super) fn text(self, weight: Weight) -> String {
        match self.unit {
            Unit::Microseconds => format_microseconds(weight),
            Unit::Named(unit) => format!("{} {unit}", format_weight(weight)),
            Unit::Samples(Weight::ONE) => format!("{} samples", format_weight(weight)),
            Unit::Samples(sample) => {
                let count = weight.millionths() / sample.millionths().max(1);
                let count = format_count(usize::try_from(count).unwrap_or(usize::MAX));
                format!("{} ({count} samples of {})", format_weight(weight), format_weight(sample))
            }
            Unit::Unknown => format!("weight {}", format_weight(weight)),
        }
    }

    /// Formats a weight beside another one that has its unit.
    pub(super) fn text_without_unit(self, weight: Weight) -> String {
        match self.unit {
            Unit::Microseconds => format_microseconds(weight),
            _ => format_weight(weight),
        }
    }
}

/// True if the total is so small that it probably is a number of samples of this weight.
fn is_small(profile: &Profile, sample: Weight) -> bool {
    let total = profile.total();
    sample == Weight::ONE && total.after.max(total.before) < Weight::new(MOST_SAMPLES)
}

/// The judgement of all functions of a comparison, as fg-csv and fg-check judge them.
#[derive(Debug)]
pub(super) struct FunctionJudgement {
    /// `None` if the weights do not allow a judgement.
    judged: Option<tally::Judgement>,
    /// The self weight of each function.
    selfs: HashMap<FrameId, Observation, FxBuildHasher>,
    /// The functions whose inclusive weight changed by more than noise, the largest change first.
    inclusive: Vec<(FrameId, Weights)>,
    /// True if there is one run a side, and runs may differ.
    is_uncertain: bool,
    /// A doubt about the chances, or the reason why there are none.
    caveat: Option<Caveat>,
}

impl FunctionJudgement {
    /// Returns the functions whose inclusive weight changed by more than noise, the largest change first.
    pub(super) fn inclusive(&self) -> &[(FrameId, Weights)] {
        &self.inclusive
    }

    /// Judges all functions of a comparison that still has the stacks of wakers.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn new(profile: &Profile, evidence: &Evidence) -> Result<Self, Error> {
        let rows = tally_profile(profile, GroupBy::Function)?;
        let Sampling { kind, scale_before, caveat } = evidence.sampling(profile);
        let (observations, total, design) = match evidence {
            Evidence::Sums(_) => {
                (observe_sums(&rows), observe_sum(profile.total()), Design::of_sums(kind, scale_before))
            }
            Evidence::Runs { runs, total, design, .. } => {
                (observe_runs(&rows, &profile.frames, runs, GroupBy::Function)?, total.clone(), Design::clone(design))
            }
        };
        let is_uncertain = design.is_single() && kind != WeightKind::Exact;
        let judged = tally::Judgement::new(&rows, &profile.frames, &observations, &total, design);
        let inclusive = judged.as_ref().map_or_else(Vec::new, |judged| changed_inclusively(profile, &rows, judged));
        let frames = rows.iter().map(|row| row.frames[0]);
        // Lost samples are no function.
        let functions = frames.zip(observations).filter(|(frame, _)| !profile.frames.is_lost(&[*frame]));
        let selfs = functions.filter_map(|(frame, all)| all.into_iter().next().map(|own| (frame, own)));
        Ok(Self { judged, selfs: selfs.collect(), inclusive, is_uncertain, caveat })
    }
}

/// Returns the functions whose inclusive weight changed by more than noise, the largest change first.
fn changed_inclusively(profile: &Profile, rows: &[Row], judged: &tally::Judgement) -> Vec<(FrameId, Weights)> {
    let changes = rows.iter().zip(&judged.chances).filter(|(_, chances)| tally::is_significant(chances[1]));
    let mut changes: Vec<(FrameId, Weights)> = changes.map(|(row, _)| (row.frames[0], row.weights[1])).collect();
    let ranks = profile.frames.ranks();
    changes.sort_by_key(|(frame, weights)| (Reverse(weights.difference()), ranks[frame.index()]));
    changes
}

/// The chances of changes, or the reason why they are not known.
pub(super) struct Judgement {
    /// For each change the probability that noise alone causes it; empty if it is not known.
    pub(super) chances: Vec<f64>,
    /// The functions of libraries and the kernel whose self weight changed by more than noise, the largest change first.
    pub(super) callees: Vec<(FrameId, Weights)>,
    /// The function whose inclusive weight changed the most, by more than noise, and the one that changed the most in the other
    /// direction, if that is about as much: the first may have been replaced by it.
    pub(super) inclusive: Vec<(FrameId, Weights)>,
    /// True if there is one run a side, and runs may differ.
    pub(super) is_uncertain: bool,
    /// A doubt about the chances, or the reason why there are none.
    pub(super) caveat: Option<Caveat>,
}

impl Judgement {
    fn unknown(caveat: Option<Caveat>) -> Self {
        Self { chances: Vec::new(), callees: Vec::new(), inclusive: Vec::new(), is_uncertain: false, caveat }
    }

    /// Judges the change of each own function in up to three ways: with what libraries do below it, by its own weight, and by the
    /// functions of libraries whose change is mostly below it. The smallest chance counts. A function without libraries below it
    /// has the same chance as its self weight in the tables of fg-csv.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn new(
        context: &Context<'_>,
        functions: impl Iterator<Item = (FrameId, Weights)>,
    ) -> Result<Self, Error> {
        let Some(FunctionJudgement { judged, selfs, inclusive, is_uncertain, caveat }) = context.judged else {
            return Ok(Self::unknown(None));
        };
        let rows: Vec<Row> = functions.map(|(frame, weights)| Row::new(vec![frame], weights)).collect();
        let observations = context.evidence.observe(context.origins, &rows)?;
        let Some(judged) = judged else {
            return Ok(Self::unknown(caveat.clone()));
        };
        let mut callees: Vec<(FrameId, Weights)> = selfs
            .iter()
            .filter(|(frame, own)| {
                !context.survey.own.contains_key(*frame)
                    && !context.renamed.contains(**frame)
                    && tally::is_significant(judged.chance_of_group(own, Some(own)))
            })
            .map(|(frame, _)| (*frame, context.survey.functions[frame.index()].self_weights))
            .collect();
        let ranks = context.profile.frames.ranks();
        callees.sort_by_key(|(frame, weights)| (Reverse(weights.difference()), ranks[frame.index()]));
        let callers = find_callers(context, &callees)?;
        let chances = rows.iter().zip(&observations).map(|(row, observation)| {
            let own = selfs.get(&row.frames[0]);
            let callees = callers.iter().filter(|(caller, _)| *caller == row.frames[0]).map(|(_, callee)| callee);
            let selfs = own.into_iter().chain(callees.filter_map(|callee| selfs.get(callee)));
            let by_itself = selfs.map(|weights| judged.chance_of_group(weights, Some(weights)));
            by_itself.fold(judged.chance_of_group(observation, own), f64::min)
        });
        Ok(Self {
            chances: chances.collect(),
            callees,
            inclusive: largest_of_work(context, inclusive),
            is_uncertain: *is_uncertain,
            caveat: caveat.clone(),
        })
    }

    /// True if a change is more than noise, or if that is not known.
    pub(super) fn counts(&self, change: usize) -> bool {
        self.chances.get(change).is_none_or(|chance| tally::is_significant(*chance))
    }
}

/// Returns the first of these functions whose change is more than that of idle threads and waits for others, and the first of
/// those that changed about as much in the other direction, if there are some.
fn largest_of_work(context: &Context<'_>, changes: &[(FrameId, Weights)]) -> Vec<(FrameId, Weights)> {
    let is_inactive =
        |(frame, weights): &(FrameId, Weights)| context.inactive.is_inactive_inclusively(*frame, *weights);
    let mut changes: Vec<_> = changes.iter().copied().filter(|(frame, _)| !context.renamed.contains(*frame)).collect();
    changes.sort_by_key(is_inactive);
    let Some(largest) = changes.first().copied() else { return Vec::new() };
    let is_growth = |weights: Weights| weights.after > weights.before;
    let opposite = changes.into_iter().find(|change| {
        let [part, whole] = [change.1, largest.1].map(|weights| weights.difference().millionths());
        is_growth(change.1) != is_growth(largest.1)
            && is_inactive(change) == is_inactive(&largest)
            && is_at_least(part, OPPOSITE_PART, whole)
    });
    [largest].into_iter().chain(opposite).collect()
}

/// Returns each of these functions of libraries with the own function that has most of its change, if there is one.
///
/// # Errors
/// [`Error::Overflow`].
fn find_callers(context: &Context<'_>, callees: &[(FrameId, Weights)]) -> Result<Vec<(FrameId, FrameId)>, Error> {
    let mut sums: HashMap<FrameId, HashMap<FrameId, Weights, FxBuildHasher>, FxBuildHasher> =
        callees.iter().map(|(callee, _)| (*callee, HashMap::default())).collect();
    let charging = Charging::new(&context.profile.frames);
    context.profile.for_each(|stack, weights| {
        let (own, leaf) = (context.origins.place(stack).own, charging.charged(stack));
        let sum = leaf.and_then(|leaf| sums.get_mut(&leaf)).zip(own);
        sum.map_or(Ok(()), |(sum, own)| sum.entry(stack[own]).or_default().add(weights))
    })?;
    let ranks = context.ranks();
    let callers = callees.iter().filter_map(|(callee, change)| {
        let callers = sums.get(callee)?.iter();
        let callers = callers.filter(|(_, weights)| (weights.after > weights.before) == (change.after > change.before));
        let largest = callers.max_by_key(|(caller, weights)| (weights.difference(), Reverse(ranks[caller.index()])))?;
        let [part, whole] = [largest.1, change].map(|weights| weights.difference().millionths());
        is_at_least(part, MOST_OF_CHANGE, whole).then_some((*largest.0, *callee))
    });
    Ok(callers.collect())
}
