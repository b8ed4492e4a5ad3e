//! Checks a profile, plain or differential, or the runs of a comparison, against rules.
//!
//! Each rule sees each stack once. Shares are of the total weight, in a differential profile of the total after. Growth
//! is in percent of the total before, and must also be significant, as fg-csv and fg-diff judge it.

mod accumulate;
mod busy_loop;
mod chances;
mod common;
mod new_code;
mod report;
mod rule;

pub use report::{Style, annotation, format_line, junit, junit_error};
pub use rule::{DEFAULT_BUSY_LOOP_LIMIT, Measure, Rule};

use std::collections::BTreeSet;

use self::accumulate::{Accumulator, RuleTotal, Subject};
use self::chances::Chances;
use self::common::Common;
use self::new_code::Search;
use crate::Error;
use crate::csv::Categories;
use crate::diagnostics::Diagnostics;
use crate::diff::ComparedRuns;
use crate::folded::{LineKind, StackSink as _, read_all};
use crate::input::Source;
use crate::profile::{FrameId, Frames, Weights};
use crate::stats::sample_weight::WeightOptions;
use crate::tally::{check_not_flattened, is_significant};

/// Result of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The value is within the limit.
    Passed,
    /// No frame matches: the function does not occur, or has another name now.
    NoMatch,
    /// The limit is exceeded, but not significantly.
    WithinNoise,
    /// The limit is exceeded.
    Failed,
}

/// The value that a rule found, for all functions that match or for one of them.
#[derive(Debug)]
pub struct Finding {
    /// Index of the rule.
    pub rule: usize,
    /// The pattern of the rule, or a function, call or category.
    pub subject: Vec<u8>,
    /// The value in percent.
    pub percent: f64,
    /// Weights behind the value.
    pub weights: Weights,
    /// Result of the rule.
    pub verdict: Verdict,
    /// Stack that contributes most, with its weights.
    pub worst: Option<(Vec<u8>, Weights)>,
}

/// The input of a check.
#[derive(Debug)]
pub enum Input<'a> {
    /// Plain or differential profiles, which are added up.
    Profiles(&'a [Source]),
    /// The runs of a comparison.
    Runs(Box<ComparedRuns>),
}

/// Checks all rules.
///
/// # Errors
/// [`Error::Invalid`] if a growth rule is applied to a plain profile or to weights that cannot be judged, if a rule names an
/// unknown category, or if the profile is empty. [`Error::AlreadyReported`] if a source could not be read, and the errors of
/// [`read_all`].
pub fn check(
    input: Input,
    rules: &[Rule],
    categories: &Categories,
    weights: WeightOptions,
    diagnostics: &mut Diagnostics,
) -> Result<Vec<Finding>, Error> {
    rules.iter().try_for_each(|rule| rule.check_category(categories))?;
    let mut accumulator = Accumulator::new(rules, categories);
    let runs = match input {
        Input::Profiles(sources) => {
            read_all(sources, &mut accumulator, diagnostics)?;
            if diagnostics.has_failed() {
                return Err(Error::AlreadyReported);
            }
            None
        }
        Input::Runs(compared) => {
            *accumulator.frames() = clone_frames(&compared.profile.frames);
            accumulator.begin(LineKind::Differential);
            compared
                .profile
                .for_each_sorted::<Error>(|stack| accumulator.add(stack.frames, stack.shared, stack.weights))?;
            Some(*compared)
        }
    };
    check_totals(&accumulator, runs.is_some(), diagnostics)?;
    let has_growth = rules.iter().any(|rule| rule.measure.is_growth());
    if has_growth && !accumulator.differential {
        return Err(Error::Invalid(
            "growth needs runs (--before, --after) or a differential profile, which fg-diff writes".to_owned(),
        ));
    }
    if has_growth {
        check_not_flattened(accumulator.is_flattened)?;
    }
    let chances = match has_growth {
        true => Some(Chances::new(&mut accumulator, runs.as_ref(), weights)?),
        false => None,
    };
    if let Some(chances) = &chances {
        // Neither growth nor its absence: as fg-diff, which refuses to say what is significant.
        if let Some(reason) = chances.refusal() {
            return Err(Error::Invalid(reason.to_owned()));
        }
        chances.caveat.iter().for_each(|caveat| diagnostics.warn(caveat));
        diagnostics.note(&chances.describe());
    }
    let common = match &chances {
        Some(chances) => Common::new(&mut accumulator, runs.as_ref(), chances)?,
        None => None,
    };
    let findings = find(accumulator, chances.as_ref(), common)?;
    let is_uncertain = chances.as_ref().is_some_and(Chances::is_uncertain);
    if is_uncertain
        && findings.iter().any(|found| found.verdict == Verdict::Failed && rules[found.rule].measure.is_growth())
    {
        diagnostics.warn(
            "one run per side does not show how much runs differ: confirm growth with several, --before and --after",
        );
    }
    Ok(findings)
}

