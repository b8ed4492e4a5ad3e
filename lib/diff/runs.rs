//! Observations of each stack in several runs: counts, and their variance between runs.

use super::options::Options;
use super::scale::Scaling;
use crate::Error;
use crate::markers::LOST;
use crate::profile::{Profile, Weight, Weights};
use crate::stats::significance::{Observation, Runs, Spread};
use crate::stats::weight_kind::{CommonDivisor, WeightKind};

/// Degrees of freedom of the spread common to all stacks, with which each stack's own spread is averaged: few runs
/// estimate it badly.
const PRIOR_FREEDOM: f64 = 4.0;

/// Observations of all runs.
pub struct RunObservations {
    /// Observation of each stack of the joined profile, in sorted order.
    pub stacks: Vec<Observation>,
    /// Weight of one sample.
    pub sample: Weight,
    /// Kind of the weights.
    pub weight_kind: WeightKind,
}

/// Returns for each stack of `joined` its samples before and after, and with several runs a side their spread.
///
/// # Errors
/// [`Error::Overflow`], and [`Error::Invalid`] for durations with one run a side.
pub fn observe_stacks(
    joined: &Profile,
    before: &[Profile],
    after: &[Profile],
    options: &Options,
) -> Result<RunObservations, Error> {
    let repeated = before.len() > 1 || after.len() > 1;
    let weight_kind = match options.per_sample {
        Some(weight) => WeightKind::Counts(weight),
        None => find_weight_kind(joined, before.iter().chain(after))?,
    };
    let sample = match weight_kind.sample() {
        Some(sample) => sample,
        // The unit does not matter: significance follows from the spread between runs.
        None if repeated => Weight::from_millionths(1),
        None => {
            let caveat = weight_kind.caveat(Runs::default()).unwrap_or_default();
            return Err(Error::Invalid(format!("{caveat}, or give the weight of one sample with --per-sample")));
        }
    };
    // With several runs, durations are judged like counts, by their spread.
    let weight_kind = if repeated { WeightKind::Counts(sample) } else { weight_kind };
    let mut stacks = Vec::with_capacity(joined.len());
    joined.for_each_sorted::<Error>(|stack| {
        let is_lost = stack.frames.len() == 1 && joined.frames.name(stack.frames[0]) == LOST;
        let weights = if is_lost { Weights::default() } else { stack.weights };
        stacks.push(Observation::from_weights(weights, sample.as_f64()));
        Ok(())
    })?;
    if repeated {
        let sides = [before, after].map(|runs| samples_by_run(joined, runs, sample.as_f64(), options.scaling));
        let [before, after] = sides;
        set_spread(&mut stacks, &[before?, after?]);
    }
    Ok(RunObservations { stacks, sample, weight_kind })
}

/// Returns the kind of the weights of all runs.
fn find_weight_kind<'a>(joined: &Profile, runs: impl Iterator<Item = &'a Profile>) -> Result<WeightKind, Error> {
    let mut divisor = CommonDivisor::default();
    for profile in runs {
        profile.for_each::<Error>(|_, weights| {
            divisor.add(weights.after);
            Ok(())
        })?;
    }
    Ok(divisor.kind(&joined.frames))
}

/// Returns for each run the samples of each stack of `joined`, in sorted order. If totals are compared, runs are scaled
/// to the same total.
fn samples_by_run(joined: &Profile, runs: &[Profile], sample: f64, scaling: Scaling) -> Result<Vec<Vec<f64>>, Error> {
    let totals: Vec<f64> = runs.iter().map(|run| run.total().after.as_f64()).collect();
    let mean = totals.iter().sum::<f64>() / runs.len() as f64;
    let runs = runs.iter().zip(totals).map(|(run, total)| {
        let factor = match scaling {
            Scaling::Totals if total > 0.0 => mean / total / sample,
            _ => 1.0 / sample,
        };
        scaled_weights(joined, run, factor)
    });
    runs.collect()
}

/// Returns the weight of each stack of `joined` in a run, multiplied by `factor`, in sorted order.
fn scaled_weights(joined: &Profile, run: &Profile, factor: f64) -> Result<Vec<f64>, Error> {
    let mut whole = Profile::new(false);
    // All stacks, so that each run has the same order.
    let ids = whole.frames.intern_all(&joined.frames);
    joined.for_each(|stack, _| {
        let stack: Vec<_> = stack.iter().map(|frame| ids[frame.index()]).collect();
        whole.add(&stack, Weights::default())
    })?;
    whole.merge(run)?;
    let mut weights = Vec::with_capacity(whole.len());
    whole.for_each_sorted::<Error>(|stack| {
        weights.push(stack.weights.after.as_f64() * factor);
        Ok(())
    })?;
    Ok(weights)
}

/// Sets the spread of each stack between the runs of a side: its own variance over mean, averaged with the median of
/// all stacks, which has the weight of [`PRIOR_FREEDOM`].
fn set_spread(observations: &mut [Observation], sides: &[Vec<Vec<f64>>]) {
    let freedom: usize = sides.iter().map(|runs| runs.len() - 1).sum();
    let freedom = freedom as f64;
    let own: Vec<f64> = (0..observations.len()).map(|stack| pooled_dispersion(sides, stack, freedom)).collect();
    let mut known: Vec<f64> = own.iter().copied().filter(|dispersion| *dispersion > 0.0).collect();
    known.sort_unstable_by(f64::total_cmp);
    let common = known.get(known.len() / 2).copied().unwrap_or(1.0).max(1.0);
    for (observation, own) in observations.iter_mut().zip(own) {
        let dispersion = (PRIOR_FREEDOM * common + freedom * own) / (PRIOR_FREEDOM + freedom);
        observation.spread = Some(Spread { dispersion: dispersion.max(1.0), freedom: PRIOR_FREEDOM + freedom });
    }
}

/// Returns the variance over mean of a stack, pooled over both sides.
fn pooled_dispersion(sides: &[Vec<Vec<f64>>], stack: usize, freedom: f64) -> f64 {
    sides.iter().map(|runs| squares_over_mean(runs, stack)).sum::<f64>() / freedom
}

/// Returns the sum of the squared differences of a stack from its mean in the runs of a side, divided by the mean.
fn squares_over_mean(runs: &[Vec<f64>], stack: usize) -> f64 {
    let mean = runs.iter().map(|run| run[stack]).sum::<f64>() / runs.len() as f64;
    let squares: f64 = runs.iter().map(|run| (run[stack] - mean).powi(2)).sum();
    if mean > 0.0 { squares / mean } else { 0.0 }
}
