//! Judges rows of sums: the one judgement of fg-diff, fg-csv, fg-check and fg-report.

use std::borrow::Cow;

use super::Row;
use crate::Error;
use crate::profile::{FrameId, Frames, Weights};
use crate::stats::false_discovery::{FALSE_DISCOVERY_RATE, Family, Test};
use crate::stats::judgement::{Design, Judge, Observation};

/// The chances of the differences of some rows, which were judged together.
#[derive(Debug)]
pub struct Judgement {
    judge: Judge,
    family: Family,
    /// The adjusted p-value of each row and weight.
    pub chances: Vec<Vec<f64>>,
}

/// True if a difference with this adjusted p-value is called significant.
pub fn is_significant(chance: f64) -> bool {
    chance <= FALSE_DISCOVERY_RATE
}

/// Formats the chance of a difference. Rounding makes no difference significant.
pub fn format_chance(chance: f64, decimals: usize) -> String {
    let unit = 0.1_f64.powi(decimals as i32);
    let is_rounded_down = !is_significant(chance) && chance < FALSE_DISCOVERY_RATE + unit / 2.0;
    format!("{:.decimals$}", if is_rounded_down { FALSE_DISCOVERY_RATE + unit } else { chance })
}

/// Fails if the differences between the weights of a profile were flattened ([`Frames::is_flattened_mark`]): weights before, and
/// their total, are not those that were measured, and nothing can be judged by them.
///
/// # Errors
/// [`Error::Invalid`] with what to compare instead.
pub fn check_not_flattened(is_flattened: bool) -> Result<(), Error> {
    match is_flattened {
        true => Err(Error::Invalid(
            "fg-diff --significant or --min-change has replaced weights before; give the profiles with --before and --after, or \
             the output of fg-diff without these options"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

/// Returns the observations of rows whose sides are one run each, or sums of several.
pub fn observe_sums(rows: &[Row]) -> Vec<Vec<Observation>> {
    rows.iter().map(|row| row.weights.iter().map(|weights| observe_sum(*weights)).collect()).collect()
}

/// Returns the observation of two sums.
pub fn observe_sum(weights: Weights) -> Observation {
    Observation { before: vec![weights.before.as_f64()], after: vec![weights.after.as_f64()] }
}

impl Judgement {
    /// Judges all weights of all rows together. `total` has the total weight of each run. The first weights of rows
    /// show how much runs differ. `None` if the design does not allow a judgement.
    ///
    /// A difference of `[lost]` always counts as noise: it says nothing of the program. It is no part of the total either.
    pub fn new(
        rows: &[Row],
        frames: &Frames,
        observations: &[Vec<Observation>],
        total: &Observation,
        design: Design,
    ) -> Option<Self> {
        if !design.can_judge() {
            return None;
        }
        let judged = rows.iter().zip(observations).filter(|(row, _)| !frames.is_lost(&row.frames));
        let disjoint: Vec<&Observation> = judged.filter_map(|(_, observations)| observations.first()).collect();
        let lost = rows.iter().zip(observations).find(|(row, _)| frames.is_lost(&row.frames));
        let total = lost
            .and_then(|(_, lost)| lost.first())
            .map_or(Cow::Borrowed(total), |lost| Cow::Owned(total.without(lost)));
        let judge = Judge::new(&disjoint, &total, design);
        let tests: Vec<Vec<Test>> = rows
            .iter()
            .zip(observations)
            .map(|(row, observations)| match frames.is_lost(&row.frames) {
                true => vec![Test::NONE; observations.len()],
                false => observations.iter().map(|one| judge.test(one, observations.first())).collect(),
            })
            .collect();
        let family = Family::new(&tests.concat());
        let chances = tests.iter().map(|tests| tests.iter().map(|test| family.adjust(*test)).collect()).collect();
        Some(Self { judge, family, chances })
    }

    /// Returns the chance of the difference of a group of rows: what it would be if the group were one of the rows. `own`
    /// is the first weight of a row that is part of the group.
    pub fn chance_of_group(&self, observation: &Observation, own: Option<&Observation>) -> f64 {
        self.family.adjust(self.judge.test(observation, own))
    }

    /// Returns the p-value of the difference of a row by itself, not adjusted for the number of rows. `own` is the first weight
    /// of the row.
    pub fn p_value(&self, observation: &Observation, own: Option<&Observation>) -> f64 {
        self.judge.test(observation, own).p_value
    }

    /// True if a row is on one side only, but so rare that chance alone may have put it there. `observations` are those of all its
    /// weights, the last of which contains the others, and `chances` those of their differences.
    pub fn may_be_on_one_side_by_chance(&self, observations: &[Observation], chances: &[f64]) -> bool {
        let is_chance = observations.last().is_none_or(|all| self.judge.may_be_on_one_side_by_chance(all));
        is_chance && !chances.iter().any(|chance| is_significant(*chance))
    }

    /// Returns the p-value of the hypothesis that a row has grown by `growth` or more. `own` is the first weight of the
    /// row.
    pub fn growth_p_value(&self, observation: &Observation, own: Option<&Observation>, growth: f64) -> f64 {
        self.judge.growth_p_value(observation, own, growth)
    }

    /// Returns the chances of sums of rows of which no two contain the same sample, judged together: each the sum and its rows.
    pub fn chances_of_sums(&self, sums: &[(Observation, Vec<Observation>)]) -> Vec<f64> {
        adjusted(&sums.iter().map(|(sum, rows)| self.judge.test_sum(sum, rows)).collect::<Vec<_>>())
    }

    /// Returns the chances of groups of samples, such as categories or calls: judged together, by the spread of the rows.
    pub fn chances_of_groups(&self, observations: &[Observation]) -> Vec<f64> {
        adjusted(&observations.iter().map(|one| self.judge.test(one, None)).collect::<Vec<_>>())
    }

    /// Returns the chances of all weights of rows that contain the same samples as the judged ones, each as if it were one of
    /// these. `own` returns the first weight of the judged row of the same name.
    pub fn chances_as_parts<'o>(
        &self,
        rows: &[Row],
        frames: &Frames,
        observations: &[Vec<Observation>],
        own: impl Fn(FrameId) -> Option<&'o Observation>,
    ) -> Vec<Vec<f64>> {
        let chances = rows.iter().zip(observations).map(|(row, observations)| match frames.is_lost(&row.frames) {
            true => vec![1.0; observations.len()],
            false => observations.iter().map(|one| self.chance_of_group(one, own(row.frames[0]))).collect(),
        });
        chances.collect()
    }

    /// Returns the chances of the first weights of rows, judged together by the spread of functions. Those of `[lost]` are 1.
    pub fn chances_of_rows(&self, rows: &[Row], frames: &Frames, observations: &[Vec<Observation>]) -> Vec<f64> {
        let is_judged: Vec<bool> = rows.iter().map(|row| !frames.is_lost(&row.frames)).collect();
        let judged = observations.iter().zip(&is_judged).filter(|(_, is_judged)| **is_judged);
        let judged: Vec<Observation> = judged.filter_map(|(all, _)| all.first().cloned()).collect();
        let mut chances = self.chances_of_groups(&judged).into_iter();
        is_judged.iter().map(|is_judged| if *is_judged { chances.next().unwrap_or(1.0) } else { 1.0 }).collect()
    }
}

/// Returns the p-values of tests, adjusted together.
fn adjusted(tests: &[Test]) -> Vec<f64> {
    let family = Family::new(tests);
    tests.iter().map(|test| family.adjust(*test)).collect()
}

#[cfg(test)]
mod tests {
    use super::format_chance;

    #[test]
    fn rounding_makes_nothing_significant() {
        let texts = [0.0, 0.04996, 0.05, 0.050_01, 0.0501, 0.3].map(|chance| format_chance(chance, 4));
        assert_eq!(texts, ["0.0000", "0.0500", "0.0500", "0.0501", "0.0501", "0.3000"]);
    }
}
