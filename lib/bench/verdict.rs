//! The judgement of a benchmark's runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::folder::profile_path;
use super::{Options, RunWarning, Side};
use crate::Error;
use crate::csv::{Counts, GroupBy, count_runs};
use crate::diagnostics::{Diagnostics, plural};
use crate::diff::{self, CommonRuns, ComparedRuns, Counterparts, OneSidedFunction, compare_runs};
use crate::folded;
use crate::input::Source;
use crate::markers::LOST;

use crate::stats::distributions::student_p_value;
use crate::stats::judgement::Observation;
use crate::stats::sample_weight::WeightKind;
use crate::tally::is_significant;

/// Steps by which the largest possible growth is found, each half as large as the one before.
const BISECTIONS: usize = 12;

/// Above this percentage, the largest possible growth is not said: too few runs show nothing.
pub(super) const LARGEST_POSSIBLE: f64 = 1000.0;

/// A function whose weight differs significantly.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Name of the function.
    pub function: Vec<u8>,
    /// True for inclusive weight, false for self weight.
    pub is_inclusive: bool,
    /// Mean weight of a run before and after.
    pub weights: (f64, f64),
    /// Growth in percent of all weight before.
    pub growth: f64,
    /// The probability that noise alone causes the change, adjusted for the number of functions.
    pub chance: f64,
    /// Functions of one side only, whose self weight counts for this one.
    pub charged: Vec<OneSidedFunction>,
}

impl Change {
    /// Returns the functions whose self weight counts for this one, and that are new, or gone.
    pub fn charged_names(&self, is_new: bool) -> Vec<String> {
        let functions = self.charged.iter().filter(|function| function.is_new == is_new);
        functions.map(|function| String::from_utf8_lossy(&function.name).into_owned()).collect()
    }

    fn to_json(&self) -> Value {
        json!({
            "function": String::from_utf8_lossy(&self.function),
            "weight": if self.is_inclusive { "inclusive" } else { "self" },
            "before": self.weights.0,
            "after": self.weights.1,
            "growth_percent": self.growth,
            "chance": self.chance,
            "new": self.charged_names(true),
            "gone": self.charged_names(false),
        })
    }
}

/// The result of a benchmark.
#[derive(Debug)]
pub struct Verdict {
    /// Number of pairs of runs.
    pub pairs: u32,
    /// Mean total weight of a run before and after.
    pub totals: (f64, f64),
    /// Significant changes, self weights first, the largest first.
    pub changes: Vec<Change>,
    /// Growth of any function below this is possible, in percent of all weight before.
    pub possible_growth: f64,
    /// Growth that matters, in percent of all weight before.
    pub min_growth: f64,
    /// Names before that were compared under another name.
    pub counterparts: Counterparts,
    /// Time from the start to the end of runs, if they were recorded.
    pub elapsed: Option<Elapsed>,
    /// Warnings about the recordings.
    pub warnings: Vec<RunWarning>,
}

/// Time from the start to the end of the commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// Mean seconds of a run before and after.
    pub seconds: (f64, f64),
    /// The probability that noise alone causes the difference.
    pub chance: f64,
}

impl Elapsed {
    /// Judges the seconds of pairs of runs by Student's t of their differences.
    pub(super) fn new(pairs: &[(f64, f64)]) -> Self {
        let count = pairs.len() as f64;
        let before = pairs.iter().map(|pair| pair.0).sum::<f64>() / count;
        let after = pairs.iter().map(|pair| pair.1).sum::<f64>() / count;
        let difference = after - before;
        let squares = pairs.iter().map(|pair| (pair.1 - pair.0 - difference).powi(2)).sum::<f64>();
        let square = difference.powi(2) * count * (count - 1.0) / squares;
        let chance = if square.is_nan() { 1.0 } else { student_p_value(square, count - 1.0) };
        Self { seconds: (before, after), chance }
    }

    /// Returns the growth in percent.
    pub fn growth(&self) -> f64 {
        100.0 * (self.seconds.1 / self.seconds.0 - 1.0)
    }

    fn to_json(self) -> Value {
        json!({ "before": self.seconds.0, "after": self.seconds.1, "growth_percent": self.growth(), "chance": self.chance })
    }
}

