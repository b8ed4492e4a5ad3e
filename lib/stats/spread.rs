//! The spread that rows of a similar size have from run to run, with which a row's own is averaged.
//!
//! Few runs estimate the variance of a row badly, so it is moderated as in limma: averaged with a prior, in which many
//! rows agree, by degrees of freedom that follow from how much the rows differ (Smyth, Statistical Applications in
//! Genetics and Molecular Biology 3, 2004, article 3).

use super::distributions::{inverse_trigamma, trigamma};

/// Width of the kernel that weighs rows by their size, in units of the natural logarithm.
const BAND: f64 = 1.0;

/// Rows are kept in bins of this width, which is small in comparison with [`BAND`].
const BIN: f64 = 0.125;

/// A row counts as at most this multiple of the base dispersion, so that no single one decides.
const HIGHEST: f64 = 25.0;

/// Fewest rows from which the degrees of freedom of the prior are estimated.
const MIN_ROWS: usize = 5;

/// Degrees of freedom of the prior if few rows are known, and the number of rows as which this counts in an estimate.
const USUAL_FREEDOM: f64 = 6.0;
const USUAL_ROWS: f64 = 6.0;

/// Limits of an estimate of the degrees of freedom.
const FREEDOM: (f64, f64) = (4.0, 40.0);

/// A row's size, and its variance divided by its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSpread {
    /// Mean weight of a run, in samples.
    pub size: f64,
    /// Variance divided by mean, in samples; 1 for independent samples.
    pub dispersion: f64,
}

/// Dispersion by size.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Dispersion without any row, and the number of rows as which it counts.
    base: (f64, f64),
    /// Number of rows and sum of their dispersions in each bin of the logarithm of the size.
    bins: Vec<(f64, f64)>,
    /// Logarithm of the size at which the bins begin.
    start: f64,
}

impl Peers {
    /// Sorts rows into bins.
    pub fn new(rows: &[RowSpread], base: f64, base_rows: f64) -> Self {
        let start = rows.iter().map(|row| row.size.ln()).fold(f64::INFINITY, f64::min);
        let mut peers = Self { base: (base, base_rows), bins: Vec::new(), start };
        for row in rows {
            let bin = peers.bin(row.size);
            if bin >= peers.bins.len() {
                peers.bins.resize(bin + 1, (0.0, 0.0));
            }
            peers.bins[bin].0 += 1.0;
            peers.bins[bin].1 += peers.bounded(row.dispersion);
        }
        peers
    }

    /// Returns the dispersion that is expected without any row.
    pub fn base(&self) -> f64 {
        self.base.0
    }

    fn bin(&self, size: f64) -> usize {
        ((size.ln() - self.start) / BIN).round().max(0.0) as usize
    }

    /// Returns what the rows of a bin are worth for a row of this size.
    fn bin_weight(&self, bin: usize, size: f64) -> f64 {
        let distance = (self.start + bin as f64 * BIN - size.ln()) / BAND;
        (-distance.powi(2) / 2.0).exp()
    }

    fn bounded(&self, dispersion: f64) -> f64 {
        dispersion.min(HIGHEST * self.base.0)
    }

    /// Returns the dispersion of rows of a similar size, without the row itself.
    pub fn dispersion(&self, size: f64, own: Option<RowSpread>) -> f64 {
        let (mut rows, mut sum) = (self.base.1, self.base.0 * self.base.1);
        for (bin, (count, dispersions)) in self.bins.iter().enumerate().filter(|(_, bin)| bin.0 > 0.0) {
            let weight = self.bin_weight(bin, size);
            rows += weight * count;
            sum += weight * dispersions;
        }
        if let Some(own) = own {
            let weight = self.bin_weight(self.bin(own.size), size);
            rows -= weight;
            sum -= weight * self.bounded(own.dispersion);
        }
        (sum / rows).max(0.0)
    }

    /// Returns the degrees of freedom of the prior. `rows` are those that are large enough to show their dispersion,
    /// with `freedom` degrees of freedom each.
    pub fn prior_freedom(&self, rows: &[RowSpread], freedom: f64) -> f64 {
        if rows.len() < MIN_ROWS {
            return USUAL_FREEDOM;
        }
        let logs = rows.iter().map(|row| {
            let expected = self.dispersion(row.size, Some(*row)).max(f64::MIN_POSITIVE);
            (row.dispersion / expected).max(1e-3).ln()
        });
        let logs: Vec<f64> = logs.collect();
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let excess = variance - trigamma(freedom / 2.0);
        let estimate = if excess > 0.0 { 2.0 * inverse_trigamma(excess) } else { FREEDOM.1 };
        (count * estimate.clamp(FREEDOM.0, FREEDOM.1) + USUAL_ROWS * USUAL_FREEDOM) / (count + USUAL_ROWS)
    }
}

#[cfg(test)]
mod tests {
    use super::{Peers, RowSpread};

    fn row(size: f64, dispersion: f64) -> RowSpread {
        RowSpread { size, dispersion }
    }

    #[test]
    fn compares_with_rows_of_a_similar_size() {
        let mut rows = vec![row(10.0, 4.0); 40];
        rows.extend(vec![row(1000.0, 1.0); 40]);
        let peers = Peers::new(&rows, 1.0, 2.0);
        assert!(peers.dispersion(10.0, None) > 3.7 && peers.dispersion(1000.0, None) < 1.1);
        // No row is as large: only the base is known.
        assert!((peers.dispersion(1e6, None) - 1.0).abs() < 0.01);
    }

    #[test]
    fn leaves_the_row_itself_out() {
        let rows = [row(100.0, 20.0), row(100.0, 1.0), row(100.0, 1.0)];
        let peers = Peers::new(&rows, 1.0, 2.0);
        assert!((peers.dispersion(100.0, Some(rows[0])) - 1.0).abs() < 1e-9);
        assert!(peers.dispersion(100.0, Some(rows[1])) > 4.0);
    }

    fn freedom(rows: &[RowSpread]) -> f64 {
        Peers::new(rows, 1.0, 2.0).prior_freedom(rows, 4.0)
    }

    #[test]
    fn rows_that_agree_are_worth_more() {
        let alike: Vec<RowSpread> = (0..40).map(|n| row(100.0, 1.0 + 0.02 * f64::from(n % 5))).collect();
        let unlike: Vec<RowSpread> = (0..40).map(|n| row(100.0, f64::from(1 + n % 2 * 50))).collect();
        assert!(freedom(&alike) > 15.0 && freedom(&unlike) < 6.0, "{} {}", freedom(&alike), freedom(&unlike));
        assert_eq!(freedom(&alike[..3]), 6.0);
    }
}
