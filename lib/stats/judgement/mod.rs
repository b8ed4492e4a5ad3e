//! The judgement of differences between two sides of one or more runs each: could the rows differ as much if nothing
//! had changed?
//!
//! A row is anything with a weight in each run: a function's self or inclusive weight, a call, a category, a stack.
//!
//! **Several runs a side.** A row's difference is compared with its own spread from run to run, averaged with that of
//! rows of a similar size (`spread`). Each difference is judged twice. Compared as it is, its spread is moderated by that of its
//! peers and the one that all rows of a run share
//! (a slow run is slow in most functions); the degrees of freedom of both are combined as by Satterthwaite (1946).
//! Compared relative to the median of the rows in its run (the total, if few rows are large), what all rows share
//! cancels; to count, the row must then differ in both
//! views, and the smaller difference is judged. The two tests share the error rate (`AS_IT_IS`, `RELATIVE`). Runs that alternate
//! are not taken for pairs: with half of the degrees of freedom, growth by a tenth of a function with a fifth of the time was found
//! in .46, .77 and .31 of comparisons with five runs a side instead of .73, .92 and .96 (`compute`, `memory`, `allocate` in
//! `benches/verdict`), and equal programs differed in none.
//!
//! **One run a side.** Samples of unchanged rows follow a binomial distribution, but processes of one program differ.
//! The samples of a process are a cluster: `n` samples with intra-cluster correlation `r` are worth `n / (1 + (n - 1)
//! r)` independent ones (Kish, Survey Sampling, 1965, section 5.4), at most `1 / r` however long the run. All counts
//! are therefore divided by `1 + n / EFFECTIVE_SAMPLES_PER_RUN`, or more if rows of a similar size typically differ by
//! more. A machine that was slower during one of the runs cannot be told from a slower program, so a row must also
//! differ relative to the others.
//!
//! **Durations.** Blocked threads have called the kernel from few functions, so self weights show little of the spread. It is
//! that of stacks (`Design::stacks`).
//!
//! **Exact counts** ([`Counting::Exact`]) have no sampling noise: with one run a side, or if runs of a side agree, any change
//! is real.
//!
//! Rates of false verdicts and of differences found: `benches/README.md`.

mod design;
mod one_side;
mod shared;

pub use self::design::{Counting, Design, Observation};
use self::shared::{Shared, nearer_to_zero};
use super::distributions::{binomial_p_value, student_p_value};
use super::false_discovery::{Change, Test};
use super::spread::{Peers, RowSpread};

/// The largest number of independent samples that a run counts as if there is only one a side.
///
/// Measured with 48 runs of a C program with 400 stacks and 22,000 samples a run, in four groups at different times on
/// a busy machine, comparing all pairs. Within a group, 5 of 264 pairs had a stack that differed significantly.
/// Memory-bound functions varied most: one of 13 % of the time by a fifth.
pub const EFFECTIVE_SAMPLES_PER_RUN: f64 = 1000.0;

/// Factors of the p-values of the two tests, whose reciprocals add up to 1.
///
/// With the shares exchanged, growth by a tenth of a compute-bound function is found in 92 instead of 46 % of comparisons with five
/// runs a side, and about as often in memory-bound and allocating programs (`benches/verdict/evaluate`), but equal programs differ
/// in 7 to 10 % of comparisons if the speed of runs varies by a tenth (`few_rows` in `tests/cli/verdicts/rates.rs`).
const AS_IT_IS: f64 = 5.0;
const RELATIVE: f64 = 1.25;

/// These factors if few rows are large. A function of two to four that did not change beside one that takes half as long had
/// then grown in up to 11 % of comparisons, with five runs a side and a spread of 5 %, where its spread relative to the total
/// was that of its difference as it is; in 1 to 3 % now.
const AS_IT_IS_OF_FEW: f64 = 3.0;
const RELATIVE_OF_FEW: f64 = 1.5;

/// Largest deviation of a weight, relative to its mean, that may be a rounding error.
const ROUNDING: f64 = 1e-9;

/// Dispersion of weights that do not vary at all: nearly 0.
const LEAST_DISPERSION: f64 = 1e-9;

/// Degrees of freedom with one run a side.
const ONE_RUN_FREEDOM: f64 = 20.0;

/// Samples from a timer are spread more evenly than independent ones. A dispersion is at least this.
const LOWEST_DISPERSION: f64 = 0.1;

/// Rows with fewer samples on both sides together must also pass the binomial test, because they are not normal.
const NORMAL_SAMPLES: f64 = 100.0;

/// Rows with fewer samples than this are rare.
const RARE_SAMPLES: f64 = 40.0;

/// The variance of a row from run to run that other rows suggest, and its degrees of freedom.
#[derive(Clone, Copy, Debug)]
struct Prior {
    variance: f64,
    freedom: f64,
}

