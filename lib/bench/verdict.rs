//! The judgement of a benchmark's runs.

use std::path::Path;

use serde_json::{Value, json};

use super::folder::profile_path;
use super::recorder::VALUE;
use super::{Options, Side};
use crate::Error;
use crate::csv::{Counts, GroupBy, count_runs};
use crate::diagnostics::{Diagnostics, plural};
use crate::diff::{self, ComparedRuns, compare_runs};
use crate::filter::Rename;
use crate::folded;
use crate::input::Source;
use crate::markers::LOST;
use crate::profile::Profile;
use crate::stats::sample_weight::WeightKind;

/// Steps by which the largest possible growth is found, each half as large as the one before.
const BISECTIONS: usize = 12;

/// Number of bytes that the kernel keeps of a thread's name.
const THREAD_NAME: usize = 15;

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
}

impl Change {
    fn to_json(&self) -> Value {
        json!({
            "function": String::from_utf8_lossy(&self.function),
            "weight": if self.is_inclusive { "inclusive" } else { "self" },
            "before": self.weights.0,
            "after": self.weights.1,
            "growth_percent": self.growth,
            "chance": self.chance,
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
}

impl Verdict {
    /// Judges the profiles of the first pairs at this significance level.
    pub(super) fn new(options: &Options, pairs: u32, level: f64, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let compared = compare(options, pairs, diagnostics)?;
        let kind = compared.weight_kind.describe();
        diagnostics.note(&format!("judged after {}, at {level:.4}; {kind}", plural(pairs.into(), "pair")));
        let counts = count_runs(compared, GroupBy::Function)?;
        let runs = f64::from(pairs);
        let totals = (counts.total.before.as_f64() / runs, counts.total.after.as_f64() / runs);
        let changes = find_changes(&counts, runs, totals.0, level);
        let possible_growth = find_possible_growth(&counts, totals.0, level);
        Ok(Self { pairs, totals, changes, possible_growth, min_growth: options.min_growth })
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
            None => format!(
                "no growth of {limit}% or more found in {all}; growth of up to {:.1}% is possible",
                self.possible_growth
            ),
        }
    }
}

/// True if the weights of the first pairs are exact counts.
pub(super) fn is_exact(options: &Options, pairs: u32) -> bool {
    let compared = compare(options, pairs, &mut Diagnostics::silent());
    compared.is_ok_and(|compared| compared.weight_kind == WeightKind::Exact)
}

fn compare(options: &Options, pairs: u32, diagnostics: &mut Diagnostics) -> Result<ComparedRuns, Error> {
    let mut read = |side: Side| -> Result<Vec<Profile>, Error> {
        let sources: Vec<Source> =
            (1..=pairs).map(|number| Source::File(profile_path(&options.folder, side, number))).collect();
        folded::read_profiles(&sources, diagnostics)
    };
    let (before, after) = (read(Side::Before)?, read(Side::After)?);
    let renames = match_programs(&options.commands.before, &options.commands.after);
    let mut weights = options.weights;
    weights.measured = before.iter().chain(&after).all(is_number);
    compare_runs(before, after, &diff::Options { weights, renames, ..diff::Options::default() })
}

/// Returns the renames by which the program before has the name of the one after: it is the first frame of each stack,
/// and in the frames of unknown functions.
fn match_programs(before: &str, after: &str) -> Vec<Rename> {
    let (Some(before), Some(after)) = (program_name(before), program_name(after)) else { return Vec::new() };
    if before == after {
        return Vec::new();
    }
    let threads = [&before, &after].map(|name| name.chars().take(THREAD_NAME).collect::<String>());
    let rules = [
        format!("^{}$={}", escape_pattern(&threads[0]), escape_replacement(&threads[1])),
        format!("^\\[{}\\]$=[{}]", escape_pattern(&before), escape_replacement(&after)),
    ];
    rules.iter().filter_map(|rule| rule.parse().ok()).collect()
}

/// True if a profile is the number that a measurement wrote.
fn is_number(profile: &Profile) -> bool {
    profile.frames.iter().all(|(_, name)| name == VALUE)
}

/// Returns a text as a regular expression in a rename rule.
fn escape_pattern(text: &str) -> String {
    regex::escape(text).replace('=', "\\=")
}

/// Returns a text as the replacement in a rename rule.
fn escape_replacement(text: &str) -> String {
    text.replace('$', "$$").replace('=', "\\=")
}

/// Returns the file name of the program that a shell command runs first.
fn program_name(command: &str) -> Option<String> {
    let word = command.split_whitespace().find(|word| !word.contains('='))?;
    Some(Path::new(word).file_name()?.to_string_lossy().into_owned())
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
            let is_excluded = |percent: f64| {
                judgement.growth_p_value(observation, observations.first(), percent / 100.0 * total) <= level
            };
            if is_excluded(possible) {
                continue;
            }
            let (mut low, mut high) = (possible, f64::max(1.0, 2.0 * possible));
            while !is_excluded(high) && high < 1e4 {
                (low, high) = (high, 2.0 * high);
            }
            for _ in 0..BISECTIONS {
                let middle = (low + high) / 2.0;
                (low, high) = if is_excluded(middle) { (low, middle) } else { (middle, high) };
            }
            possible = high;
        }
    }
    possible
}

#[cfg(test)]
mod tests {
    use super::{match_programs, program_name};
    use crate::filter::rename::apply_all;

    #[test]
    fn matches_programs_of_different_names() {
        assert_eq!(program_name("A=1 ../old/app.v1 --x y=2").as_deref(), Some("app.v1"));
        let rules = match_programs("./app.v1 x", "bin/app.v2-with-long-name");
        assert_eq!(&*apply_all(&rules, b"app.v1"), b"app.v2-with-lon");
        assert_eq!(&*apply_all(&rules, b"[app.v1]"), b"[app.v2-with-long-name]");
        assert_eq!(&*apply_all(&rules, b"appxv1"), b"appxv1");
        assert!(match_programs("a/x", "b/x").is_empty());
    }
}
