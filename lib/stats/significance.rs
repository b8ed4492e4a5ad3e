//! Which differences are more than noise.
//!
//! Samples are counts, so that of the `n` samples of a stack in both profiles those after follow, if nothing changed, a
//! binomial distribution: that gives each stack an exact chance of a difference as large by noise alone.
//!
//! But one process of a program runs differently from the next: its memory lies elsewhere, and so do its branches. The
//! samples of a process are a cluster, in which `n` are worth `n / (1 + (n - 1) r)` (Kish, Survey Sampling, 1965, section
//! 5.4; McCullagh and Nelder, Generalized Linear Models, 1989, section 4.5.1): however many there are, at most `1 / r`. So
//! all counts are divided by `1 + n / ONE_RUN`, `n` being the samples of a run. Where the usual stack of such a size differs by
//! more, they are worth so many fewer ("genomic control", Devlin and Roeder, 1999). Where several runs a side are each known,
//! they show how much each stack varies from run to run instead, and a difference must stand out from that spread too.
//!
//! Testing thousands of stacks finds some by chance; so at most one of twenty found is let be false, over all stacks
//! (Benjamini and Hochberg, 1995), of which those too rare to be ever found do not count (Tarone, 1990; Gilbert, 2005).

use std::num::NonZeroU32;
use std::str::FromStr;

use super::beta;
use crate::profile::{Weight, Weights};

/// A stack with so many samples tells how much the usual one differs.
const TELLING: f64 = 20.0;

/// So many of them are needed, or a true difference would be among those that tell what noise is.
const WITNESSES: usize = 12;

/// What is known of runs in general counts like so many of them: a few stacks know the usual difference badly.
const LENT: f64 = 20.0;

/// One is like those with at least this part of its samples.
const LIKE: f64 = 8.0;

/// The median of the square of a normally distributed number.
const MEDIAN_SQUARE: f64 = 0.454_936;

/// So many samples tell of a program as much as one run of it, however long.
///
/// Measured with 48 runs of one C program with 400 stacks, 22,000 samples each, in four groups at different times of a busy
/// machine, of which all pairs were compared: of 264 within a group 5 had a stack that differed significantly. A function of
/// 5.7 % that took twice as long was found in 142 of 144 pairs of one time, and in all 16 on a quiet machine. What varied
/// most was what depends on memory: one function of 13 % by a fifth.
pub const ONE_RUN: f64 = 1000.0;

/// The share of false ones among the differences found.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// How many runs of the program each side of a comparison adds up.
#[derive(Clone, Copy, Debug)]
pub struct Runs(NonZeroU32);

impl Default for Runs {
    fn default() -> Self {
        Self(NonZeroU32::MIN)
    }
}

impl Runs {
    /// Whether they can have shown how much they vary.
    pub fn are_several(self) -> bool {
        self.0.get() > 1
    }
}

impl FromStr for Runs {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        text.parse().map(Self).map_err(|_| "expected a number from 1 on")
    }
}

/// What is known of one stack or function: how many samples before and after, and by how much runs vary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Samples before; not scaled.
    pub before: f64,
    /// Samples after.
    pub after: f64,
    /// Variance over mean between runs, 1 for counts, with its degrees of freedom; none without several runs.
    pub spread: Option<Spread>,
}

impl Evidence {
    /// Weights as counts of what one sample weighs.
    pub fn counted(weights: Weights, sample: f64) -> Self {
        Self { before: weights.before.as_f64() / sample, after: weights.after.as_f64() / sample, spread: None }
    }

    fn samples(self) -> f64 {
        self.before + self.after
    }

    /// With the counts worth so many fewer, unless several runs tell more.
    fn divided(self, by: f64) -> Self {
        match self.spread {
            Some(_) => self,
            None => Self { before: self.before / by, after: self.after / by, spread: None },
        }
    }
}

/// How much more than counts the runs vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Variance over mean.
    pub dispersion: f64,
    /// On how much it rests.
    pub freedom: f64,
}

/// What noise is taken to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// How many samples are expected after for one before.
    ratio: f64,
    /// How much more than counts a run differs from the next at least.
    least: f64,
    /// How much more than counts the usual one differs, for each [`class`].
    excess: Vec<f64>,
}

impl Noise {
    /// What `disjoint` tells of it; `ratio` is how many samples are expected after for one before, `samples` how many each
    /// run has in all.
    ///
    /// No sample may be in two of `disjoint`. Functions with what they call would be witnesses that repeat each other: main
    /// and its like, which never differ, and the dozen frames of an interrupt, which all differ as one does. And each is told
    /// of by its like: that interrupts come in clumps makes small functions vary, and says nothing of a large one.
    pub fn of(disjoint: &[Evidence], ratio: f64, samples: f64) -> Self {
        let largest = disjoint.iter().map(|one| one.samples()).fold(0.0, f64::max);
        let least = 1.0 + samples / ONE_RUN;
        let classes = 0..=class(largest) as i32;
        let excess = classes.map(|class| excess(disjoint, ratio, f64::from(class).exp2() / LIKE, least)).collect();
        Self { ratio, least, excess }
    }

