//! The spread that rows of a similar size have from run to run, with which a row's own is averaged.
//!
//! Few runs estimate the variance of a row badly, so it is moderated: averaged with a prior, by degrees of freedom that follow from
//! how much the rows differ (`variance_prior`). The prior of a row begins with what its size suggests.
//!
//! It has two factors, a trend and the neighbours. The trend is the sum of the noise of counting, and of a share of the
//! weight that runs differ by, as in Anders and Huber (Genome Biology 11, 2010, R106): the variance of a row of many samples is
//! proportional to the square of its weight. It tells what to expect of a function that is larger than all others. The
//! neighbours multiply it by the mean of their ratios to it, by a kernel.

use super::distributions::chi_square_tail;
use super::variance_prior::{Part, VariancePrior};

/// Width of the kernel that weighs rows by their size, in units of the natural logarithm.
const BAND: f64 = 1.0;

/// Rows are kept in bins of this width, which is small in comparison with [`BAND`].
const BIN: f64 = 0.125;

/// Ratios of rows to the trend are cut at this, so that no single row decides: with several runs a side, and with one.
const HIGHEST: (f64, f64) = (4.0, 25.0);

/// Weight of the trend beside that of the neighbours, in rows: with several runs a side, and with one.
const TREND_ROWS: (f64, f64) = (2.0, 20.0);

/// The trend is taken from the median of the rows less this number of standard errors: a trend that is too high for the largest
/// rows hides their changes. Durations have no sampling noise to which the spread is added: with the error, the times that threads
/// waited differed in 9 instead of 4 % of comparisons of equal programs (`wait` in `benches/verdict`).
const TREND_ERRORS: f64 = 1.0;

/// Fewest samples of rows that are large enough to show their dispersion.
const INFORMATIVE_SAMPLES: f64 = 5.0;

/// A row's size, and its variance divided by its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSpread {
    /// Mean weight of a run, in samples.
    pub size: f64,
    /// Variance divided by mean, in samples; 1 for independent samples.
    pub dispersion: f64,
}

/// The dispersion that is expected of a row, from the spread of others.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Dispersion of the smallest rows.
    base: f64,
    /// The variance of the largest rows, relative to the square of their mean.
    relative: f64,
    /// Weight of the trend beside that of the neighbours, in rows.
    trend_rows: f64,
    /// Largest ratio of a row to the trend that counts, and the mean of ratios that are cut at it.
    highest: (f64, f64),
    /// Number of rows and sum of their ratios to the trend in each bin of the logarithm of the size.
    bins: Vec<(f64, f64)>,
    /// Logarithm of the size at which the bins begin.
    start: f64,
    /// The variances of rows relative to what is expected of them; `None` if they have none, with one run a side.
    prior: Option<VariancePrior>,
}

impl Peers {
    /// Returns what is expected if nothing is known of other rows.
    pub fn unknown(base: f64) -> Self {
        Self {
            base,
            relative: 0.0,
            trend_rows: TREND_ROWS.0,
            highest: (HIGHEST.0, 1.0),
            bins: Vec::new(),
            start: 0.0,
            prior: None,
        }
    }

    /// Learns from rows of one run a side: by how much they differ.
    pub fn of_single_runs(rows: &[RowSpread], base: f64) -> Self {
        let peers = Self { trend_rows: TREND_ROWS.1, highest: (HIGHEST.1, 1.0), ..Self::unknown(base) };
        peers.with_rows(rows)
    }

    /// Learns from the spread of rows from run to run, which has `freedom` degrees of freedom in each. `is_sampled` is
    /// true if the weights are samples.
    pub fn of_runs(rows: &[RowSpread], base: f64, freedom: f64, is_sampled: bool) -> Self {
        let (informative, errors) = if is_sampled { (INFORMATIVE_SAMPLES, TREND_ERRORS) } else { (0.0, 0.0) };
        let large: Vec<RowSpread> = rows.iter().copied().filter(|row| row.size >= informative).collect();
        let highest = (HIGHEST.0, mean_of_cut_ratios(freedom, HIGHEST.0));
        let relative = find_relative(&large, base, freedom, errors);
        let mut peers = Self { relative, highest, ..Self::unknown(base) }.with_rows(rows);
        let ratios = large.iter().map(|row| {
            let expected = peers.dispersion(row.size, Some(*row)).max(f64::MIN_POSITIVE);
            row.dispersion / expected
        });
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_unstable_by(f64::total_cmp);
        peers.prior = Some(VariancePrior::of_ratios(&ratios, freedom));
        peers
    }

    /// Sorts rows into bins.
    fn with_rows(mut self, rows: &[RowSpread]) -> Self {
        self.start = rows.iter().map(|row| row.size.ln()).fold(f64::INFINITY, f64::min);
        for row in rows {
            let bin = self.bin(row.size);
            if bin >= self.bins.len() {
                self.bins.resize(bin + 1, (0.0, 0.0));
            }
            self.bins[bin].0 += 1.0;
            self.bins[bin].1 += self.ratio_to_trend(*row);
        }
        self
    }

    /// Returns the dispersion that is expected of the smallest rows.
    pub fn base(&self) -> f64 {
        self.base
    }

    fn trend(&self, size: f64) -> f64 {
        self.base + self.relative * size
    }

    /// Returns the ratio of a row's dispersion to the trend. It is 1 on average, although large ones are cut.
    fn ratio_to_trend(&self, row: RowSpread) -> f64 {
        (row.dispersion / self.trend(row.size)).min(self.highest.0) / self.highest.1
    }

    fn bin(&self, size: f64) -> usize {
        ((size.ln() - self.start) / BIN).round().max(0.0) as usize
    }

