//! Warnings of fg-record about runs.

use std::collections::BTreeMap;

use super::Side;
use crate::diagnostics::plural;

/// A warning about runs. Warnings that differ only in numbers are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunWarning {
    /// The first of them.
    pub text: String,
    /// Its side and number.
    pub first: (Side, u32),
    /// Number of runs with such a warning.
    pub runs: u32,
}

impl RunWarning {
    /// Describes the warning and its runs in one line.
    pub fn describe(&self) -> String {
        let others = match self.runs {
            1 => String::new(),
            runs => format!(" and {}", plural((runs - 1).into(), "other run")),
        };
        format!("{}, run {}{others}: {}", self.first.0.name(), self.first.1, self.text)
    }
}

/// The warnings about all runs, by their text without numbers.
#[derive(Debug, Default)]
pub(super) struct RunWarnings(BTreeMap<String, RunWarning>);

impl RunWarnings {
    /// Adds the warnings about a run.
    pub fn add(&mut self, side: Side, number: u32, warnings: Vec<String>) {
        for text in warnings {
            let key = text.chars().filter(|letter| !letter.is_ascii_digit() && *letter != '.').collect();
            let warning = self.0.entry(key).or_insert(RunWarning { text, first: (side, number), runs: 0 });
            warning.runs += 1;
        }
    }

    /// Returns the warnings, those about most runs first.
    pub fn to_vec(&self) -> Vec<RunWarning> {
        let mut warnings: Vec<RunWarning> = self.0.values().cloned().collect();
        warnings.sort_by_key(|warning| std::cmp::Reverse(warning.runs));
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::RunWarnings;
    use crate::bench::Side;

    #[test]
    fn warnings_that_differ_in_numbers_are_one() {
        let mut warnings = RunWarnings::default();
        warnings.add(Side::Before, 2, vec!["lost 3 of 90 samples (3.3 %)".to_owned()]);
        warnings.add(Side::After, 2, vec!["lost 12 of 100 samples (12.0 %)".to_owned(), "throttled".to_owned()]);
        let lines: Vec<String> = warnings.to_vec().iter().map(super::RunWarning::describe).collect();
        assert_eq!(lines, ["before, run 2 and 1 other run: lost 3 of 90 samples (3.3 %)", "after, run 2: throttled",]);
    }
}
