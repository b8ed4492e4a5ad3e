//! Comparisons that keep their runs, so that each difference can be judged by its spread from run to run.

use super::counterparts::Counterparts;
use super::options::Options;
use super::repeated_run::find_repeated_run;
use super::scale::Scaling;
use crate::Error;
use crate::profile::{Profile, Weight, Weights};
use crate::stats::caveat::{Caveat, caveat_of_lost};
use crate::stats::judgement::{Design, Observation, median};
use crate::stats::sample_weight::{WeightKind, WeightSurvey};
use crate::tally::{GroupBy, RunSums, observe_runs, tally_profile};

/// A differential profile and the runs that it is the sum of.
#[derive(Debug)]
pub struct ComparedRuns {
    /// The sum of the runs of each side, those before scaled.
    pub profile: Profile,
    /// All runs, with the factors that make them comparable.
    pub runs: RunSums,
    /// Kind of the weights.
    pub weight_kind: WeightKind,
    /// A warning about a judgement, if the runs or their weights deserve one.
    pub caveat: Option<Caveat>,
    /// Names before that are compared under other names.
    pub counterparts: Counterparts,
}

impl ComparedRuns {
    /// Returns the design of the comparison.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn design(&self) -> Result<Design, Error> {
        let is_single = self.runs.before.len() <= 1 && self.runs.after.len() <= 1;
        let (counting, sample) = self.weight_kind.counting(is_single);
        let [before, after] = [&self.runs.factors_before, &self.runs.factors_after]
            .map(|factors| factors.iter().map(|factor| factor * sample).collect());
        let stacks = match self.weight_kind == WeightKind::Durations && !is_single {
            true => Some(self.observe_stacks()?),
            false => None,
        };
        Ok(Design { counting, before, after, stacks })
    }

    /// Returns the durations of each stack of a thread itself.
    fn observe_stacks(&self) -> Result<Vec<Observation>, Error> {
        let rows = tally_profile(&self.profile, GroupBy::OwnStack)?;
        let observed = observe_runs(&rows, &self.profile.frames, &self.runs, GroupBy::OwnStack)?;
        Ok(observed.into_iter().flatten().collect())
    }

    /// Returns the total of each run, scaled.
    pub fn total(&self) -> Observation {
        let totals: Vec<f64> = self.runs.iter().map(|(run, factor)| run.total().after.as_f64() * factor).collect();
        self.runs.observation(&totals)
    }
}

/// Returns a warning about judging these runs, if they or their weights deserve one.
pub fn find_caveat(
    before: &[Profile],
    after: &[Profile],
    survey: &WeightSurvey,
    kind: WeightKind,
    options: &Options,
) -> Option<Caveat> {
    if let Some(repeated) = find_repeated_run(before, after, kind) {
        return Some(repeated);
    }
    let of_side = |runs: &[Profile], weight: fn(&Profile) -> Weight| {
        runs.iter().map(weight).fold(Weight::ZERO, Weight::saturating_add)
    };
    let of_sides = |weight| Weights { before: of_side(before, weight), after: of_side(after, weight) };
    let (total, lost) = (of_sides(|run| run.total().after), of_sides(|run| run.lost().after));
    let of_lost = match options.scaling {
        Scaling::Totals | Scaling::Median => None,
        Scaling::Runs | Scaling::Factor(_) => caveat_of_lost(total, lost),
    };
    match before.len() <= 1 && after.len() <= 1 {
        true => survey.caveat_of_single_runs(kind, options.weights, of_lost),
        false => kind.caveat(before.len() <= 1 || after.len() <= 1).map(Caveat::from).or(of_lost),
    }
}

/// Returns the statistics of the weights of all runs. `joined` has their sums by stack, not scaled.
pub fn survey_weights(joined: &Profile, before: &[Profile], after: &[Profile]) -> WeightSurvey {
    let mut survey = WeightSurvey::default();
    if before.len() == 1 && after.len() == 1 {
        // As programs that read the comparison do.
        joined.measured_weights().for_each(|weights| survey.add_sides(weights));
    } else {
        before.iter().chain(after).flat_map(Profile::measured_weights).for_each(|weights| survey.add(weights.after));
        if let (Some(before), Some(after)) = (before.first(), after.first()) {
            pair_weights(before, after).for_each(|weights| survey.compare(weights));
        }
    }
    survey
}

/// Returns the weights of each stack that one of two runs has.
fn pair_weights(before: &Profile, after: &Profile) -> impl Iterator<Item = Weights> {
    let mut both = Profile::new(true);
    let joined = super::add_before(&mut both, before).and_then(|()| both.merge(after));
    joined.ok().map(|()| both.measured_weights().collect::<Vec<_>>()).into_iter().flatten()
}

/// Returns the runs with the factors that make their weights comparable. `joined` has the sums of all runs, not scaled.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn scale_runs(
    joined: &Profile,
    before: Vec<Profile>,
    after: Vec<Profile>,
    scaling: Scaling,
) -> Result<RunSums, Error> {
    let (count_before, count_after) = (before.len(), after.len());
    let mut runs =
        RunSums { factors_before: vec![1.0; count_before], factors_after: vec![1.0; count_after], before, after };
    let weights = match scaling {
        Scaling::Runs => return Ok(runs),
        Scaling::Factor(factor) => {
            let factor = factor.as_f64() * count_before as f64 / count_after.max(1) as f64;
            runs.factors_before.fill(factor);
            return Ok(runs);
        }
        Scaling::Totals => runs.iter().map(|(run, _)| run.measured_total().after.as_f64()).collect(),
        Scaling::Median => median_levels(joined, &runs)?,
    };
    let after = &weights[count_before..];
    let reference = after.iter().sum::<f64>() / after.len().max(1) as f64;
    let factors = weights.iter().map(|weight| if *weight > 0.0 && reference > 0.0 { reference / weight } else { 1.0 });
    let factors: Vec<f64> = factors.collect();
    runs.factors_after = factors[count_before..].to_vec();
    runs.factors_before = factors[..count_before].to_vec();
    Ok(runs)
}

/// Returns for each run the median of its functions' self weights relative to their means (Anders and Huber, Genome
/// Biology 11, 2010, R106). The functions are those that make up nine tenths of all weight, at least five.
fn median_levels(joined: &Profile, runs: &RunSums) -> Result<Vec<f64>, Error> {
    let mut rows = tally_profile(joined, GroupBy::Function)?;
    rows.retain(|row| !joined.frames.is_lost(&row.frames));
    let observed = observe_runs(&rows, &joined.frames, runs, GroupBy::Function)?;
    let mut functions: Vec<(f64, Vec<f64>)> = observed
        .into_iter()
        .filter_map(|observations| observations.into_iter().next())
        .map(|one| one.before.into_iter().chain(one.after).collect::<Vec<f64>>())
        .map(|weights| (weights.iter().sum::<f64>() / weights.len() as f64, weights))
        .collect();
    functions.sort_by(|a, b| b.0.total_cmp(&a.0));
    let total: f64 = functions.iter().map(|(mean, _)| mean).sum();
    let mut sum = 0.0;
    let large = functions.iter().position(|(mean, _)| {
        sum += mean;
        sum >= 0.9 * total
    });
    functions.truncate((large.unwrap_or(0) + 1).max(5));
    functions.retain(|(mean, _)| *mean > 0.0);
    let count = runs.before.len() + runs.after.len();
    Ok((0..count).map(|run| median(functions.iter().map(|(mean, weights)| weights[run] / mean).collect())).collect())
}