/// The independent samples of a row.
#[derive(Clone, Copy, Debug)]
struct Counts {
    before: f64,
    after: f64,
    /// The probability that a sample is after if nothing changed.
    chance: f64,
}

/// The properties that a comparison's rows share, by which each is judged.
#[derive(Debug)]
pub struct Judge {
    design: Design,
    /// Mean weight of one sample.
    sample: f64,
    /// Degrees of freedom of a row's own spread; 0 with one run a side.
    freedom: f64,
    shared: Option<Shared>,
    peers: Peers,
    /// Dispersion of rare rows, at least 1.
    rare_dispersion: f64,
    /// True if the weights are exact counts of a program that varies.
    has_exact_counts: bool,
}

impl Judge {
    /// Learns from rows of which no two contain the same sample. Inclusive weights would repeat each other: `main`
    /// never differs, and the dozen frames of an interrupt all differ together. `total` has the total of each run.
    pub fn new(rows: &[&Observation], total: &Observation, mut design: Design) -> Self {
        let runs = (design.before.len() as f64, design.after.len() as f64);
        let stacks = design.stacks.take();
        let samples: f64 = design.before.iter().chain(&design.after).sum();
        let mut judge = Self {
            sample: if design.counting == Counting::Samples { samples / (runs.0 + runs.1) } else { 1.0 },
            freedom: runs.0 + runs.1 - 2.0,
            shared: None,
            peers: Peers::unknown(1.0),
            rare_dispersion: 1.0,
            has_exact_counts: false,
            design,
        };
        if judge.design.counting == Counting::Exact {
            if !rows.iter().any(|row| row.varies()) {
                return judge;
            }
            // Few runs may agree by chance: what others vary by counts.
            judge.design.counting = Counting::Unknown;
            judge.has_exact_counts = true;
        }
        let stacks: Option<Vec<&Observation>> = stacks.as_ref().map(|stacks| stacks.iter().collect());
        let rows = stacks.as_deref().unwrap_or(rows);
        judge.shared = judge.find_shared(rows, total);
        judge.learn_spread(rows, total);
        judge
    }

    fn learn_spread(&mut self, rows: &[&Observation], total: &Observation) {
        let spreads: Vec<RowSpread> = rows.iter().filter_map(|row| self.row_spread(row)).collect();
        let of_processes = 1.0 + total.mean() / self.sample / EFFECTIVE_SAMPLES_PER_RUN;
        let base = match self.design.counting {
            _ if self.freedom == 0.0 => of_processes,
            Counting::Samples => 1.0,
            _ => median(spreads.iter().map(|row| row.dispersion).collect()).max(LEAST_DISPERSION),
        };
        if self.freedom == 0.0 {
            let has_peers = self.shared.as_ref().is_none_or(|shared| shared.mean_of_total.is_none());
            self.peers = Peers::of_single_runs(if has_peers { &spreads } else { &[] }, base);
            return;
        }
        let is_sampled = self.design.counting == Counting::Samples;
        self.peers = match self.shared.as_ref().is_some_and(|shared| shared.mean_of_total.is_some()) {
            false => Peers::of_runs(&spreads, base, self.freedom, is_sampled),
            // Few rows do not show what to expect of each other: as much as of one run a side.
            true if is_sampled => Peers::of_runs(&[], of_processes, self.freedom, true),
            // All that is known is the spread of few rows that mirror each other: no second opinion about any of them.
            true => Peers::unknown(base),
        };
        let rare = spreads.iter().filter(|row| row.size > 1.0 && row.size < RARE_SAMPLES);
        let rare: Vec<f64> = rare.map(|row| row.dispersion).collect();
        if rare.len() >= 8 {
            self.rare_dispersion = mean(&rare).max(1.0);
        }
    }

    /// Judges a row. `own` is the row among those that the judge has learned from, if it is, or contains, one of them.
    pub fn test(&self, row: &Observation, own: Option<&Observation>) -> Test {
        self.test_by_expected(row, own, self.expected_variance(row, own))
    }

    /// Judges the sum of rows of which no two contain the same sample. Rows vary independently of each other, so that their sum
    /// varies less than a single row of its size.
    ///
    /// With the variance that is expected of a single row, a new function of 5 % beside 10 of 20 functions that vary by 10 %
    /// was found in 4 instead of 72 % of comparisons with three runs a side, and sums of equal programs differed in 0 instead
    /// of 1 %.
    pub fn test_sum(&self, sum: &Observation, rows: &[Observation]) -> Test {
        self.test_by_expected(sum, None, rows.iter().map(|row| self.expected_variance(row, None)).sum())
    }

