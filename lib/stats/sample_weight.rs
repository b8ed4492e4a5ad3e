//! The weight of one sample, and the kind of a profile's weights: the one rule for all programs.

use super::judgement::Counting;
use super::weight_pairs::{FEWEST_SPREADS, MANY_SAMPLES, Pairs};
use super::weight_sizes::Sizes;
use crate::markers::{MEASURED_VALUE, is_thread_state};
use crate::profile::{Frames, Weight, Weights};

/// Fewest weights, and least multiple of their common divisor that all of them are, for weights that may be durations.
const ENOUGH: u128 = 20;

/// Half of all weights are at least this multiple of their common divisor, if they may be periods or durations.
const LARGE: u128 = 1000;

/// The same of fewer than [`ENOUGH`] weights, which may be large numbers of samples.
const LARGE_OF_FEW: u128 = 20_000;

/// Weights vary, as periods do, if half of them are at least this multiple of their common divisor. So many samples of one stack
/// would take five minutes at 1000 Hz.
const VARYING: u128 = 300_000;

/// Fewest samples of a side by which varying weights are judged. Of fewer, one is taken to weigh as much as stacks with half of the
/// total at most: with 60, halves of a recording of 58 samples differed in 7 of 12 comparisons.
const FEWEST_PERIODS: u128 = 100;

/// Least weight, in units, of a stack that two sampled runs give the same weight by chance in less than 1 % of cases.
const TELLING: u128 = 1000;

/// Least total of exact counts: sampled for a quarter of an hour at 1000 Hz.
const EXACT_TOTAL: u128 = 1_000_000;

/// Names of units of time.
const TIME_UNITS: &str = "\
    ns nsec nsecs nanosecond nanoseconds us µs μs usec usecs microsecond microseconds ms msec msecs millisecond milliseconds \
    s sec secs second seconds min minute minutes h hour hours";

/// Kind of a profile's weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightKind {
    /// Samples, each of this weight.
    Samples(Weight),
    /// Probably large numbers of samples, each of this weight; possibly periods or durations.
    LargeCounts(Weight),
    /// Probably samples, of which one is taken to weigh so much; possibly periods or durations.
    LikelySamples(Weight),
    /// Samples whose weights vary, of which one is taken to weigh so much: periods of an event.
    Periods(Weight),
    /// Exact counts, such as instructions in a simulator: any difference is real.
    Exact,
    /// Durations, as leaves that are thread states show.
    #[default]
    Durations,
}

impl WeightKind {
    /// Returns the noise of the weights, and the weight of one sample. With several runs a side, the spread from run to
    /// run says more than a doubtful weight of a sample.
    pub fn counting(self, is_single: bool) -> (Counting, f64) {
        match self {
            Self::Samples(sample) | Self::LargeCounts(sample) => (Counting::Samples, sample.as_f64()),
            Self::LikelySamples(sample) | Self::Periods(sample) if is_single => (Counting::Samples, sample.as_f64()),
            Self::LikelySamples(_) | Self::Periods(_) | Self::Durations => (Counting::Unknown, 1.0),
            Self::Exact => (Counting::Exact, 1.0),
        }
    }

    /// Describes what a weight is taken for.
    pub fn describe(self) -> String {
        match self {
            Self::Samples(sample) => format!("one sample weighs {sample}"),
            Self::LargeCounts(sample) | Self::LikelySamples(sample) => format!("one sample is taken to weigh {sample}"),
            Self::Periods(sample) => format!("weights of samples vary; one is taken to weigh {sample}"),
            Self::Exact => "weights are exact counts".to_owned(),
            Self::Durations => "weights are durations".to_owned(),
        }
    }

    /// Returns why differences cannot be judged, if that is so. `is_single` is true if a side has only one run.
    pub fn caveat(self, is_single: bool) -> Option<&'static str> {
        match self {
            Self::Durations if is_single => Some(
                "the weights are durations, and one run of a side does not show how much they vary; compare several runs \
                 per side with --before and --after, or give the weight of one sample with --per-sample",
            ),
            _ => None,
        }
    }
}

/// The options of the command line about the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightOptions {
    /// Weight of one sample.
    pub per_sample: Option<Weight>,
    /// True if the weights are exact counts.
    pub exact: bool,
    /// True if the unit of the weights is one of time: they are durations, unless they have a common divisor that is too large for
    /// the steps of a clock, as multiples of a sample's weight have, or `per_sample` or `exact` says otherwise.
    pub is_of_time: bool,
}

