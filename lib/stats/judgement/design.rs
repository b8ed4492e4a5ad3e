//! The runs of a comparison, and the weights of its rows in them.

use super::mean;
use crate::stats::sample_weight::WeightKind;

/// Weights of a row in each run, scaled so that equal work has equal weight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Weight in each run before.
    pub before: Vec<f64>,
    /// Weight in each run after.
    pub after: Vec<f64>,
}

impl Observation {
    /// Adds another row, run by run.
    pub fn add(&mut self, other: &Self) {
        self.before.iter_mut().zip(&other.before).for_each(|(sum, weight)| *sum += weight);
        self.after.iter_mut().zip(&other.after).for_each(|(sum, weight)| *sum += weight);
    }

    /// Returns the weights without those of another row, which is part of this one.
    pub fn without(&self, part: &Self) -> Self {
        Self { before: subtract(&self.before, &part.before), after: subtract(&self.after, &part.after) }
    }

    /// True if runs of one side differ.
    pub(super) fn varies(&self) -> bool {
        [&self.before, &self.after].iter().any(|runs| runs.windows(2).any(|pair| pair[0] != pair[1]))
    }

    /// Returns the mean of each side.
    pub(super) fn means(&self) -> (f64, f64) {
        (mean(&self.before), mean(&self.after))
    }

    /// Returns the mean of all runs.
    pub(super) fn mean(&self) -> f64 {
        let runs = (self.before.len() + self.after.len()) as f64;
        (self.before.iter().sum::<f64>() + self.after.iter().sum::<f64>()) / runs
    }
}

fn subtract(whole: &[f64], part: &[f64]) -> Vec<f64> {
    whole.iter().zip(part).map(|(whole, part)| whole - part).collect()
}

/// The noise of weights that comes from counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// The weights are samples, and vary as counts do.
    Samples,
    /// The weights are exact, and vary only if the program does.
    Exact,
    /// The weights are durations or sizes, which vary in a way that only several runs show.
    Unknown,
}

/// Runs of a comparison.
#[derive(Clone, Debug)]
pub struct Design {
    /// Noise of the weights.
    pub counting: Counting,
    /// Weight of one sample in each run before, scaled as the observations are.
    pub before: Vec<f64>,
    /// Weight of one sample in each run after, scaled as the observations are.
    pub after: Vec<f64>,
    /// The durations of each stack, from which the spread is learned in place of functions: blocked threads have called the
    /// kernel from few of them.
    pub stacks: Option<Vec<Observation>>,
}

impl Design {
    /// Returns the design of two sides of one run each, or of sums of runs.
    pub fn of_sums(kind: WeightKind, scale_before: f64) -> Self {
        let (counting, sample) = kind.counting(true);
        Self { counting, before: vec![sample * scale_before], after: vec![sample], stacks: None }
    }

    /// True if there is one run a side.
    pub fn is_single(&self) -> bool {
        self.before.len() <= 1 && self.after.len() <= 1
    }

    /// True if the weights can be judged: one run of a side does not show how durations vary.
    pub fn can_judge(&self) -> bool {
        self.counting != Counting::Unknown || self.before.len().min(self.after.len()) > 1
    }
}