    fn test_by_expected(&self, row: &Observation, own: Option<&Observation>, expected: f64) -> Test {
        let (before, after) = row.means();
        let change = Change::of(before, after);
        if row.mean() <= 0.0 {
            return Test::NONE;
        }
        if self.design.counting == Counting::Exact && self.freedom == 0.0 {
            return Test { p_value: if before == after { 1.0 } else { 0.0 }, smallest: 0.0, change };
        }
        let by_spread = match self.freedom > 0.0 {
            true => self.by_prior(row, own, expected, |prior| self.test_by_spread(row, prior)),
            false => {
                let variance = self.floor(expected, row) * 2.0;
                student_p_value(self.smaller_difference(row).powi(2) / variance, ONE_RUN_FREEDOM)
            }
        };
        if self.design.counting != Counting::Samples {
            return Test { p_value: by_spread.max(self.least_p_value(row)), smallest: 0.0, change };
        }
        self.test_by_counts(row, by_spread, expected, change)
    }

    /// Returns the variance that is expected of a row of this size. `own` is as for [`test`](Self::test).
    fn expected_variance(&self, row: &Observation, own: Option<&Observation>) -> f64 {
        let own = own.and_then(|own| self.row_spread(own));
        self.peers.dispersion(row.mean() / self.sample, own) * row.mean() * self.sample
    }

    /// Returns the mean of the p-values of all priors that a row may have, each weighed by its probability.
    fn by_prior(
        &self,
        row: &Observation,
        own: Option<&Observation>,
        expected: f64,
        p_value: impl Fn(Prior) -> f64,
    ) -> f64 {
        let is_sum = own.is_none_or(|own| own.mean() < row.mean());
        let mut parts = self.peers.parts(self.variance(row) / expected.max(f64::MIN_POSITIVE), is_sum).peekable();
        if parts.peek().is_none() {
            return p_value(Prior { variance: expected, freedom: 0.0 });
        }
        parts
            .map(|part| {
                let prior = Prior { variance: part.multiple * expected, freedom: part.freedom };
                part.probability * p_value(prior)
            })
            .sum()
    }

    /// Counts the independent samples of a row.
    fn count(&self, row: &Observation, dispersion: f64) -> Counts {
        let [exposed_before, exposed_after] = [&self.design.before, &self.design.after]
            .map(|samples| samples.iter().map(|sample| 1.0 / sample).sum::<f64>());
        Counts {
            before: count_samples(&row.before, &self.design.before) / dispersion,
            after: count_samples(&row.after, &self.design.after) / dispersion,
            chance: exposed_after / (exposed_before + exposed_after),
        }
    }

    /// Combines a p-value with that of the binomial test of the samples.
    fn test_by_counts(&self, row: &Observation, by_spread: f64, expected: f64, change: Change) -> Test {
        let dispersion = match self.freedom > 0.0 {
            true => self.rare_dispersion,
            false => self.floor(expected, row) / (row.mean() * self.sample),
        };
        let Counts { before, after, chance } = self.count(row, dispersion);
        let is_normal = before + after >= NORMAL_SAMPLES && self.freedom > 0.0;
        let counted = if is_normal { 0.0 } else { binomial_p_value(before, after, chance) };
        // All samples on one side: their binomial tail, and the t that their number amounts to.
        let tail = 2.0 * chance.min(1.0 - chance).powf(before + after);
        let prior = if self.freedom > 0.0 { self.peers.freedom() } else { ONE_RUN_FREEDOM };
        let smallest = tail.max(student_p_value(before + after, self.freedom + prior));
        Test { p_value: by_spread.max(counted), smallest, change }
    }

    /// Returns the p-value of the hypothesis that a row has grown by `growth` or more: it is small if the row has not.
    /// With one run a side, it is 1. `own` is as for [`test`](Self::test).
    pub fn growth_p_value(&self, row: &Observation, own: Option<&Observation>, growth: f64) -> f64 {
        let before = row.before.iter().map(|weight| weight + growth).collect();
        let grown = Observation { before, after: row.after.clone() };
        let (before, after) = grown.means();
        if self.freedom == 0.0 || after >= before {
            return 1.0;
        }
        let expected = self.expected_variance(&grown, own);
        self.by_prior(&grown, own, expected, |prior| self.p_value_as_it_is(&grown, prior)) / 2.0
    }

    /// Returns the p-value of a row with several runs a side.
    fn test_by_spread(&self, row: &Observation, prior: Prior) -> f64 {
        let own = self.own_variance(row, prior);
        let as_it_is = self.p_value_as_it_is(row, prior);
        // Relative to the total, a row that is the total differs by rounding errors only.
        if self.shared.is_none() || own <= (ROUNDING * row.mean()).powi(2) {
            return as_it_is;
        }
        let freedom = self.freedom + prior.freedom;
        let relative = student_p_value(self.smaller_difference(row).powi(2) / (own * run_factor(row)), freedom);
        let Some(total) = self.shared.as_ref().and_then(|shared| shared.mean_of_total) else {
            return (AS_IT_IS * as_it_is).min(RELATIVE * relative).min(1.0);
        };
        // Relative to a total that it is part of, a row varies less than by itself: its difference as it is may be chance.
        let (before, after) = row.means();
        let variance = own / (1.0 - row.mean() / total).max(ROUNDING).powi(2);
        let relative = relative.max(student_p_value((after - before).powi(2) / (variance * run_factor(row)), freedom));
        (AS_IT_IS_OF_FEW * as_it_is).min(RELATIVE_OF_FEW * relative).min(1.0)
    }

