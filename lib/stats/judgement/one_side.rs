//! Tells whether chance may have put a row on one side only.

use super::{Counting, Counts, Judge, Observation};
use crate::stats::false_discovery::FALSE_DISCOVERY_RATE;

/// Largest probability that chance puts all samples of a row on one side if the row is taken for one that only this side has.
///
/// The larger it is, the more rare functions of the side with more samples are taken for new code. The smaller, the more samples
/// must a function have that was inlined or extracted if it is to count for its callers: eight, if both sides have as many.
const MAX_CHANCE: f64 = 0.005;

impl Judge {
    /// True if a row is on one side only, but so rare that chance alone may have put it there.
    ///
    /// Samples of the larger side count as if it had as few as the other one: functions of one size are then taken for new, or
    /// for gone, on either side. By the probability that all samples are on the side where they are, rare functions of a smaller
    /// side were taken for new code, and equal programs of 600 functions failed in 10 of 12 comparisons of five runs of 4,000
    /// samples with three of 1,000. By that of the larger side, functions that were renamed were new, but none was gone.
    ///
    /// With one run a side, samples are not divided by the dispersion of processes, which tells how much their number varies, not
    /// whether there are any. When they were, ten functions of 40 of 7,700 samples that were inlined at equal cost made their
    /// caller grow in 12 of 12 comparisons.
    ///
    /// Of weights that are no samples, the runs count that have the row.
    pub fn may_be_on_one_side_by_chance(&self, row: &Observation) -> bool {
        match self.design.counting {
            Counting::Exact => false,
            Counting::Samples => {
                let Counts { before, after, chance } = self.count(row, self.rare_dispersion);
                let other_to_own = if after > 0.0 { (1.0 - chance) / chance } else { chance / (1.0 - chance) };
                0.5_f64.powf((before + after) * other_to_own.min(1.0)) > MAX_CHANCE
            }
            Counting::Unknown => RowRuns::new(row).chance() > FALSE_DISCOVERY_RATE,
        }
    }

    /// Returns the least p-value that a row of weights that are no samples can have. If only some runs of one side have it,
    /// chance may have chosen them.
    pub(super) fn least_p_value(&self, row: &Observation) -> f64 {
        let runs = RowRuns::new(row);
        let is_by_chance = runs.is_one_sided && runs.with < runs.side && !self.has_exact_counts;
        if is_by_chance { runs.chance() } else { 0.0 }
    }
}

/// The runs that have a row.
struct RowRuns {
    /// True if they are all on one side.
    is_one_sided: bool,
    /// Their number.
    with: usize,
    /// Number of runs of the side that has the row; of the side after, if both have it.
    side: usize,
    /// Number of all runs.
    all: usize,
}

impl RowRuns {
    fn new(row: &Observation) -> Self {
        let [before, after] =
            [&row.before, &row.after].map(|weights| weights.iter().filter(|weight| **weight > 0.0).count());
        Self {
            is_one_sided: before == 0 || after == 0,
            with: before + after,
            side: if after > 0 { row.after.len() } else { row.before.len() },
            all: row.before.len() + row.after.len(),
        }
    }

    /// Returns the probability that as many runs, chosen by chance, are all on the side.
    fn chance(&self) -> f64 {
        (0..self.with).map(|run| self.side.saturating_sub(run) as f64 / (self.all - run) as f64).product()
    }
}

#[cfg(test)]
mod tests {
    use super::RowRuns;
    use crate::stats::judgement::Observation;

    #[test]
    fn chance_chooses_the_runs_of_one_side() {
        let runs =
            |before: &[f64], after: &[f64]| RowRuns::new(&Observation { before: before.into(), after: after.into() });
        for (found, expected) in [
            (runs(&[0.0; 3], &[7.0; 3]), 1.0 / 20.0),
            (runs(&[0.0; 3], &[0.0, 5.0, 7.0]), 1.0 / 5.0),
            (runs(&[7.0], &[0.0; 5]), 1.0 / 6.0),
            (runs(&[0.0; 2], &[1.0; 5]), 1.0 / 21.0),
        ] {
            assert!(found.is_one_sided && (found.chance() - expected).abs() < 1e-12, "{}", found.chance());
        }
        assert!(!runs(&[1.0, 0.0], &[0.0, 2.0]).is_one_sided);
    }
}