impl Verdict {
    /// Judges the profiles of the first pairs at this significance level.
    pub(super) fn new(options: &Options, pairs: u32, level: f64, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let mut compared = compare(options, pairs, diagnostics)?;
        let counterparts = std::mem::take(&mut compared.counterparts);
        let kind = compared.weight_kind.describe();
        diagnostics.note(&format!("judged after {}, at {level:.4}; {kind}", plural(pairs.into(), "pair")));
        let (counts, charged) = count_common(compared)?;
        let runs = f64::from(pairs);
        let totals = (counts.total.before.as_f64() / runs, counts.total.after.as_f64() / runs);
        let mut changes = find_changes(&counts, runs, totals.0, level);
        for change in changes.iter_mut().filter(|change| !change.is_inclusive) {
            change.charged = charged.get(&change.function).into_iter().flatten().cloned().collect();
        }
        let possible_growth = find_possible_growth(&counts, totals.0, level);
        Ok(Self {
            pairs,
            totals,
            changes,
            possible_growth,
            min_growth: options.min_growth,
            counterparts,
            elapsed: None,
            warnings: Vec::new(),
        })
    }

    /// Returns the changes that matter and are growth.
    pub fn growth(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.growth >= self.min_growth)
    }

    /// True if more runs would not change the verdict.
    pub fn is_decided(&self) -> bool {
        self.growth().next().is_some() || self.possible_growth < self.min_growth
    }

    /// Returns the verdict and all changes as a JSON object.
    pub fn to_json(&self) -> String {
        let verdict = match (self.growth().next(), self.is_decided()) {
            (Some(_), _) => "growth",
            (None, true) => "no growth",
            (None, false) => "undecided",
        };
        let json = json!({
            "verdict": verdict,
            "description": self.describe(),
            "pairs": self.pairs,
            "before": self.totals.0,
            "after": self.totals.1,
            "min_growth_percent": self.min_growth,
            // JSON has no infinity.
            "possible_growth_percent": Some(self.possible_growth).filter(|growth| growth.is_finite()),
            "elapsed_seconds": self.elapsed.map(Elapsed::to_json),
            "warnings": self.warnings.iter().map(RunWarning::describe).collect::<Vec<_>>(),
            "counterparts": self.counterparts.iter().map(|names| json!([names.before, names.after])).collect::<Vec<_>>(),
            "changes": self.changes.iter().map(Change::to_json).collect::<Vec<_>>(),
        });
        // Serializing strings and numbers does not fail.
        serde_json::to_string_pretty(&json).unwrap_or_default()
    }

    /// Describes the verdict in one line.
    pub fn describe(&self) -> String {
        let (limit, total) = (self.min_growth, 100.0 * (self.totals.1 / self.totals.0 - 1.0));
        let all = format!("{} of runs; all: {total:+.2}%", plural(self.pairs.into(), "pair"));
        match self.growth().next() {
            Some(_) => format!("growth of {limit}% or more in {all}"),
            None if self.is_decided() => format!("no growth of {limit}% or more in {all}"),
            None if self.possible_growth < LARGEST_POSSIBLE => format!(
                "undecided: no growth of {limit}% or more found in {all}, but up to {:.1}% is possible",
                self.possible_growth
            ),
            None => format!("undecided: no growth of {limit}% or more found in {all}, but any growth is possible"),
        }
    }

    /// True if runs took longer, but what is measured did not grow: they waited.
    pub fn has_longer_waits(&self) -> bool {
        let longer = self.elapsed.filter(|elapsed| is_significant(elapsed.chance));
        self.growth().next().is_none() && longer.is_some_and(|elapsed| elapsed.growth() >= self.min_growth)
    }
}

/// True if the weights of the first pairs are exact counts.
pub(super) fn is_exact(options: &Options, pairs: u32) -> bool {
    let compared = compare(options, pairs, &mut Diagnostics::silent());
    compared.is_ok_and(|compared| compared.weight_kind == WeightKind::Exact)
}

/// Compares the runs of the first pairs under the names after.
fn compare(options: &Options, pairs: u32, diagnostics: &mut Diagnostics) -> Result<ComparedRuns, Error> {
    let before = folded::read_profiles(&profiles(options, Side::Before, pairs), diagnostics)?;
    let after = folded::read_profiles(&profiles(options, Side::After, pairs), diagnostics)?;
    let (weights, exact_names) = (options.weights, options.exact_names);
    compare_runs(before, after, &diff::Options { weights, exact_names, ..diff::Options::default() })
}

