//! What is known about how much the weights of functions vary from run to run.

use super::survey::Survey;
use super::waits::Waits;
use crate::Error;
use crate::diff::ComparedRuns;
use crate::own_code::Origins;
use crate::profile::{Profile, Weight};
use crate::stats::caveat::{Caveat, caveat_of_lost};
use crate::stats::judgement::{Design, Observation};
use crate::stats::sample_weight::{WeightKind, WeightOptions, WeightSurvey};
use crate::tally::{Row, RunSums, observe_sum};

/// The evidence of how much the weights of functions vary.
#[derive(Debug)]
pub(super) enum Evidence {
    /// Nothing but the sums of each side.
    Sums(WeightOptions),
    /// The runs of each side. A frame has the same ID in them as in the whole profile.
    Runs { runs: RunSums, kind: WeightKind, design: Box<Design>, total: Observation, caveat: Option<Caveat> },
}

/// What the weights tell of samples.
pub(super) struct Sampling {
    /// The kind of the weights.
    pub(super) kind: WeightKind,
    /// The factor by which weights before were scaled, as far as it is known.
    pub(super) scale_before: f64,
    /// A warning about a judgement, if the weights deserve one.
    pub(super) caveat: Option<Caveat>,
}

impl Evidence {
    /// Returns the profile of a comparison, and its runs as evidence.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn of_runs(compared: ComparedRuns) -> Result<(Profile, Self), Error> {
        let (kind, design, total) = (compared.weight_kind, compared.design()?, compared.total());
        let ComparedRuns { profile, mut runs, caveat, .. } = compared;
        for run in runs.before.iter_mut().chain(&mut runs.after) {
            let mut renumbered = Profile::new(false);
            renumbered.frames.intern_all(&profile.frames);
            renumbered.merge(run)?;
            *run = renumbered;
        }
        Ok((profile, Self::Runs { runs, kind, design: Box::new(design), total, caveat }))
    }

    /// True if the user gave the weight of a sample.
    pub(super) fn has_sample_weight(&self) -> bool {
        matches!(self, Self::Sums(options) if options.per_sample.is_some())
    }

    /// Returns the weight of all runs before as they were measured, without lost samples; `None` if it is not known.
    pub(super) fn measured_before(&self) -> Option<Weight> {
        let Self::Runs { runs, .. } = self else { return None };
        let weights = runs.before.iter().map(|run| run.measured_total().after);
        weights.reduce(Weight::saturating_add)
    }

    /// Returns what the weights tell of samples.
    pub(super) fn sampling(&self, profile: &Profile) -> Sampling {
        match self {
            Self::Sums(options) => {
                let mut survey = WeightSurvey::default();
                let is_differential = profile.is_differential();
                profile.measured_weights().for_each(|weights| match is_differential {
                    true => survey.add_sides(weights),
                    false => survey.add(weights.after),
                });
                let kind = survey.kind(&profile.frames, *options);
                let of_lost = caveat_of_lost(profile.total(), profile.lost()).filter(|_| is_differential);
                let caveat = survey.caveat(kind, *options, of_lost);
                Sampling { kind, scale_before: survey.scale_before(), caveat }
            }
            Self::Runs { kind, caveat, .. } => Sampling { kind: *kind, scale_before: 1.0, caveat: caveat.clone() },
        }
    }

    /// Removes the stacks of wakers from the runs, as they are removed from the whole profile.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn remove_wakers(&mut self) -> Result<(), Error> {
        let Self::Runs { runs, .. } = self else { return Ok(()) };
        runs.before.iter_mut().chain(&mut runs.after).try_for_each(|run| Waits::take_from(run).map(drop))
    }

    /// Returns the weight of each own function in each run.
    pub(super) fn observe(&self, origins: &Origins<'_>, rows: &[Row]) -> Result<Vec<Observation>, Error> {
        let Self::Runs { runs, .. } = self else {
            return Ok(rows.iter().map(|row| observe_sum(row.weights[0])).collect());
        };
        let mut weights = vec![Vec::new(); rows.len()];
        for (run, factor) in runs.iter() {
            let survey = Survey::new(run, origins)?;
            for (row, weights) in rows.iter().zip(&mut weights) {
                let own = survey.own.get(&row.frames[0]);
                weights.push(own.map_or(0.0, |own| own.weights.after.as_f64() * factor));
            }
        }
        Ok(weights.iter().map(|weights| runs.observation(weights)).collect())
    }
}
