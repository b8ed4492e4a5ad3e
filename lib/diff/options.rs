//! Options of a comparison.

use super::scale::{Ratio, Scaling};
use crate::filter::{Rename, Threshold};
use crate::profile::{Weight, Weights};
use crate::stats::sample_weight::WeightOptions;
use crate::tally::GroupBy;

/// Options of a comparison.
#[derive(Debug, Default)]
pub struct Options {
    /// Scaling of the weights before.
    pub scaling: Scaling,
    /// Replace each `0x` address in a frame by `0x...`, so that stacks that differ only in addresses are equal.
    pub strip_hex: bool,
    /// Rules that rename frames, so that stacks that differ only in names are equal.
    pub renames: Vec<Rename>,
    /// Compare names as they are: take no two programs or folders for one.
    pub exact_names: bool,
    /// Pair functions that vanished with new ones that have the same callers, callees and weight.
    pub match_renames: bool,
    /// Smallest difference that is kept: smaller ones are flattened.
    pub min_change: Option<Threshold>,
    /// Flatten differences that are not significant, of functions or of stacks.
    pub significant: Option<GroupBy>,
    /// The options for the kind of weights.
    pub weights: WeightOptions,
}

impl Options {
    /// True if differences are flattened that are small or not significant.
    pub(super) fn flattens(&self) -> bool {
        self.significant.is_some() || self.min_change.is_some()
    }

    /// Returns the factor by which weights before are multiplied. Sides with `median` factors are scaled by their
    /// means.
    pub(super) fn ratio(&self, totals: Weights, runs_before: usize, runs_after: usize, median: f64) -> Ratio {
        match self.scaling {
            Scaling::Runs => Ratio::new(runs_after as u128, runs_before as u128),
            Scaling::Totals => Ratio::new(totals.after.millionths(), totals.before.millionths()),
            Scaling::Factor(factor) => Ratio::new(factor.millionths(), Weight::ONE.millionths()),
            Scaling::Median => {
                let runs = runs_after.max(1) as f64 / runs_before.max(1) as f64;
                Ratio::new((median * runs * 1e9).round() as u128, 1_000_000_000)
            }
        }
    }
}
