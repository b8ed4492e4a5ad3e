//! The variance that a row may have by nature, from the variances of many rows.
//!
//! Most rows of a size vary alike, and some vary much more, or were slow in one run. The prior is therefore a mixture: the variance
//! of a row is what its size suggests times one of several multiples, each with a probability, and about each with the inverse
//! chi-square distribution of limma (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, article 3). The
//! probabilities are those by which the rows' own variances are likeliest (Lu and Stephens, Bioinformatics 32, 2016, pages
//! 3428 to 3434). A row is judged by each part of the mixture, weighed by how probable the row's own variance makes it.
//!
//! With one distribution alone, a row that varies much, but little in the runs at hand by chance, is taken for one of the others:
//! equal programs of 200 functions, of which three vary by 30 %, differed in 15 % of comparisons with three runs a side.

use super::distributions::FDensity;

/// Multiples of the variance that a row's size suggests: powers of this, from the first exponent up to the largest row, at least
/// to the usual last one.
const STEP: f64 = 4.0;
const FIRST_EXPONENT: i32 = -2;
const LAST_EXPONENT: i32 = 7;

/// Pseudocounts, in rows: of the multiple 1, and of each larger one. The latter provide for rows that vary more than any known
/// row: with 0.1 instead of 0.3, equal programs of which few functions vary much differed in up
/// to 7.5 % of comparisons with two runs a side, and growth by a fifth was found in 19 instead of 14 % of them
/// (`noisy_programs`, `growth_by_a_fifth` in `tests/cli/verdicts/rates.rs`).
const USUAL_ROWS: f64 = 4.0;
const LARGER_ROWS: f64 = 0.3;

/// Probability that a sum of rows varies more than its size suggests, in equal parts by each of the larger multiples. In a category
/// or an inclusive weight, one row that varies much is enough. Without it, a category with a noisy function had grown where a
/// function was extracted from the noisy one (`extracted_functions_beside_noise` in `tests/cli/moved_cost.rs`).
const LARGER_SUMS: f64 = 0.2;

/// Degrees of freedom of the inverse chi-square distribution: the candidates, of which the likeliest is taken, and the number that
/// is assumed if few rows are known.
const FREEDOMS: [f64; 5] = [4.0, 6.0, 10.0, 20.0, 40.0];
const USUAL_FREEDOM: f64 = 6.0;

/// Fewest rows from which the degrees of freedom are learned.
const MIN_ROWS: usize = 5;

/// The prior is learned from at most this many rows, taken at even distances in ascending order.
const MAX_ROWS: usize = 2000;

/// Number of steps towards the likeliest probabilities.
const STEPS: usize = 40;

/// Smallest probability of a part that is considered.
const LEAST: f64 = 1e-9;

/// Own variances count as at least this multiple of what is expected.
const LOWEST_RATIO: f64 = 1e-3;

/// A part of the mixture, for one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Probability that the row belongs to it.
    pub probability: f64,
    /// Variance relative to what the row's size suggests.
    pub multiple: f64,
    /// Degrees of freedom of the prior, which are added to those of the row's own variance.
    pub freedom: f64,
}

/// The mixture of distributions that a row's variance has.
#[derive(Clone, Debug, PartialEq)]
pub struct VariancePrior {
    /// Density of an own variance relative to that of the part that the row belongs to.
    density: FDensity,
    /// Degrees of freedom of a row's own variance, and of each part.
    freedoms: (f64, f64),
    /// Multiples and their probabilities.
    parts: Vec<(f64, f64)>,
    /// Number of rows that the prior was learned from; `None` if they are few.
    rows: Option<f64>,
}

impl VariancePrior {
    /// Learns from the variances of rows relative to what their sizes suggest, which have `own` degrees of freedom each.
    pub fn of_ratios(ratios: &[f64], own: f64) -> Self {
        let is_known = ratios.len() >= MIN_ROWS;
        let rows = is_known.then_some(ratios.len() as f64);
        let freedoms = if is_known { &FREEDOMS[..] } else { &[USUAL_FREEDOM] };
        let fits = freedoms.iter().map(|freedom| {
            let density = FDensity::new(own, *freedom);
            Self { density, freedoms: (own, *freedom), parts: initial_parts(ratios), rows }.fitted(ratios)
        });
        let (prior, _) = fits.max_by(|one, other| one.1.total_cmp(&other.1)).expect("not empty");
        prior
    }

