//! The part of the differences between runs that all rows share: a slow run is slow in most functions.

use super::{Counting, Judge, Observation, mean, median, sum_squares};

/// Fewest rows of [`SHARED_SAMPLES`] samples whose median shows what all rows of a run share.
const SHARED_ROWS: usize = 5;
const SHARED_SAMPLES: f64 = 20.0;

/// The part of the differences between runs that all rows share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// Weight of each side relative to the mean of both, by which most rows and the total differ.
    pub(super) levels: (f64, f64),
    /// Relative deviation of each run from its side, before and after.
    pub(super) deviations: Observation,
    /// Variance of the deviations.
    pub(super) variance: f64,
    /// Mean of the total if the levels are those of it: few rows mirror each other then, and do not show each other's spread.
    pub(super) mean_of_total: Option<f64>,
}

impl Judge {
    /// Returns what all rows of a run share: the median of the large ones, or the total if these are too few. `None` with
    /// one run a side and few rows.
    pub(super) fn find_shared(&self, rows: &[&Observation], total: &Observation) -> Option<Shared> {
        let fewest = self.fewest_shared();
        let mut large: Vec<&Observation> = rows.iter().copied().filter(|row| row.mean() > fewest).collect();
        let mut is_of_total = false;
        if large.len() < SHARED_ROWS {
            if self.freedom == 0.0 || total.mean() <= 0.0 {
                return None;
            }
            (large, is_of_total) = (vec![total], true);
        }
        let level =
            |weight: &dyn Fn(&Observation) -> f64| median(large.iter().map(|row| weight(row) / row.mean()).collect());
        let before: Vec<f64> = (0..self.design.before.len()).map(|run| level(&|row| row.before[run])).collect();
        let after: Vec<f64> = (0..self.design.after.len()).map(|run| level(&|row| row.after[run])).collect();
        let (total_before, total_after) = total.means();
        if before.iter().chain(&after).any(|level| *level <= 0.0) || total_before <= 0.0 || total_after <= 0.0 {
            return None;
        }
        // The system calls of one new call site may be most of the rows, and one function may be most of the total.
        let shift = nearer_to_zero((mean(&after) / mean(&before)).ln(), (total_after / total_before).ln());
        let levels = (2.0 / (1.0 + shift.exp()), 2.0 / (1.0 + (-shift).exp()));
        let before = self.shared_deviations(rows, total, |row| &row.before);
        let after = self.shared_deviations(rows, total, |row| &row.after);
        let variance = if self.freedom > 0.0 { sum_squares(&before, &after) / self.freedom } else { 0.0 };
        let mean_of_total = is_of_total.then(|| total.mean());
        Some(Shared { levels, deviations: Observation { before, after }, variance, mean_of_total })
    }

    /// Returns the relative deviation that most large rows have in each run of a side, and that the total has too: a few
    /// rows agree by chance, and a single row can move the total. Rows are compared with their mean on that side: what
    /// differs between the sides must not add to the spread.
    fn shared_deviations(
        &self,
        rows: &[&Observation],
        total: &Observation,
        runs: impl Fn(&Observation) -> &Vec<f64>,
    ) -> Vec<f64> {
        let fewest = self.fewest_shared();
        let large: Vec<&Vec<f64>> = rows.iter().map(|row| runs(row)).filter(|row| mean(row) > fewest).collect();
        let of_total = relative_deviations(runs(total));
        let levels = (0..of_total.len()).map(|run| median(large.iter().map(|row| row[run] / mean(row)).collect()));
        let levels: Vec<f64> = levels.collect();
        if large.len() < SHARED_ROWS || levels.iter().any(|level| *level <= 0.0) {
            return of_total;
        }
        relative_deviations(&levels)
            .into_iter()
            .zip(of_total)
            .map(|(most, total)| nearer_to_zero(most, total))
            .collect()
    }

    /// Returns the mean above which a row is large enough to show what all rows of a run share.
    fn fewest_shared(&self) -> f64 {
        if self.design.counting == Counting::Samples { SHARED_SAMPLES * self.sample } else { 0.0 }
    }
}

fn relative_deviations(runs: &[f64]) -> Vec<f64> {
    runs.iter().map(|weight| weight / mean(runs) - 1.0).collect()
}

/// Returns the value that is nearer to zero; zero if their signs differ.
pub(super) fn nearer_to_zero(one: f64, other: f64) -> f64 {
    if one * other > 0.0 { one.signum() * one.abs().min(other.abs()) } else { 0.0 }
}
