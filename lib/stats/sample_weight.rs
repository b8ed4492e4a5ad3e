//! The weight of one sample, and the kind of a profile's weights: the one rule for all programs.

use std::borrow::Cow;

use super::judgement::{Counting, EFFECTIVE_SAMPLES_PER_RUN};
use crate::markers::{MEASURED_VALUE, is_thread_state};
use crate::profile::{Frames, Weight, Weights};

/// Fewest weights, and least multiple of their common divisor that all of them are, for weights that may be durations.
const ENOUGH: u128 = 20;

/// Weights vary, as periods do, if a quarter of them are not below this multiple of their common divisor. So many
/// samples of one stack would take five minutes at 1000 Hz.
const VARYING: u128 = 300_000;

/// Least weight, in units, of a stack that two sampled runs give the same weight by chance in less than 1 % of cases.
const TELLING: u128 = 1000;

/// Least total of exact counts: sampled for a quarter of an hour at 1000 Hz.
const EXACT_TOTAL: u128 = 1_000_000;

/// One run counts as at most [`EFFECTIVE_SAMPLES_PER_RUN`] samples, so with this many times more, it makes no difference for a
/// verdict if a sample weighs less.
const PLENTY_OF_SAMPLES: f64 = 10.0;

/// A warning about a judgement.
pub type Caveat = Cow<'static, str>;

/// Least difference between the shares that two sides lost of which judgements warn. Lost samples count for no function, so that each seems
/// to have less on the side that lost more: of equal programs of which one side lost 2 %, 8 of 20 had a significant function with five
/// runs a side.
const MIN_LOST_DIFFERENCE: f64 = 0.005;

/// Returns a warning about judging two sides with these totals if one lost more of its samples.
pub fn caveat_of_lost(total: Weights, lost: Weights) -> Option<Caveat> {
    let [before, after] = [(lost.before, total.before), (lost.after, total.after)]
        .map(|(lost, total)| if total.is_zero() { 0.0 } else { lost.as_f64() / total.as_f64() });
    ((before - after).abs() >= MIN_LOST_DIFFERENCE).then(|| {
        let (before, after) = (100.0 * before, 100.0 * after);
        format!(
            "{before:.1} % of the weight before and {after:.1} % after was lost, which biases the comparison; -n compares shares of \
             the rest"
        )
        .into()
    })
}