impl WeightOptions {
    /// Returns the options for weights of a unit that the user has named.
    #[must_use]
    pub fn with_unit(self, unit: Option<&str>) -> Self {
        let is_of_time = |unit: &str| TIME_UNITS.split_whitespace().any(|name| unit.eq_ignore_ascii_case(name));
        Self { is_of_time: self.is_of_time || unit.is_some_and(is_of_time), ..self }
    }
}

/// Statistics of the weights of stacks, from which their kind follows.
#[derive(Clone, Debug)]
pub struct WeightSurvey {
    divisor: u128,
    smallest: u128,
    /// The same of the weights before, which may be scaled.
    divisor_before: u128,
    smallest_before: u128,
    pub(super) total: u128,
    pub(super) total_before: u128,
    sizes: Sizes,
    /// Weights before, which may be scaled.
    sizes_before: Sizes,
    /// True if a stack has not the same weight on both sides.
    pub(super) has_difference: bool,
    /// Number of stacks with a large weight, and of those that weigh the same on both sides.
    large: u64,
    equal: u64,
    /// The weights of stacks before and after.
    pairs: Pairs,
}

impl Default for WeightSurvey {
    fn default() -> Self {
        Self {
            divisor: 0,
            smallest: u128::MAX,
            divisor_before: 0,
            smallest_before: u128::MAX,
            total: 0,
            total_before: 0,
            sizes: Sizes::default(),
            sizes_before: Sizes::default(),
            has_difference: false,
            large: 0,
            equal: 0,
            pairs: Pairs::default(),
        }
    }
}

impl WeightSurvey {
    /// Adds the weight of a stack in one run.
    pub fn add(&mut self, weight: Weight) {
        let weight = weight.millionths();
        if weight == 0 {
            return;
        }
        self.divisor = common_divisor(self.divisor, weight);
        self.smallest = self.smallest.min(weight);
        self.total = self.total.saturating_add(weight);
        self.sizes.add(weight);
    }

    /// Adds the weights of a stack on both sides. Those before may be scaled.
    pub fn add_sides(&mut self, weights: Weights) {
        self.add(weights.after);
        let before = weights.before.millionths();
        if before > 0 {
            self.divisor_before = common_divisor(self.divisor_before, before);
            self.smallest_before = self.smallest_before.min(before);
            self.sizes_before.add(before);
            self.total_before = self.total_before.saturating_add(before);
        }
        self.has_difference |= weights.before != weights.after;
        self.compare(weights);
    }

    /// Compares the weights of a stack on both sides, of which neither is scaled.
    pub fn compare(&mut self, weights: Weights) {
        let larger = weights.before.max(weights.after).millionths();
        if larger >= TELLING * Weight::ONE.millionths() {
            self.large += 1;
            self.equal += u64::from(weights.before == weights.after);
        }
        self.pairs.add(weights);
    }

    /// Adds the weights that were added to another survey.
    pub fn merge(&mut self, other: &Self) {
        self.divisor = common_divisor(self.divisor, other.divisor);
        self.smallest = self.smallest.min(other.smallest);
        self.divisor_before = common_divisor(self.divisor_before, other.divisor_before);
        self.smallest_before = self.smallest_before.min(other.smallest_before);
        self.total = self.total.saturating_add(other.total);
        self.total_before = self.total_before.saturating_add(other.total_before);
        self.sizes.merge(&other.sizes);
        self.sizes_before.merge(&other.sizes_before);
        self.has_difference |= other.has_difference;
        self.large += other.large;
        self.equal += other.equal;
        self.pairs.merge(&other.pairs);
    }