    /// How much more than counts one with so many samples differs.
    fn excess(&self, samples: f64) -> f64 {
        self.excess.get(class(samples)).copied().unwrap_or(self.least)
    }
}

/// How many samples there are, by powers of two.
fn class(samples: f64) -> usize {
    samples.max(1.0).log2() as usize
}

/// The differences of what is counted in one profile with two weights.
#[derive(Clone, Debug)]
pub struct Differences {
    sample: f64,
    noise: Noise,
}

impl Differences {
    /// What the weights in `disjoint` tell of noise, as [`Noise::of`] has it; `sample` is what one sample weighs, and each side
    /// is so many runs added up.
    pub fn new(disjoint: impl Iterator<Item = Weights>, sample: Weight, total: Weights, runs: Runs) -> Self {
        let sample = sample.as_f64();
        let evidence: Vec<Evidence> = disjoint.map(|weights| Evidence::counted(weights, sample)).collect();
        let samples = (total.before.as_f64() + total.after.as_f64()) / 2.0 / sample / f64::from(runs.0.get());
        Self { sample, noise: Noise::of(&evidence, 1.0, samples) }
    }

    /// For each, the chance of such a difference by noise alone, adjusted for how many there are.
    pub fn chances(&self, weights: impl Iterator<Item = Weights>) -> Vec<f64> {
        adjusted(&weights.map(|weights| Evidence::counted(weights, self.sample)).collect::<Vec<_>>(), &self.noise)
    }
}

/// For each, the least share of false discoveries at which it is one; significant if at most [`FALSE_DISCOVERIES`].
pub fn adjusted(evidence: &[Evidence], noise: &Noise) -> Vec<f64> {
    let ratio = noise.ratio;
    let evidence: Vec<Evidence> = evidence.iter().map(|one| one.divided(noise.excess(one.samples()))).collect();
    let chance = ratio / (1.0 + ratio);
    let mut best: Vec<f64> = evidence.iter().map(|one| best_possible(one.before + one.after, chance)).collect();
    let bests = best.clone();
    best.sort_unstable_by(f64::total_cmp);
    let mut tests = 1;
    while best.partition_point(|best| *best <= FALSE_DISCOVERIES / tests as f64) > tests {
        tests += 1;
    }
    let limit = FALSE_DISCOVERIES / tests as f64;
    let mut ranked: Vec<(f64, usize)> =
        (0..evidence.len()).filter(|i| bests[*i] <= limit).map(|i| (p_value(evidence[i], ratio), i)).collect();
    ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut shares = vec![1.0; evidence.len()];
    let mut least: f64 = 1.0;
    for (rank, (p, index)) in ranked.iter().enumerate().rev() {
        least = least.min(p * ranked.len() as f64 / (rank + 1) as f64);
        shares[*index] = least;
    }
    shares
}

/// How much more than counts the usual one differs of those with at least `samples`; not less than `least`.
fn excess(evidence: &[Evidence], ratio: f64, samples: f64, least: f64) -> f64 {
    let telling = evidence.iter().filter(|one| one.samples() >= samples.max(TELLING));
    let mut squares: Vec<f64> = telling.map(|one| square(*one, ratio)).collect();
    if squares.len() < WITNESSES {
        return least;
    }
    squares.sort_unstable_by(f64::total_cmp);
    let usual = squares[squares.len() / 2] / MEDIAN_SQUARE;
    let witnesses = squares.len() as f64;
    ((LENT * least + witnesses * usual) / (LENT + witnesses)).max(least)
}

/// The difference's square over the variance that counts have if nothing changed.
fn square(Evidence { before, after, .. }: Evidence, ratio: f64) -> f64 {
    (after - ratio * before).powi(2) / (ratio * (before + after))
}

/// The chance of a difference as large if there is none.
pub fn p_value(evidence: Evidence, ratio: f64) -> f64 {
    let counted = counting(evidence.before, evidence.after, ratio / (1.0 + ratio));
    evidence.spread.map_or(counted, |spread| counted.max(spreading(evidence, spread, ratio)))
}

/// By counting noise: twice the smaller tail of the binomial distribution.
fn counting(before: f64, after: f64, chance: f64) -> f64 {
    let at_least = if after > 0.0 { beta::regularized(chance, after, before + 1.0) } else { 1.0 };
    let at_most = if before > 0.0 { beta::regularized(1.0 - chance, before, after + 1.0) } else { 1.0 };
    (2.0 * at_least.min(at_most)).min(1.0)
}

/// By the spread between runs: Student's test.
fn spreading(evidence: Evidence, spread: Spread, ratio: f64) -> f64 {
    let square = square(evidence, ratio) / spread.dispersion;
    match square > 0.0 {
        true => beta::regularized(spread.freedom / (spread.freedom + square), spread.freedom / 2.0, 0.5),
        false => 1.0,
    }
}

/// The smallest chance that so many samples can give: all of them on one side.
fn best_possible(samples: f64, chance: f64) -> f64 {
    2.0 * chance.min(1.0 - chance).powf(samples)
}