    /// Returns the weight of a bin's rows in the mean for a row of this size.
    fn bin_weight(&self, bin: usize, size: f64) -> f64 {
        let distance = (self.start + bin as f64 * BIN - size.ln()) / BAND;
        (-distance.powi(2) / 2.0).exp()
    }

    /// Returns the dispersion of rows of a similar size, without the row itself.
    pub fn dispersion(&self, size: f64, own: Option<RowSpread>) -> f64 {
        let (mut rows, mut sum) = (self.trend_rows, self.trend_rows);
        for (bin, (count, ratios)) in self.bins.iter().enumerate().filter(|(_, bin)| bin.0 > 0.0) {
            let weight = self.bin_weight(bin, size);
            rows += weight * count;
            sum += weight * ratios;
        }
        if let Some(own) = own.filter(|_| !self.bins.is_empty()) {
            let weight = self.bin_weight(self.bin(own.size), size);
            rows -= weight;
            sum -= weight * self.ratio_to_trend(own);
        }
        (sum / rows).max(0.0) * self.trend(size)
    }

    /// Returns the parts of the prior that a row may belong to; none if nothing is known. `ratio` is the row's own variance
    /// relative to what is expected of it. `is_sum` is true for a sum of rows.
    pub fn parts(&self, ratio: f64, is_sum: bool) -> impl Iterator<Item = Part> {
        self.prior.iter().flat_map(move |prior| prior.parts(ratio, is_sum))
    }

    /// Returns the degrees of freedom that the other rows add to a row's own.
    pub fn freedom(&self) -> f64 {
        self.prior.as_ref().map_or(0.0, VariancePrior::freedom)
    }
}

/// Returns the variance of large rows relative to the square of their mean.
///
/// It is the largest value with which, within their error, half of the rows vary by more than the median of a chi-square allows
/// (Wilson and Hilferty, 1931), so that the trend follows the calm majority. With the mean of the rows instead, growth by a fifth
/// of a calm function beside 12 of 39 that vary by 30 % was found in .19 instead of .54 of comparisons with three runs a side.
fn find_relative(rows: &[RowSpread], base: f64, freedom: f64, errors: f64) -> f64 {
    let median = (1.0 - 2.0 / 9.0 / freedom).powi(3);
    let count = rows.len() as f64;
    let most = 0.5 * (count + errors * count.sqrt());
    let is_exceeded = |relative: f64| {
        rows.iter().filter(|row| row.dispersion > median * (base + relative * row.size)).count() as f64 > most
    };
    if !is_exceeded(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (1e-12_f64, 1e12_f64);
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        match is_exceeded(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Returns the mean of the ratio of a variance with this number of degrees of freedom to its expectation, if larger ones are cut.
fn mean_of_cut_ratios(freedom: f64, highest: f64) -> f64 {
    let end = freedom * highest;
    1.0 - chi_square_tail(end, freedom + 2.0) + highest * chi_square_tail(end, freedom)
}

#[cfg(test)]
mod tests {
    use super::{Peers, RowSpread, mean_of_cut_ratios};

    fn row(size: f64, dispersion: f64) -> RowSpread {
        RowSpread { size, dispersion }
    }

    fn of_runs(rows: &[RowSpread]) -> Peers {
        Peers::of_runs(rows, 1.0, 4.0, true)
    }

    #[test]
    fn compares_with_rows_of_a_similar_size() {
        let mut rows = vec![row(10.0, 4.0); 40];
        rows.extend(vec![row(1000.0, 1.0); 40]);
        let peers = Peers::of_single_runs(&rows, 1.0);
        assert!(peers.dispersion(10.0, None) > 2.9 && peers.dispersion(1000.0, None) < 1.1);
        // No row is as large: only the trend is known.
        assert!((peers.dispersion(1e6, None) - 1.0).abs() < 0.01);
    }

    #[test]
    fn expects_of_larger_rows_the_relative_spread_of_the_others() {
        // Ratios of variances with four degrees of freedom, at even distances.
        let ratios = [0.18, 0.34, 0.48, 0.61, 0.76, 0.91, 1.10, 1.35, 1.69, 2.37];
        let expected = |relative: f64| {
            let sizes = (10..50).map(|n| f64::from(n * n)).zip(ratios.iter().cycle());
            let rows: Vec<RowSpread> = sizes.map(|(size, ratio)| row(size, ratio * (1.0 + relative * size))).collect();
            of_runs(&rows).dispersion(100_000.0, None)
        };
        assert!((700.0..1100.0).contains(&expected(0.01)), "{}", expected(0.01));
        assert!(expected(0.0) < 1.2, "{}", expected(0.0));
    }

    #[test]
    fn leaves_the_row_itself_out() {
        let rows = [row(100.0, 20.0), row(100.0, 1.0), row(100.0, 1.0)];
        let peers = Peers::of_single_runs(&rows, 1.0);
        assert!((peers.dispersion(100.0, Some(rows[0])) - 1.0).abs() < 1e-9);
        assert!(peers.dispersion(100.0, Some(rows[1])) > 1.5);
    }

    #[test]
    fn the_trend_follows_the_calm_majority() {
        let mut rows: Vec<RowSpread> = (10..40).map(|n| row(f64::from(n * n), 1.0)).collect();
        rows.extend((10..30).map(|n| f64::from(n * n)).map(|size| row(size, 1.0 + 0.1 * size)));
        let expected = of_runs(&rows).dispersion(10_000.0, None);
        assert!(expected < 10.0, "{expected}");
    }

    #[test]
    fn ratios_that_are_cut_have_the_mean_of_an_exponential_distribution() {
        // With two degrees of freedom, the mean of what is cut at h is 1 - e^-h.
        let mean = mean_of_cut_ratios(2.0, 4.0);
        assert!((mean - (1.0 - (-4.0_f64).exp())).abs() < 1e-6, "{mean}");
    }
}