    /// Returns the mixture with the likeliest probabilities, and the logarithm of the likelihood.
    fn fitted(mut self, ratios: &[f64]) -> (Self, f64) {
        let skip = ratios.len().div_ceil(MAX_ROWS).max(1);
        let weight = skip as f64;
        let densities: Vec<Vec<f64>> = ratios.iter().step_by(skip).map(|ratio| self.densities(*ratio)).collect();
        for _ in 0..STEPS {
            let mut rows: Vec<f64> = self.parts.iter().map(|(multiple, _)| rows_of(*multiple)).collect();
            for densities in &densities {
                let sum = self.likelihood(densities);
                let parts = rows.iter_mut().zip(densities).zip(&self.parts);
                parts.for_each(|((rows, density), (_, probability))| *rows += weight * probability * density / sum);
            }
            let sum: f64 = rows.iter().sum();
            self.parts.iter_mut().zip(rows).for_each(|(part, rows)| part.1 = rows / sum);
        }
        let likelihood = densities.iter().map(|densities| self.likelihood(densities).ln()).sum();
        (self, likelihood)
    }

    /// Returns the density of an own variance in each part.
    fn densities(&self, ratio: f64) -> Vec<f64> {
        let ratio = ratio.max(LOWEST_RATIO);
        self.parts.iter().map(|(multiple, _)| self.density.at(ratio / multiple) / multiple).collect()
    }

    fn likelihood(&self, densities: &[f64]) -> f64 {
        let sum: f64 = self.parts.iter().zip(densities).map(|((_, probability), density)| probability * density).sum();
        sum.max(f64::MIN_POSITIVE)
    }

    /// Returns the parts that a row may belong to. `ratio` is its own variance relative to what its size suggests. `is_sum` is
    /// true for a sum of the rows that the prior was learned from.
    pub fn parts(&self, ratio: f64, is_sum: bool) -> impl Iterator<Item = Part> {
        let ratio = ratio.min(self.parts.last().map_or(1.0, |(multiple, _)| *multiple));
        let larger = self.parts.iter().filter(|(multiple, _)| *multiple > 1.0).count() as f64;
        let densities = self.densities(ratio);
        let likely = self.parts.iter().zip(&densities).map(|((multiple, probability), density)| {
            let share = match (is_sum, *multiple > 1.0) {
                (true, true) => (1.0 - LARGER_SUMS) * probability + LARGER_SUMS / larger,
                (true, false) => (1.0 - LARGER_SUMS) * probability,
                (false, _) => *probability,
            };
            share * density
        });
        let likely: Vec<f64> = likely.collect();
        let sum = likely.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let all = self.freedom();
        let parts = self.parts.iter().zip(likely);
        parts
            .map(move |((multiple, share), likely)| {
                let probability = likely / sum;
                let others = self.rows.map(|rows| rows * share - probability);
                // That a row varies more, by a multiple that is always considered, needs no other rows.
                let is_assumed = *multiple > ratio && rows_of(*multiple) > 0.0;
                let freedom = if is_assumed { all } else { self.freedom_of(others) };
                Part { probability, multiple: *multiple, freedom }
            })
            .filter(|part| part.probability > LEAST)
    }

    /// Returns the degrees of freedom of a part to which this number of other rows belongs.
    ///
    /// Few rows estimate their mean badly: the relative variance of an estimate is two divided by its degrees of freedom, and
    /// the errors of the mean and of the distribution about it add up. Without this, equal programs of five to eight functions
    /// differed in 7 to 12 % of comparisons with two runs a side (`programs_of_few_functions` in
    /// `tests/cli/verdicts/rates.rs`), and up to 88 % of exact counts of which every fourth varies (`few_that_vary`).
    fn freedom_of(&self, rows: Option<f64>) -> f64 {
        let (own, freedom) = self.freedoms;
        match rows {
            Some(rows) if rows <= 0.0 => 0.0,
            Some(rows) => 1.0 / (1.0 / freedom + 1.0 / (rows * own)),
            None => freedom,
        }
    }

    /// Returns the degrees of freedom of the whole mixture.
    pub fn freedom(&self) -> f64 {
        self.freedom_of(self.rows)
    }
}

/// Returns the pseudocount of a multiple.
fn rows_of(multiple: f64) -> f64 {
    match multiple.total_cmp(&1.0) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => USUAL_ROWS,
        std::cmp::Ordering::Greater if multiple <= STEP.powi(LAST_EXPONENT) => LARGER_ROWS,
        std::cmp::Ordering::Greater => 0.0,
    }
}

