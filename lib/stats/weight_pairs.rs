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

/// The same of weights that are proven to be counts.
const PROVEN_COUNTS: std::ops::RangeInclusive<f64> = 0.4..=2.5;

/// Fewest stacks that differ by which weights are proven to be counts.
const FEWEST_OF_PROOF: usize = 20;

/// Least logarithm of the likelihood that the spread is the same for all sizes, relative to that it is proportional to them: 150 times.
const MIN_PROOF: f64 = 5.0;

/// The mean of the square of a normally distributed number without the largest tenth of the squares, relative to the mean of all.
const MEAN_OF_MOST_SQUARES: f64 = 0.623;

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

    /// True if they cannot be durations that vary by a part of their size: [`FEWEST_OF_PROOF`] stacks differ, as numbers of samples
    /// do, and the spread does not grow with their size. Two runs whose stacks are all about equally heavy prove nothing.
    pub(super) fn are_proven_counts(&self, sample: u128) -> bool {
        let sample = sample as f64;
        let mut differing = self.differing(|_| sample);
        if differing.len() < FEWEST_OF_PROOF {
            return false;
        }
        differing.sort_unstable_by(|one, other| one.spread.total_cmp(&other.spread));
        // Some have grown or shrunk, or vary more than others, which one of them must not hide.
        let [most, fewer] = [10, 4].map(|part| Likelihoods::of(&differing[..differing.len() - differing.len() / part]));
        PROVEN_COUNTS.contains(&(most.spread / MEAN_OF_MOST_SQUARES / sample))
            && most.log_ratio.min(fewer.log_ratio) >= MIN_PROOF
    }

    fn spread_in_samples(&self, sample: u128) -> Option<f64> {
        let sample = sample as f64;
        let spreads = self.spreads(|_| sample);
        let median = spreads.get(spreads.len() / 2).filter(|_| spreads.len() >= FEWEST_SPREADS)?;
        Some(median / MEDIAN_OF_SQUARES / sample)
    }

    /// Returns the spread of each stack whose weights differ by at least `least` of the larger one, the smallest spread first.
    fn spreads(&self, least: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut spreads: Vec<f64> = self.differing(least).into_iter().map(|stack| stack.spread).collect();
        spreads.sort_unstable_by(f64::total_cmp);
        spreads
    }

    /// Returns the stacks whose weights differ by at least `least` of the larger one.
    fn differing(&self, least: impl Fn(f64) -> f64) -> Vec<Differing> {
        let of_both = self.0.iter().filter(|[before, after]| *before > 0.0 && *after > 0.0);
        // One of the sides may be longer, or scaled.
        let scale = median(of_both.map(|[before, after]| after / before).collect());
        let differing = self.0.iter().filter(|_| scale > 0.0).filter_map(|[before, after]| {
            let before = before * scale;
            let is_equal = (after - before).abs() < least(after.max(before));
            let spread = (after - before).powi(2) / (after + scale * before);
            (!is_equal).then_some(Differing { size: after + before, spread })
        });
        differing.collect()
    }
}

/// A stack whose weights differ.
struct Differing {
    size: f64,
    /// The square of the difference, divided by the sum. Its mean is about the weight of a sample, or more if the program varies.
    spread: f64,
}

/// The likelihoods of two models of the differences of stacks: normally distributed numbers of which the spread is the same for all, or
/// proportional to the size.
struct Likelihoods {
    /// The mean of the spreads.
    spread: f64,
    /// The logarithm of the likelihood of the first model, relative to that of the second.
    log_ratio: f64,
}

impl Likelihoods {
    fn of(stacks: &[Differing]) -> Self {
        let mean = |of: &dyn Fn(&Differing) -> f64| stacks.iter().map(of).sum::<f64>() / stacks.len() as f64;
        let spread = mean(&|stack| stack.spread);
        let relative = mean(&|stack| stack.spread / stack.size);
        let log_size = mean(&|stack| stack.size.ln());
        Self { spread, log_ratio: 0.5 * stacks.len() as f64 * (relative.ln() + log_size - spread.ln()) }
    }
}