/// Kind of a profile's weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightKind {
    /// Samples, each of this weight.
    Samples(Weight),
    /// Probably samples of this weight or less, possibly durations.
    LikelySamples(Weight),
    /// Samples whose weights vary, of about this weight: periods of an event.
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
            Self::Samples(sample) => (Counting::Samples, sample.as_f64()),
            Self::LikelySamples(sample) | Self::Periods(sample) if is_single => (Counting::Samples, sample.as_f64()),
            Self::LikelySamples(_) | Self::Periods(_) | Self::Durations => (Counting::Unknown, 1.0),
            Self::Exact => (Counting::Exact, 1.0),
        }
    }

    /// Describes what a weight is taken for.
    pub fn describe(self) -> String {
        match self {
            Self::Samples(sample) => format!("one sample weighs {sample}"),
            Self::LikelySamples(sample) => format!("one sample weighs at most {sample}"),
            Self::Periods(sample) => format!("weights of samples vary; one weighs about {sample}"),
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
}

/// Statistics of the weights of stacks, from which their kind follows.
#[derive(Clone, Debug)]
pub struct WeightSurvey {
    divisor: u128,
    smallest: u128,
    /// The same of the weights before, which may be scaled.
    divisor_before: u128,
    smallest_before: u128,
    total: u128,
    total_before: u128,
    sizes: Sizes,
    /// Weights before, which may be scaled.
    sizes_before: Sizes,
    /// True if a stack has not the same weight on both sides.
    has_difference: bool,
    /// Number of stacks with a large weight, and of those that weigh the same on both sides.
    large: u64,
    equal: u64,
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
    }

    /// Returns the kind of the weights. `frames` has the frames of their stacks: thread states among them show that the
    /// weights are durations, and so may be the numbers of a measurement ([`MEASURED_VALUE`]).
    ///
    /// The weight of one sample is the greatest common divisor of all weights. If they are too large for that, a weight
    /// that one in ten does not reach is taken for a sample, because a few may be tiny: perf begins with short periods.
    /// Counts are exact if they are whole numbers, large, and mostly the same on both sides, as samples never are.
    pub fn kind(&self, frames: &Frames, options: WeightOptions) -> WeightKind {
        let (divisor, smallest) = self.divisor_and_smallest();
        let count = self.sizes.count();
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
        if self.sizes.quantile(4) / divisor >= VARYING {
            return WeightKind::Periods(Weight::from_millionths(self.sizes.quantile(10).max(smallest)));
        }
        match u128::from(count) < ENOUGH || smallest / divisor < ENOUGH {
            true => WeightKind::Samples(Weight::from_millionths(divisor)),
            false => WeightKind::LikelySamples(Weight::from_millionths(smallest)),
        }
    }

    /// Returns the common divisor of all weights, and the smallest weight. Weights before that are fractions were scaled, and
    /// do not count.
    fn divisor_and_smallest(&self) -> (u128, u128) {
        match self.divisor_before.is_multiple_of(Weight::ONE.millionths()) {
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

    /// Returns a warning about judging sides of which only the weights are known, if they deserve one.
    ///
    /// `fg-diff -n` makes the totals of both sides equal, which those of two runs hardly ever are. The factor is not
    /// known, and so neither is the weight of one sample before: with it, the verdict may be another.
    pub fn caveat(&self, kind: WeightKind, options: WeightOptions, of_lost: Option<Caveat>) -> Option<Caveat> {
        let is_scaled = self.has_difference && self.total == self.total_before;
        let scaled = "both sides have the same total, as fg-diff -n writes them: the weight of one sample before is not known, and \
                      the verdict may be wrong; give the profiles with --before and --after, and -n";
        if is_scaled { Some(scaled.into()) } else { self.caveat_of_single_runs(kind, options, of_lost) }
    }

    /// Returns a warning about judging sides of one run each, if their weights deserve one: because of their kind, or because their
    /// common divisor is taken for a sample, and the samples are so few that the verdict depends on it; or `of_lost`, the warning about
    /// what was lost.
    pub fn caveat_of_single_runs(
        &self,
        kind: WeightKind,
        options: WeightOptions,
        of_lost: Option<Caveat>,
    ) -> Option<Caveat> {
        let is_derived = options.per_sample.is_none();
        let (WeightKind::Samples(sample) | WeightKind::LikelySamples(sample)) = kind else {
            return kind.caveat(true).map(Caveat::from).or(of_lost);
        };
        if of_lost.is_some() {
            return of_lost;
        }
        let [before, after] = [self.total_before, self.total].map(|total| total / sample.millionths().max(1));
        if matches!(kind, WeightKind::LikelySamples(_)) {
            let text = format!(
                "one sample is taken to weigh at most {sample} (the smallest weight), unless --per-sample says otherwise: at \
                 least {before} samples before, {after} after; if the weights are durations, compare several runs per side \
                 with --before and --after"
            );
            return Some(text.into());
        }
        let are_few = (before.min(after) as f64) < PLENTY_OF_SAMPLES * EFFECTIVE_SAMPLES_PER_RUN;
        (is_derived && sample != Weight::ONE && are_few).then(|| {
            let text = format!(
                "all weights are multiples of {sample}, taken as the weight of one sample: {before} before, {after} after; if a \
                 sample weighs less, give --per-sample; if the weights are exact counts, --exact"
            );
            text.into()
        })
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

/// Number of weights by their binary logarithm, in quarters.
#[derive(Clone, Debug, Default)]
struct Sizes(Vec<u64>);

impl Sizes {
    fn add(&mut self, weight: u128) {
        let size = ((weight as f64).log2() * 4.0) as usize;
        if size >= self.0.len() {
            self.0.resize(size + 1, 0);
        }
        self.0[size] += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(sum, count)| *sum += count);
    }

    fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns a weight that one in `parts` of all weights do not exceed, within a fifth.
    fn quantile(&self, parts: u64) -> u128 {
        let wanted = self.count() / parts;
        let mut sum = 0;
        let found = self.0.iter().position(|count| {
            sum += count;
            sum > wanted
        });
        found.map_or(0, |size| (size as f64 / 4.0).exp2() as u128)
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
mod tests {
    use super::{WeightKind, WeightOptions, WeightSurvey};
    use crate::profile::{Frames, Weight, Weights};

    fn kind(sides: &[(u64, u64)]) -> WeightKind {
        let mut survey = WeightSurvey::default();
        for (before, after) in sides {
            let weights = Weights { before: Weight::new(*before), after: Weight::new(*after) };
            survey.add_sides(weights);
        }
        survey.kind(&Frames::new(), WeightOptions::default())
    }

    #[test]
    fn the_common_divisor_is_a_sample() {
        assert_eq!(kind(&[(20, 30), (40, 10)]), WeightKind::Samples(Weight::new(10)));
        // One side has few stacks, or weights that happen to have another divisor.
        assert_eq!(kind(&[(101, 200), (303, 300), (77, 80)]), WeightKind::Samples(Weight::ONE));
        assert_eq!(kind(&[(200, 101), (300, 303), (80, 77)]), WeightKind::Samples(Weight::ONE));
        // One sample each of a fixed period.
        assert_eq!(kind(&[(3_009_027, 2_006_018), (0, 1_003_009)]), WeightKind::Samples(Weight::new(1_003_009)));
    }

    #[test]
    fn periods_have_no_divisor() {
        let sides = [(61_000_001, 79_000_001), (30_000_003, 24_000_003), (2_999_993, 3_000_029)];
        let WeightKind::Periods(sample) = kind(&sides) else { panic!("{:?}", kind(&sides)) };
        assert!((2_500_000..=3_000_029).contains(&(sample.millionths() / 1_000_000)), "{sample}");
        // perf begins with short periods.
        let mut sides: Vec<(u64, u64)> = (0..50).map(|n| (3_000_017 + n * 7919, 3_000_029 + n * 6007)).collect();
        sides[0] = (1, 20);
        assert!(matches!(kind(&sides), WeightKind::Periods(_)), "{:?}", kind(&sides));
    }

    #[test]
    fn equal_large_counts_are_exact() {
        let mut sides = vec![(7_200_018, 7_344_018), (1_000_003, 1_000_003), (50_001, 50_001), (12, 12)];
        assert_eq!(kind(&sides), WeightKind::Exact);
        sides[1].1 += 1;
        assert_ne!(kind(&sides), WeightKind::Exact);
    }

    #[test]
    fn large_weights_may_be_durations() {
        let sides: Vec<(u64, u64)> = (0..30).map(|n| (1000 + n * 35, 1001 + n * 45)).collect();
        assert!(matches!(kind(&sides), WeightKind::LikelySamples(_)));
    }
}