    /// Returns the kind of the weights. `frames` has the frames of their stacks: thread states among them show that the
    /// weights are durations, and so may be the numbers of a measurement ([`MEASURED_VALUE`]).
    ///
    /// The weight of one sample is the greatest common divisor of all weights. If they are too large for that, and few are
    /// small, they are periods that vary, or may be, unless they differ between the sides as little as numbers of samples do.
    /// Counts are exact if they are whole numbers, large, and mostly the same on both sides, as samples never are.
    pub fn kind(&self, frames: &Frames, options: WeightOptions) -> WeightKind {
        if options.exact {
            return WeightKind::Exact;
        }
        if let Some(sample) = options.per_sample {
            return WeightKind::Samples(sample);
        }
        if are_measured_values(frames) || frames.iter().any(|(_, name)| is_thread_state(name)) {
            return WeightKind::Durations;
        }
        if self.are_exact() {
            return WeightKind::Exact;
        }
        let (divisor, smallest) = self.divisor_and_smallest();
        if options.is_of_time && divisor < LARGE * Weight::ONE.millionths() {
            return WeightKind::Durations;
        }
        let sizes = self.comparable_sizes();
        let sample = Weight::from_millionths(divisor);
        let are_few = u128::from(self.sizes.count()) < ENOUGH;
        let typical = sizes.quantile(2) / divisor;
        let are_large = typical >= LARGE && sizes.are_few_below(ENOUGH * divisor);
        if !are_large && smallest / divisor < ENOUGH {
            return WeightKind::Samples(sample);
        }
        let vary_little = |fewest| self.pairs.vary_little(typical * divisor, fewest);
        let period = || match are_large {
            true => Weight::from_millionths(self.typical_period(&sizes)),
            false => Weight::from_millionths(smallest),
        };
        match typical {
            VARYING.. if vary_little(FEWEST_SPREADS) => {
                WeightKind::Periods(period().min(Weight::from_millionths(typical * divisor / MANY_SAMPLES as u128)))
            }
            VARYING.. => WeightKind::Periods(period()),
            _ if self.pairs.are_proven_counts(divisor) => WeightKind::Samples(sample),
            _ if self.pairs.vary_as_counts(divisor) || are_few && typical < LARGE_OF_FEW || vary_little(1) => {
                WeightKind::LargeCounts(sample)
            }
            _ => WeightKind::LikelySamples(period()),
        }
    }

    /// Returns the weight that is taken for that of one sample if samples have several.
    fn typical_period(&self, sizes: &Sizes) -> u128 {
        let period = sizes.light().max(1);
        let lesser = if self.total_before > 0 { self.total.min(self.total_before) } else { self.total };
        let period = if lesser / period < FEWEST_PERIODS { sizes.quantile_by_weight(0.5).max(period) } else { period };
        let one = Weight::ONE.millionths();
        if period < one { period } else { period / one * one }
    }

    /// Returns the sizes of the weights after and, unless they are scaled, of those before.
    fn comparable_sizes(&self) -> Sizes {
        let mut sizes = self.sizes.clone();
        if self.is_before_comparable() {
            sizes.merge(&self.sizes_before);
        }
        sizes
    }

    /// True unless weights before are fractions, as scaled ones are.
    fn is_before_comparable(&self) -> bool {
        self.divisor_before.is_multiple_of(Weight::ONE.millionths())
    }

    /// Returns the common divisor of all weights, and the smallest weight. Weights before that are fractions were scaled, and
    /// do not count.
    fn divisor_and_smallest(&self) -> (u128, u128) {
        match self.is_before_comparable() {
            true => (common_divisor(self.divisor, self.divisor_before).max(1), self.smallest.min(self.smallest_before)),
            false => (self.divisor.max(1), self.smallest),
        }
    }

    fn are_exact(&self) -> bool {
        let one = Weight::ONE.millionths();
        self.divisor.is_multiple_of(one)
            && self.divisor < ENOUGH * one
            && self.total >= EXACT_TOTAL * one
            && self.equal >= 2
            && 2 * self.equal >= self.large
            && self.equal < self.large
    }

    /// Returns the factor by which weights before were scaled up, as far as their smallest tell: 1 unless they are much
    /// larger than those after.
    pub fn scale_before(&self) -> f64 {
        if u128::from(self.sizes.count().min(self.sizes_before.count())) < ENOUGH {
            return 1.0;
        }
        let scale = self.sizes_before.quantile(10) as f64 / self.sizes.quantile(10).max(1) as f64;
        if scale >= 3.0 { scale } else { 1.0 }
    }
}

/// True if all frames are the name of a measurement, and there is one.
fn are_measured_values(frames: &Frames) -> bool {
    frames.iter().next().is_some() && frames.iter().all(|(_, name)| name == MEASURED_VALUE)
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
