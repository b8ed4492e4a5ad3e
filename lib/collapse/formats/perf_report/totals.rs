//! The weights of stacks that a report does not list: perf leaves out small ones, and states the total.

use super::{Entry, SampleCount, Section};
use crate::Error;
use crate::collapse::document::Document;
use crate::profile::Weight;

/// The weight of all stacks of an event.
#[derive(Clone, Copy)]
pub(super) struct Total {
    pub(super) weight: Weight,
    /// True if perf states it, false if it is extrapolated.
    pub(super) is_stated: bool,
}

/// A weight of one, in millionths.
const ONE: u128 = 1_000_000;

/// The share of the weight without stacks from which on it is said, in percent. Samples without a callchain have none either.
const MIN_UNLISTED_PERCENT: u128 = 5;

/// 100 percent, in millionths of a percent.
const HUNDRED_PERCENT: u128 = 100_000_000;

/// The largest rounding error of a percentage, in millionths of a percent: perf prints two decimal places.
const ROUNDING_ERROR: u128 = 5_000;

fn checked_sum(mut numbers: impl Iterator<Item = Option<u128>>) -> Option<u128> {
    numbers.try_fold(0u128, |sum, number| sum.checked_add(number?))
}

/// Returns this percentage, in millionths of a percent, of a total weight.
fn percent_of(total: Weight, percent: u128) -> Option<u128> {
    total.millionths().checked_mul(percent).map(|product| product / HUNDRED_PERCENT)
}

impl Section {
    /// Warns if perf left out stacks with much of the weight.
    pub(super) fn warn_of_unlisted(
        &self,
        unlisted: &[u128],
        total: Option<Total>,
        document: &mut Document<'_>,
    ) -> Result<(), Error> {
        let unlisted = checked_sum(unlisted.iter().copied().map(Some)).ok_or(Error::Overflow)?;
        let all = total.map_or(HUNDRED_PERCENT, |total| total.weight.millionths());
        let percent = unlisted.checked_mul(100).ok_or(Error::Overflow)? / all.max(1);
        if self.entries.iter().all(|entry| entry.stacks.is_empty()) {
            document.warn(
                "a table without stacks: its functions have no callers; give perf report -g folded --percent-limit 0",
            );
        } else if total.is_some_and(|total| !total.is_stated) {
            let what = "its number of samples is rounded, so that those which perf left out are not known";
            document.warn(&format!("{what}; give perf report --percent-limit 0, or -g folded,period"));
        } else if percent >= MIN_UNLISTED_PERCENT {
            let what = "of the weight without stacks: perf leaves out those below --percent-limit";
            document.warn(&format!("{percent} % {what}"));
        }
        Ok(())
    }

    /// Returns true if the rows are all of the event, but for rounding: perf leaves out those below `--percent-limit` and those that
    /// filters do not select.
    pub(super) fn is_whole(&self) -> bool {
        let shown: u128 = self.entries.iter().map(|entry| entry.percent.millionths()).sum();
        shown + ROUNDING_ERROR * self.entries.len() as u128 >= HUNDRED_PERCENT
    }

    /// Returns for each entry the weight that none of its listed stacks has, because perf left out small stacks. If
    /// the rows are all of the total that perf states, these weights add up to what is missing from it.
    pub(super) fn unlisted_weights(&self, total: Option<Total>) -> Result<Vec<u128>, Error> {
        let unlisted = self.entries.iter().map(|entry| entry.unlisted_weight(total.map(|total| total.weight)));
        let mut unlisted = unlisted.collect::<Option<Vec<u128>>>().ok_or(Error::Overflow)?;
        let Some(Total { weight, .. }) = total.filter(|total| total.is_stated && self.is_whole()) else {
            return Ok(unlisted);
        };
        let listed = checked_sum(self.entries.iter().map(Entry::listed)).ok_or(Error::Overflow)?;
        let mut unlisted_sum = checked_sum(unlisted.iter().copied().map(Some)).ok_or(Error::Overflow)?;
        let mut missing = weight.millionths().saturating_sub(listed) / ONE;
        for weight in unlisted.iter_mut().filter(|weight| **weight > 0) {
            let product = missing.checked_mul(*weight).ok_or(Error::Overflow)?;
            let part = product.saturating_add(unlisted_sum / 2) / unlisted_sum;
            (missing, unlisted_sum) = (missing - part, unlisted_sum - *weight);
            *weight = part * ONE;
        }
        Ok(unlisted)
    }

    /// Returns the weight of the whole event if stacks have numbers, or `None` if they have percentages.
    ///
    /// perf does not say whether the numbers are samples or periods. They are samples if they fit into the stated
    /// number of samples, else periods if they fit into the stated sum of periods; else the total is extrapolated from
    /// the entries that have numbers.
    pub(super) fn find_total(&self) -> Result<Option<Total>, Error> {
        let (mut numbers, mut percents) = (0u128, 0u128);
        for entry in self.entries.iter().filter(|entry| entry.stacks.iter().any(|stack| !stack.is_percent)) {
            percents = percents.checked_add(entry.percent.millionths()).ok_or(Error::Overflow)?;
            numbers = entry.listed().and_then(|listed| numbers.checked_add(listed)).ok_or(Error::Overflow)?;
        }
        if percents == 0 {
            return Ok(None);
        }
        let numbers = Weight::from_millionths(numbers);
        if let Some(SampleCount { max, is_exact: true, .. }) = self.samples
            && numbers <= max
        {
            return Ok(Some(Total { weight: max, is_stated: true }));
        }
        if let Some(periods) = self.periods
            && self.samples.is_none_or(|samples| numbers > samples.max)
            && numbers <= periods
        {
            return Ok(Some(Total { weight: periods, is_stated: true }));
        }
        let extrapolated = numbers.millionths().checked_mul(HUNDRED_PERCENT).ok_or(Error::Overflow)? / percents;
        Ok(Some(Total { weight: Weight::from_millionths(extrapolated), is_stated: false }))
    }
}

impl Entry {
    /// Returns the sum of the listed stacks.
    pub(super) fn listed(&self) -> Option<u128> {
        checked_sum(self.stacks.iter().map(|stack| Some(stack.weight.millionths())))
    }

    /// Returns the part of the entry's weight that the listed stacks do not have, or zero if rounding explains it.
    /// `total` is the weight of the event; without it, all weights are percentages.
    pub(super) fn unlisted_weight(&self, total: Option<Weight>) -> Option<u128> {
        let (listed, percent) = (self.listed()?, self.percent.millionths());
        let Some(total) = total else {
            let unlisted = percent.saturating_sub(listed);
            let rounding_error = ROUNDING_ERROR * (self.stacks.len() as u128 + 1);
            return Some(if unlisted > rounding_error { unlisted } else { 0 });
        };
        let unlisted = percent_of(total, percent)?.saturating_sub(listed);
        Some(if unlisted > percent_of(total, ROUNDING_ERROR)? { (unlisted + ONE / 2) / ONE * ONE } else { 0 })
    }
}
