//! The weights of stacks on both sides of a comparison, and how much they differ.

use super::judgement::median;
use crate::profile::Weights;

/// Most pairs that are kept.
const MOST_PAIRS: usize = 1024;

/// Samples of a typical stack from which on a verdict hardly depends on the weight of a sample.
pub(super) const MANY_SAMPLES: f64 = 100.0;

/// Part of a weight by which another one differs at most if both are equal.
const EQUAL_PART: f64 = 1e-3;

/// The median of the square of a normally distributed number, relative to its mean.
const MEDIAN_OF_SQUARES: f64 = 0.455;

/// Spreads of counts in units of one sample: independent samples have 1, periods that hardly vary much less.
const COUNTS: std::ops::RangeInclusive<f64> = 0.05..=4.0;

/// Fewest stacks by whose differences periods are judged: of two of 20 samples each, both may happen to differ little.
pub(super) const FEWEST_SPREADS: usize = 4;

/// The weights of the first stacks before and after, in millionths.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs(Vec<[f64; 2]>);

impl Pairs {
    pub(super) fn add(&mut self, weights: Weights) {
        let pair = [weights.before, weights.after].map(|weight| weight.millionths() as f64);
        if pair != [0.0, 0.0] && self.0.len() < MOST_PAIRS {
            self.0.push(pair);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.0.extend(&other.0[..other.0.len().min(MOST_PAIRS - self.0.len())]);
    }

    /// True if most weights differ as little between the sides as those of many samples each do, given that of a typical stack,
    /// and at least `fewest` differ. Then it hardly matters what exactly a sample weighs
    /// ([`EFFECTIVE_SAMPLES_PER_RUN`](super::judgement::EFFECTIVE_SAMPLES_PER_RUN)).
    pub(super) fn vary_little(&self, typical: u128, fewest: usize) -> bool {
        // Of equal weights nothing can be learned: each may be one sample of an event with a fixed period.
        let spreads = self.spreads(|weight| EQUAL_PART * weight);
        let spread = spreads.get(spreads.len().saturating_sub(1) / 2).map(|median| median / MEDIAN_OF_SQUARES);
        spreads.len() >= fewest && spread.is_some_and(|spread| spread * MANY_SAMPLES < typical as f64)
    }

    /// True if the weights of most stacks differ between the sides as numbers of samples of this weight do, and [`FEWEST_SPREADS`]
    /// differ.
    pub(super) fn vary_as_counts(&self, sample: u128) -> bool {
        self.spread_in_samples(sample).is_some_and(|spread| COUNTS.contains(&spread))
    }

    /// True if they differ much less.
    pub(super) fn vary_less_than_counts(&self, sample: u128) -> bool {
        self.spread_in_samples(sample).is_some_and(|spread| spread < *COUNTS.start())
    }

    fn spread_in_samples(&self, sample: u128) -> Option<f64> {
        let sample = sample as f64;
        let spreads = self.spreads(|_| sample);
        let median = spreads.get(spreads.len() / 2).filter(|_| spreads.len() >= FEWEST_SPREADS)?;
        Some(median / MEDIAN_OF_SQUARES / sample)
    }

    /// Returns the spread of each stack whose weights differ by at least `least` of the larger one, the smallest spread first: the
    /// square of the difference, divided by the sum. Its mean is about the weight of a sample, or more if the program varies.
    fn spreads(&self, least: impl Fn(f64) -> f64) -> Vec<f64> {
        let of_both = self.0.iter().filter(|[before, after]| *before > 0.0 && *after > 0.0);
        // One of the sides may be longer, or scaled.
        let scale = median(of_both.map(|[before, after]| after / before).collect());
        let spreads = self.0.iter().filter(|_| scale > 0.0).filter_map(|[before, after]| {
            let before = before * scale;
            let is_equal = (after - before).abs() < least(after.max(before));
            (!is_equal).then(|| (after - before).powi(2) / (after + scale * before))
        });
        let mut spreads: Vec<f64> = spreads.collect();
        spreads.sort_unstable_by(f64::total_cmp);
        spreads
    }
}