/// Returns the files of the first runs of a side.
fn profiles(options: &Options, side: Side, runs: u32) -> Vec<Source> {
    (1..=runs).map(|number| Source::File(profile_path(&options.folder, side, number))).collect()
}

/// Functions of one side only, by the function that their self weights count for.
type Charged = BTreeMap<Vec<u8>, BTreeSet<OneSidedFunction>>;

/// Counts the functions that both sides have, and returns what is charged to them. They are judged as part of all functions, as
/// fg-check judges them.
fn count_common(compared: ComparedRuns) -> Result<(Counts, Charged), Error> {
    let Some(CommonRuns { compared: common, charged }) = compared.common()? else {
        return Ok((count_runs(compared, GroupBy::Function)?, Charged::new()));
    };
    let mut counts = count_runs(common, GroupBy::Function)?;
    let all = count_runs(compared, GroupBy::Function)?;
    let names = all.rows.iter().map(|row| all.frames.name(row.frames[0]));
    let own: BTreeMap<&[u8], &Observation> =
        names.zip(&all.observations).filter_map(|(name, own)| Some((name, own.first()?))).collect();
    let chances = all.judgement.as_ref().map(|all| {
        all.chances_as_parts(&counts.rows, &counts.frames, &counts.observations, |function| {
            own.get(counts.frames.name(function)).copied()
        })
    });
    counts.chances = chances;
    counts.judgement = all.judgement;
    Ok((counts, charged))
}

fn find_changes(counts: &Counts, runs: f64, total: f64, level: f64) -> Vec<Change> {
    let Some(chances) = &counts.chances else { return Vec::new() };
    let mut changes = Vec::new();
    for (row, chances) in counts.rows.iter().zip(chances) {
        let first = chances.iter().position(|chance| *chance <= level);
        let Some(which) = first else { continue };
        let weights = row.weights[which];
        let weights = (weights.before.as_f64() / runs, weights.after.as_f64() / runs);
        changes.push(Change {
            function: counts.frames.name(row.frames[0]).to_vec(),
            is_inclusive: which == 1,
            weights,
            growth: 100.0 * (weights.1 - weights.0) / total,
            chance: chances[which],
            charged: Vec::new(),
        });
    }
    changes.sort_by(|a, b| {
        let by_growth = b.growth.abs().total_cmp(&a.growth.abs());
        a.is_inclusive.cmp(&b.is_inclusive).then(by_growth).then_with(|| a.function.cmp(&b.function))
    });
    changes
}

/// Returns the largest growth of any function that cannot be excluded at this level, in percent of all weight before.
fn find_possible_growth(counts: &Counts, total: f64, level: f64) -> f64 {
    let Some(judgement) = &counts.judgement else { return f64::INFINITY };
    let mut possible = 0.0;
    for (row, observations) in counts.rows.iter().zip(&counts.observations) {
        if row.frames.len() == 1 && counts.frames.name(row.frames[0]) == LOST {
            continue;
        }
        for observation in observations {
            possible = largest_not_excluded(possible, |percent| {
                judgement.growth_p_value(observation, observations.first(), percent / 100.0 * total) <= level
            });
        }
    }
    possible
}

/// Returns the largest percentage that is not excluded, or `least` if that is excluded.
fn largest_not_excluded(least: f64, is_excluded: impl Fn(f64) -> bool) -> f64 {
    if is_excluded(least) {
        return least;
    }
    let (mut low, mut high) = (least, f64::max(1.0, 2.0 * least));
    while !is_excluded(high) && high < 1e4 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        (low, high) = if is_excluded(middle) { (low, middle) } else { (middle, high) };
    }
    high
}

#[cfg(test)]
mod tests {
    use super::Elapsed;

    #[test]
    fn judges_elapsed_time_by_the_differences_of_pairs() {
        let longer = Elapsed::new(&[(1.0, 1.5), (1.2, 1.71), (0.9, 1.39)]);
        assert!(longer.chance < 0.01 && (longer.growth() - 48.387).abs() < 0.01, "{longer:?}");
        assert!(Elapsed::new(&[(1.0, 1.3), (1.2, 1.0), (1.1, 1.2)]).chance > 0.3);
        assert_eq!(Elapsed::new(&[(1.0, 1.0), (1.0, 1.0)]).chance, 1.0);
    }
}