#[cfg(test)]
mod tests {
    use super::{Evidence, FALSE_DISCOVERIES, Noise, Spread, adjusted, p_value};

    fn counts(before: f64, after: f64) -> Evidence {
        Evidence { before, after, spread: None }
    }

    fn judged(evidence: &[Evidence], samples: f64) -> Vec<f64> {
        adjusted(evidence, &Noise::of(evidence, 1.0, samples))
    }

    #[test]
    fn one_sided_throws_have_the_chance_of_a_coin() {
        let p = p_value(counts(0.0, 12.0), 1.0);
        assert!((p - 2.0 / 4096.0).abs() < 1e-12, "{p}");
        assert_eq!(p_value(counts(10.0, 10.0), 1.0), 1.0);
        // Twice the samples are expected of a run twice as long.
        assert!(p_value(counts(1000.0, 2000.0), 2.0) > 0.9);
        assert!(p_value(counts(1000.0, 2000.0), 1.0) < 1e-9);
    }

    #[test]
    fn runs_that_vary_more_than_counts_need_more() {
        let spread = Some(Spread { dispersion: 20.0, freedom: 8.0 });
        assert!(p_value(counts(1000.0, 1200.0), 1.0) < 1e-4);
        assert!(p_value(Evidence { spread, ..counts(1000.0, 1200.0) }, 1.0) > 0.1);
        // Student's distribution with 8 degrees of freedom: 2.306 cuts off five per cent.
        let spread = Spread { dispersion: 1.0, freedom: 8.0 };
        let p = super::spreading(counts(5000.0, 5000.0 + 233.3), spread, 1.0);
        assert!((p - 0.05).abs() < 0.002, "{p}");
    }

    #[test]
    fn among_many_equal_ones_a_large_change_is_found_alone() {
        let mut evidence = vec![counts(20.0, 22.0); 2000];
        evidence.extend([counts(500.0, 800.0), counts(1.0, 0.0)]);
        let shares = judged(&evidence, 0.0);
        let found: Vec<usize> = (0..shares.len()).filter(|i| shares[*i] <= FALSE_DISCOVERIES).collect();
        assert_eq!(found, [2000]);
    }

    #[test]
    fn where_everything_differs_nothing_stands_out() {
        let evidence: Vec<Evidence> = (0..100).map(|n| counts(1000.0 + f64::from(n % 2 * 200), 1100.0)).collect();
        assert!(p_value(evidence[0], 1.0) < 0.04);
        let shares = judged(&evidence, 0.0);
        assert!(shares.iter().all(|share| *share > FALSE_DISCOVERIES), "{shares:?}");
    }

    #[test]
    fn a_longer_run_tells_no_more_of_a_program() {
        let share = |scale: f64| {
            let evidence = [counts(20.0 * scale, 30.0 * scale), counts(980.0 * scale, 970.0 * scale)];
            judged(&evidence, 1000.0 * scale)[0]
        };
        // Half as much again of two per cent is what processes differ by; twice as much of ten is not.
        assert!(
            share(1.0) > FALSE_DISCOVERIES && share(1000.0) > FALSE_DISCOVERIES,
            "{} {}",
            share(1.0),
            share(1000.0)
        );
        let evidence = [counts(2000.0, 4000.0), counts(18_000.0, 16_000.0)];
        assert!(judged(&evidence, 20_000.0)[0] <= FALSE_DISCOVERIES);
        // Several runs have shown how much they vary.
        let spread = Some(Spread { dispersion: 1.0, freedom: 8.0 });
        let evidence = [(20_000.0, 30_000.0), (980_000.0, 970_000.0)];
        let evidence = evidence.map(|(before, after)| Evidence { spread, ..counts(before, after) });
        assert!(judged(&evidence, 1e6)[0] <= FALSE_DISCOVERIES);
    }

    #[test]
    fn small_ones_that_come_in_clumps_say_nothing_of_a_large_one() {
        let mut evidence: Vec<Evidence> =
            (0..30).map(|n| n % 2 * 15).map(|n| counts(f64::from(10 + n), f64::from(25 - n))).collect();
        evidence.extend([counts(1400.0, 1900.0), counts(2200.0, 1800.0), counts(1100.0, 980.0)]);
        let shares = judged(&evidence, 5000.0);
        assert!(shares[30] <= FALSE_DISCOVERIES, "{}", shares[30]);
        // But much of one of them.
        evidence.push(counts(5.0, 25.0));
        let shares = judged(&evidence, 0.0);
        assert!(p_value(evidence[33], 1.0) < 0.001 && shares[33] > FALSE_DISCOVERIES, "{}", shares[33]);
    }

    #[test]
    fn rare_stacks_do_not_hide_a_change() {
        let mut evidence = vec![counts(1.0, 0.0); 100_000];
        evidence.push(counts(10.0, 40.0));
        let shares = judged(&evidence, 0.0);
        assert!(shares[100_000] <= FALSE_DISCOVERIES, "{}", shares[100_000]);
    }
}
