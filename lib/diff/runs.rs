//! What several runs tell of a profile: its counts, and how much they vary.

use super::Options;
use super::scale::Scaling;
use crate::Error;
use crate::markers::LOST;
use crate::profile::{Profile, Weight, Weights};
use crate::stats::significance::{Evidence, Runs, Spread};
use crate::stats::weight_kind::{Divisor, Weighed};

/// How many degrees of freedom the spread of all stacks lends to each one's own, which few runs know badly.
const LENT: f64 = 4.0;

/// What the runs tell.
pub struct Told {
    /// The evidence on each stack of the joined profile, in sorted order.
    pub evidence: Vec<Evidence>,
    /// What one sample weighs.
    pub sample: Weight,
    /// What the weights are.
    pub weighed: Weighed,
}

/// The evidence on each stack of `joined`.
pub fn evidence(joined: &Profile, before: &[Profile], after: &[Profile], options: &Options) -> Result<Told, Error> {
    let repeated = before.len() > 1 || after.len() > 1;
    let weighed = match options.per_sample {
        Some(weight) => Weighed::Counts(weight),
        None => weighed(joined, before.iter().chain(after))?,
    };
    let sample = match weighed.sample() {
        Some(sample) => sample,
        // The spread will tell.
        None if repeated => Weight::from_millionths(1),
        None => {
            let doubt = weighed.doubt(Runs::default()).unwrap_or_default();
            return Err(Error::Invalid(format!(
                "{doubt} (--before, --after), or say one sample's weight (--per-sample)"
            )));
        }
    };
    // Several runs show how much they vary, whatever they weigh.
    let weighed = if repeated { Weighed::Counts(sample) } else { weighed };
    let mut evidence = Vec::with_capacity(joined.len());
    joined.for_each_sorted::<Error>(|stack| {
        let is_lost = stack.frames.len() == 1 && joined.frames.name(stack.frames[0]) == LOST;
        let weights = if is_lost { Weights::default() } else { stack.weights };
        evidence.push(Evidence::counted(weights, sample.as_f64()));
        Ok(())
    })?;
    if repeated {
        let sides = [before, after].map(|runs| columns(joined, runs, sample.as_f64(), options.scaling));
        let [before, after] = sides;
        set_spread(&mut evidence, &[before?, after?]);
    }
    Ok(Told { evidence, sample, weighed })
}

/// What the weights are, as far as they and the frames tell.
fn weighed<'a>(joined: &Profile, runs: impl Iterator<Item = &'a Profile>) -> Result<Weighed, Error> {
    let mut divisor = Divisor::default();
    for profile in runs {
        profile.for_each::<Error>(|_, weights| {
            divisor.add(weights.after);
            Ok(())
        })?;
    }
    Ok(divisor.weighed(&joined.frames))
}

/// For each run the samples of every stack of `joined`, in sorted order; if totals are compared, of runs of one length.
fn columns(joined: &Profile, runs: &[Profile], sample: f64, scaling: Scaling) -> Result<Vec<Vec<f64>>, Error> {
    let total = |run: &Profile| run.total().after.as_f64();
    let mean = runs.iter().map(total).sum::<f64>() / runs.len() as f64;
    let column = |run: &Profile| {
        let mut whole = Profile::new(false);
        // All stacks, so that every column has the same order.
        let ids = whole.frames.intern_all(&joined.frames);
        joined.for_each(|stack, _| {
            let stack: Vec<_> = stack.iter().map(|frame| ids[frame.index()]).collect();
            whole.add(&stack, Weights::default())
        })?;
        whole.merge(run)?;
        let factor = match scaling {
            Scaling::Totals if total(run) > 0.0 => mean / total(run) / sample,
            _ => 1.0 / sample,
        };
        let mut column = Vec::with_capacity(whole.len());
        whole.for_each_sorted::<Error>(|stack| {
            column.push(stack.weights.after.as_f64() * factor);
            Ok(())
        })?;
        Ok(column)
    };
    runs.iter().map(column).collect()
}

/// Sets how much each stack varies between the runs of a side: its own variance over mean, and that of all stacks with
/// the weight of [`LENT`].
fn set_spread(evidence: &mut [Evidence], sides: &[Vec<Vec<f64>>]) {
    let freedom: usize = sides.iter().map(|runs| runs.len() - 1).sum();
    let freedom = freedom as f64;
    let own: Vec<f64> = (0..evidence.len()).map(|stack| dispersion(sides, stack, freedom)).collect();
    let mut known: Vec<f64> = own.iter().copied().filter(|dispersion| *dispersion > 0.0).collect();
    known.sort_unstable_by(f64::total_cmp);
    let common = known.get(known.len() / 2).copied().unwrap_or(1.0).max(1.0);
    for (evidence, own) in evidence.iter_mut().zip(own) {
        let dispersion = (LENT * common + freedom * own) / (LENT + freedom);
        evidence.spread = Some(Spread { dispersion: dispersion.max(1.0), freedom: LENT + freedom });
    }
}

fn dispersion(sides: &[Vec<Vec<f64>>], stack: usize, freedom: f64) -> f64 {
    let one_side = |runs: &Vec<Vec<f64>>| {
        let mean = runs.iter().map(|run| run[stack]).sum::<f64>() / runs.len() as f64;
        let squares: f64 = runs.iter().map(|run| (run[stack] - mean).powi(2)).sum();
        if mean > 0.0 { squares / mean } else { 0.0 }
    };
    sides.iter().map(one_side).sum::<f64>() / freedom
}
