//! Adjusts p-values for the number of tests.
//!
//! The share of false discoveries is bounded as by Benjamini and Hochberg (1995), for growth and its opposite separately, and
//! for rows that both sides have without the others: otherwise, each function that was renamed or became faster would make it
//! more likely that one that did not change is said to have grown. Rows that are too rare to ever differ significantly do not
//! count as tests (Tarone, 1990; Gilbert, 2005).

/// Highest expected share of false discoveries among the differences called significant. If nothing changed, it is the
/// chance of calling anything significant.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// How a row differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Both sides have it, and the side after more.
    Grown,
    /// Both sides have it, and the side before as much or more.
    Shrunk,
    /// Only the side after has it.
    New,
    /// Only the side before has it.
    Gone,
}

const CHANGES: [Change; 4] = [Change::Grown, Change::Shrunk, Change::New, Change::Gone];

impl Change {
    /// Returns the change between two weights.
    pub fn of(before: f64, after: f64) -> Self {
        match after > before {
            true if before <= 0.0 => Self::New,
            true => Self::Grown,
            false if after <= 0.0 => Self::Gone,
            false => Self::Shrunk,
        }
    }

    /// True if discoveries of the other change make one of this change more likely.
    fn is_ranked_among(self, other: Self) -> bool {
        match self {
            Self::Grown | Self::Shrunk => other == self,
            Self::New => matches!(other, Self::New | Self::Grown),
            Self::Gone => matches!(other, Self::Gone | Self::Shrunk),
        }
    }
}

/// A p-value, and the smallest that the row could have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// Probability of a difference at least as large if nothing changed.
    pub p_value: f64,
    /// The p-value if all samples of the row were on one side.
    pub smallest: f64,
    /// How the row differs.
    pub change: Change,
}

impl Test {
    /// The test of a row that cannot differ.
    pub const NONE: Self = Self { p_value: 1.0, smallest: 1.0, change: Change::Shrunk };
}

/// P-values that are adjusted together.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// The rows that are tested by which each change is ranked, as in [`CHANGES`].
    ranks: [Ranks; 4],
    /// Number of rows that are tested.
    count: usize,
    /// A row is tested if its smallest p-value is at most this.
    limit: f64,
}

/// P-values by which others are ranked.
#[derive(Clone, Debug, Default)]
struct Ranks {
    /// In ascending order.
    sorted: Vec<f64>,
    /// Adjusted p-values of the same rows.
    adjusted: Vec<f64>,
}

impl Ranks {
    fn new(p_values: impl Iterator<Item = f64>, count: usize) -> Self {
        let mut sorted: Vec<f64> = p_values.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let mut adjusted = sorted.clone();
        let mut lowest: f64 = 1.0;
        for (rank, value) in adjusted.iter_mut().enumerate().rev() {
            lowest = lowest.min(*value * count as f64 / (rank + 1) as f64);
            *value = lowest;
        }
        Self { sorted, adjusted }
    }
}

impl Family {
    /// Returns the family of these tests.
    pub fn new(tests: &[Test]) -> Self {
        let mut smallest: Vec<f64> = tests.iter().map(|test| test.smallest).collect();
        smallest.sort_unstable_by(f64::total_cmp);
        let mut count = 1;
        while smallest.partition_point(|smallest| *smallest <= FALSE_DISCOVERY_RATE / count as f64) > count {
            count += 1;
        }
        let limit = FALSE_DISCOVERY_RATE / count as f64;
        let tested: Vec<&Test> = tests.iter().filter(|test| test.smallest <= limit).collect();
        let ranks = CHANGES.map(|change| {
            let others = tested.iter().filter(|test| change.is_ranked_among(test.change));
            Ranks::new(others.map(|test| test.p_value), tested.len())
        });
        Self { ranks, count: tested.len(), limit }
    }

    /// Returns the adjusted p-value of a test, of the family or not: the smallest false discovery rate at which its
    /// difference is called significant; 1 if the row is too rare to be tested.
    pub fn adjust(&self, test: Test) -> f64 {
        if test.smallest > self.limit {
            return 1.0;
        }
        let Ranks { sorted, adjusted } = &self.ranks[test.change as usize];
        let rank = sorted.partition_point(|p| *p <= test.p_value);
        let own = test.p_value * self.count.max(1) as f64 / rank.max(1) as f64;
        let higher = adjusted.get(rank).copied().unwrap_or(1.0);
        own.min(higher).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Family, Test};

    fn test(p_value: f64) -> Test {
        Test { p_value, smallest: 0.0, change: Change::Grown }
    }

    #[test]
    fn adjusts_by_rank() {
        let family = Family::new(&[0.01, 0.04, 0.03, 0.9].map(test));
        let adjusted = [0.01, 0.04, 0.03, 0.9].map(|p| family.adjust(test(p)));
        for (found, expected) in adjusted.iter().zip([0.04, 0.16 / 3.0, 0.16 / 3.0, 0.9]) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
        // A value between two others is no better than the lower and no worse than the higher one.
        assert!((0.04..=0.16 / 3.0 + 1e-12).contains(&family.adjust(test(0.02))));
        assert_eq!(Family::default().adjust(test(0.02)), 0.02);
    }

    #[test]
    fn rare_rows_are_no_tests() {
        let rare = Test { p_value: 1.0, smallest: 0.5, change: Change::Gone };
        let mut tests = vec![rare; 100_000];
        tests.push(test(0.01));
        let family = Family::new(&tests);
        assert_eq!((family.adjust(tests[100_000]), family.adjust(rare)), (0.01, 1.0));
    }

    /// Functions that are new, gone or faster tell nothing of whether another one has grown.
    #[test]
    fn other_changes_make_no_growth_likelier() {
        let others = [Change::New, Change::Gone, Change::Shrunk].map(|change| Test { change, ..test(1e-9) });
        let tests = [&[test(0.01)][..], &others.repeat(10)].concat();
        assert!((Family::new(&tests).adjust(tests[0]) - 0.31).abs() < 1e-12);
        // What is new is judged among all that is more.
        let grown = [vec![test(1e-9); 30], vec![Test { change: Change::New, ..test(0.01) }]].concat();
        assert!((Family::new(&grown).adjust(grown[30]) - 0.01).abs() < 1e-12);
    }
}