    /// Returns the variance of a row from run to run, without what all rows share, moderated by that of its peers.
    fn own_variance(&self, row: &Observation, prior: Prior) -> f64 {
        let freedom = self.freedom + prior.freedom;
        self.floor((prior.freedom * prior.variance + self.freedom * self.variance(row)) / freedom, row)
    }

    /// Returns the p-value of the difference of a row that is not relative to others.
    ///
    /// Its spread is moderated by what is expected of it: that of its peers, and what all rows share. A row that does
    /// not follow the others is not taken to.
    fn p_value_as_it_is(&self, row: &Observation, prior: Prior) -> f64 {
        let (before, after) = row.means();
        let freedom = self.freedom + prior.freedom;
        let raw = sum_squares(&deviations(before, &row.before, None), &deviations(after, &row.after, None));
        let own = self.floor((prior.freedom * prior.variance + raw) / freedom, row);
        let shared = self.shared.as_ref().map_or(0.0, |shared| shared.variance * row.mean().powi(2));
        let shared = shared * prior.freedom / freedom;
        if own + shared == 0.0 {
            return if before == after { 1.0 } else { 0.0 };
        }
        let combined = (own + shared).powi(2) / (own.powi(2) / freedom + shared.powi(2) / self.freedom);
        student_p_value((after - before).powi(2) / ((own + shared) * run_factor(row)), combined)
    }

    /// Returns the smaller of a row's difference as it is and relative to the median row; 0 if their signs differ.
    fn smaller_difference(&self, row: &Observation) -> f64 {
        let (before, after) = row.means();
        let difference = after - before;
        let Some(shared) = &self.shared else { return difference };
        nearer_to_zero(after / shared.levels.1 - before / shared.levels.0, difference)
    }

    /// Returns a variance, or the least that samples can have.
    fn floor(&self, variance: f64, row: &Observation) -> f64 {
        let counting = row.mean() * self.sample;
        match self.design.counting {
            Counting::Samples if self.freedom > 0.0 => variance.max(LOWEST_DISPERSION * counting),
            // With one run a side, other rows may only add to what is expected of every run.
            Counting::Samples => variance.max(self.peers.base() * counting),
            Counting::Exact | Counting::Unknown => variance,
        }
    }

    /// Returns the size and dispersion of a row; `None` if it has no weight.
    fn row_spread(&self, row: &Observation) -> Option<RowSpread> {
        let weight = row.mean();
        let variance = match self.freedom > 0.0 {
            true => self.variance(row),
            false => self.smaller_difference(row).powi(2) / 2.0,
        };
        let dispersion = variance / (weight * self.sample);
        (weight > 0.0).then(|| RowSpread { size: weight / self.sample, dispersion })
    }

    /// Returns the variance of a row from run to run, without what all rows share.
    fn variance(&self, row: &Observation) -> f64 {
        let (before, after) = row.means();
        let shared = self.shared.as_ref().map(|shared| &shared.deviations);
        let before = deviations(before, &row.before, shared.map(|shared| &shared.before));
        let after = deviations(after, &row.after, shared.map(|shared| &shared.after));
        sum_squares(&before, &after) / self.freedom
    }
}

/// Returns the sum of the squares of the deviations of both sides.
fn sum_squares(before: &[f64], after: &[f64]) -> f64 {
    before.iter().chain(after).map(|deviation| deviation.powi(2)).sum()
}

/// Returns the factor by which the variance of a run becomes that of the difference of both means.
fn run_factor(row: &Observation) -> f64 {
    1.0 / row.before.len() as f64 + 1.0 / row.after.len() as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the median, or 0 without values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// Returns the number of samples in all runs, from the weights of the runs and what a sample weighs in each.
fn count_samples(weights: &[f64], samples: &[f64]) -> f64 {
    weights.iter().zip(samples).map(|(weight, sample)| weight / sample).sum()
}

/// Returns the deviations of runs from their mean, less those that all rows of a run share.
fn deviations(mean: f64, weights: &[f64], shared: Option<&Vec<f64>>) -> Vec<f64> {
    let runs = weights.iter().enumerate();
    runs.map(|(run, weight)| weight - mean * (1.0 + shared.map_or(0.0, |shared| shared[run]))).collect()
}