/// Fails if there is nothing to check: a side has no weight, or all of it was lost. A differential profile may be a part of a
/// comparison, in which everything is new.
fn check_totals(accumulator: &Accumulator<'_>, has_runs: bool, diagnostics: &mut Diagnostics) -> Result<(), Error> {
    let (total, lost) = (accumulator.total, accumulator.lost);
    if total == Weights::default() {
        return Err(Error::Invalid("the profile is empty: there is nothing to check".to_owned()));
    }
    let sides = [("before", total.before, lost.before), ("after", total.after, lost.after)];
    let empty = sides.into_iter().filter(|(_, all, lost)| accumulator.differential && all == lost);
    for (side, all, _) in empty {
        let may_be_new = side == "before" && all.is_zero() && !has_runs;
        if !may_be_new {
            let what = if all.is_zero() { "" } else { ", but for what was lost" };
            return Err(Error::Invalid(format!("the total weight {side} is 0{what}: there is nothing to compare")));
        }
        diagnostics.warn("the total weight before is 0: everything is new");
    }
    Ok(())
}

fn clone_frames(frames: &Frames) -> Frames {
    let mut clone = Frames::new();
    clone.intern_all(frames);
    clone
}

/// Returns the findings of all rules, in their order, the largest value of each first.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
fn find<'a>(
    mut all: Accumulator<'a>,
    all_chances: Option<&Chances>,
    mut common: Option<Common<'a>>,
) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for (number, rule) in all.rules.iter().enumerate() {
        if rule.measure == Measure::BusyLoop {
            findings.push(all.busy_loop.finding(number, rule, &all.frames));
            continue;
        }
        let (accumulator, chances, new_code) = match &mut common {
            Some(Common { accumulator, chances, new_code }) if rule.is_of_common_functions() => {
                (accumulator, Some(&*chances), Some(&*new_code))
            }
            common => (&mut all, all_chances, common.as_ref().map(|common| &common.new_code)),
        };
        let chances = chances.filter(|_| rule.measure.is_growth());
        let mut found = find_subjects(number, rule, accumulator, chances);
        if let (Some(new_code), Some(chances)) = (new_code, all_chances.filter(|_| rule.measure.is_growth())) {
            let noisy = found.iter().filter(|(_, finding)| finding.verdict == Verdict::WithinNoise);
            let noisy: BTreeSet<Subject> = noisy.map(|(subject, _)| *subject).collect();
            let has_failed = found.iter().any(|(_, finding)| finding.verdict == Verdict::Failed);
            let total = accumulator.total;
            let search = Search { number, rule, noisy: &noisy, has_failed, chances, total };
            let new = new_code.find(&search, accumulator)?;
            found.extend(new.into_iter().map(|finding| (Subject::Rule, finding)));
        }
        let mut found: Vec<Finding> = found.into_iter().map(|(_, finding)| finding).collect();
        found.sort_by(|a, b| b.percent.total_cmp(&a.percent).then_with(|| a.subject.cmp(&b.subject)));
        findings.extend(found);
    }
    Ok(findings)
}

/// Returns the findings about the subjects of a rule.
fn find_subjects(
    number: usize,
    rule: &Rule,
    accumulator: &mut Accumulator<'_>,
    chances: Option<&Chances>,
) -> Vec<(Subject, Finding)> {
    let mut totals = std::mem::take(&mut accumulator.totals[number]);
    if totals.is_empty() {
        totals.insert(Subject::Rule, RuleTotal::default());
    }
    let is_met = !rule.has_pattern() || accumulator.matches[number].contains(&true);
    let found = totals.into_iter().map(|(subject, total)| {
        let percent = rule.measure.percent(total.weights, accumulator.total);
        let verdict = match percent > rule.limit {
            true => match chances.and_then(|all| all.chance(number, rule, subject)).is_none_or(is_significant) {
                true => Verdict::Failed,
                false => Verdict::WithinNoise,
            },
            false if is_met => Verdict::Passed,
            false => Verdict::NoMatch,
        };
        let finding = Finding {
            rule: number,
            subject: accumulator.subject_name(rule, subject),
            percent,
            weights: total.weights,
            verdict,
            worst: total.worst.map(|(stack, weights)| (stack.to_text(&accumulator.frames), weights)),
        };
        (subject, finding)
    });
    found.collect()
}

/// Returns a stack as folded text, without its weight.
fn join_names(stack: &[FrameId], frames: &Frames) -> Vec<u8> {
    stack.iter().map(|frame| frames.name(*frame)).collect::<Vec<_>>().join(&b';')
}
