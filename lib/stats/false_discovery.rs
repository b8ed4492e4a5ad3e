//! Adjusts p-values for the number of tests.
//!
//! The share of false discoveries is bounded as by Benjamini and Hochberg (1995). Rows that are too rare to ever differ
//! significantly do not count as tests (Tarone, 1990; Gilbert, 2005).

/// Highest expected share of false discoveries among the differences called significant. If nothing changed, it is the
/// chance of calling anything significant.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// A p-value, and the smallest that the row could have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// Probability of a difference at least as large if nothing changed.
    pub p_value: f64,
    /// The p-value if all samples of the row were on one side.
    pub smallest: f64,
}

impl Test {
    /// The test of a row that cannot differ.
    pub const NONE: Self = Self { p_value: 1.0, smallest: 1.0 };
}

/// P-values that are adjusted together.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// P-values of the rows that are tested, in ascending order.
    sorted: Vec<f64>,
    /// Adjusted p-values of the same rows.
    adjusted: Vec<f64>,
    /// A row is tested if its smallest p-value is at most this.
    limit: f64,
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
        let tested = tests.iter().filter(|test| test.smallest <= limit);
        let mut sorted: Vec<f64> = tested.map(|test| test.p_value).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let mut adjusted = sorted.clone();
        let mut lowest: f64 = 1.0;
        for (rank, value) in adjusted.iter_mut().enumerate().rev() {
            lowest = lowest.min(*value * sorted.len() as f64 / (rank + 1) as f64);
            *value = lowest;
        }
        Self { sorted, adjusted, limit }
    }

    /// Returns the adjusted p-value of a test, of the family or not: the smallest false discovery rate at which its
    /// difference is called significant; 1 if the row is too rare to be tested.
    pub fn adjust(&self, test: Test) -> f64 {
        if test.smallest > self.limit {
            return 1.0;
        }
        let rank = self.sorted.partition_point(|p| *p <= test.p_value);
        let own = test.p_value * self.sorted.len().max(1) as f64 / rank.max(1) as f64;
        let higher = self.adjusted.get(rank).copied().unwrap_or(1.0);
        own.min(higher).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, Test};

    fn test(p_value: f64) -> Test {
        Test { p_value, smallest: 0.0 }
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
        let rare = Test { p_value: 1.0, smallest: 0.5 };
        let mut tests = vec![rare; 100_000];
        tests.push(test(0.01));
        let family = Family::new(&tests);
        assert_eq!((family.adjust(tests[100_000]), family.adjust(rare)), (0.01, 1.0));
    }
}