/// Returns all multiples with the same probability.
fn initial_parts(ratios: &[f64]) -> Vec<(f64, f64)> {
    let largest = ratios.iter().copied().fold(1.0, f64::max).min(f64::MAX.sqrt());
    let last = LAST_EXPONENT.max((largest.ln() / STEP.ln()).ceil() as i32);
    let exponents = FIRST_EXPONENT..=last;
    let count = exponents.clone().count() as f64;
    exponents.map(|exponent| (STEP.powi(exponent), 1.0 / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::VariancePrior;

    /// Returns the ratios of rows that vary as four degrees of freedom do.
    fn alike(rows: u32) -> Vec<f64> {
        // Quantiles of the chi-square distribution, by Wilson and Hilferty.
        let ratios = (0..rows).map(|row| {
            let share = (f64::from(row) + 0.5) / f64::from(rows);
            let normal = (share / (1.0 - share)).ln() / 1.702;
            (1.0 - 1.0 / 18.0 + normal * (1.0_f64 / 18.0).sqrt()).powi(3)
        });
        ratios.collect()
    }

    fn probability(prior: &VariancePrior, ratio: f64, is_meant: impl Fn(f64) -> bool) -> f64 {
        prior.parts(ratio, false).filter(|part| is_meant(part.multiple)).map(|part| part.probability).sum()
    }

    #[test]
    fn rows_that_agree_are_worth_more() {
        let freedom = |ratios: &[f64]| VariancePrior::of_ratios(ratios, 4.0).freedom();
        assert!(freedom(&alike(100)) > 15.0, "{}", freedom(&alike(100)));
        let spread: Vec<f64> = alike(100).iter().zip(0..).map(|(ratio, row)| ratio * [0.3, 3.0][row % 2]).collect();
        let usual =
            |ratios: &[f64]| probability(&VariancePrior::of_ratios(ratios, 4.0), 1.0, |multiple| multiple == 1.0);
        assert!(usual(&spread) < 0.8 && usual(&alike(100)) > 0.9, "{} {}", usual(&spread), usual(&alike(100)));
        assert!(freedom(&alike(6)) < freedom(&alike(100)) && freedom(&[1.0, 1.0]) == 6.0);
    }

    #[test]
    fn rows_out_of_the_distribution_belong_to_another() {
        let prior = VariancePrior::of_ratios(&alike(40), 4.0);
        assert!(probability(&prior, 1.0, |multiple| multiple == 1.0) > 0.9);
        assert!(probability(&prior, 300.0, |multiple| multiple >= 64.0) > 0.95);
        assert!(
            (probability(&prior, 1e9, |_| true) - 1.0).abs() < 1e-6
                && (probability(&prior, 0.0, |_| true) - 1.0).abs() < 1e-6
        );
    }

    #[test]
    fn a_row_that_varies_more_than_all_others_is_judged_by_itself() {
        let mut ratios = alike(40);
        ratios.push(1e12);
        let prior = VariancePrior::of_ratios(&ratios, 1.0);
        for ratio in [1e12, 1e15] {
            let freedom: f64 = prior.parts(ratio, false).map(|part| part.probability * part.freedom).sum();
            assert!(freedom < 0.2, "{ratio}: {freedom}");
        }
    }

    #[test]
    fn any_row_may_be_one_of_those_that_vary_more() {
        let mut ratios = alike(100);
        let is_large = |multiple: f64| multiple >= 16.0;
        let before = probability(&VariancePrior::of_ratios(&ratios, 4.0), 1.0, is_large);
        ratios.extend([20.0, 35.0, 60.0, 80.0]);
        let after = probability(&VariancePrior::of_ratios(&ratios, 4.0), 1.0, is_large);
        assert!(after > 2.0 * before && after < 0.01, "{before} {after}");
        let prior = VariancePrior::of_ratios(&alike(100), 4.0);
        let of_sum =
            prior.parts(3.0, true).filter(|part| part.multiple > 1.0).map(|part| part.probability).sum::<f64>();
        let of_row = probability(&prior, 3.0, |multiple| multiple > 1.0);
        assert!(of_sum > 0.1 && of_sum > 4.0 * of_row, "{of_sum} {of_row}");
    }
}
