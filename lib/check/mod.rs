//! Checks a profile, plain or differential, or the runs of a comparison, against rules.
//!
//! Each rule sees each stack once. Shares are of the total weight, in a differential profile of the total after. Growth
//! is in percent of the total before, and must also be significant, as fg-csv and fg-diff judge it.

mod accumulate;
mod busy_loop;
mod chances;
mod common;
mod report;
mod rule;

pub use report::{Style, annotation, format_line, junit, junit_error};
pub use rule::{DEFAULT_BUSY_LOOP_LIMIT, Measure, Rule};

use std::collections::BTreeSet;

use self::accumulate::{Accumulator, RuleTotal, Subject};
use self::chances::Chances;
use self::common::Common;
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
/// [`Error::Overflow`], those of [`read_all`], [`Error::AlreadyReported`] if a source could not be read, and
/// [`Error::Invalid`] if a growth rule meets a plain profile, if a rule names an unknown category, or if the profile is
/// empty, and if growth cannot be judged.
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
    check_totals(accumulator.total, accumulator.differential)?;
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
        chances.caveat.into_iter().for_each(|caveat| diagnostics.warn(caveat));
        diagnostics.note(&chances.describe());
    }
    let common = match &chances {
        Some(_) => Common::new(&mut accumulator, runs.as_ref(), weights)?,
        None => None,
    };
    let findings = find(accumulator, chances.as_ref(), common);
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

/// Fails if there is nothing to check, or nothing to compare.
fn check_totals(total: Weights, is_differential: bool) -> Result<(), Error> {
    if total == Weights::default() {
        return Err(Error::Invalid("the profile is empty: there is nothing to check".to_owned()));
    }
    if is_differential && (total.before.is_zero() || total.after.is_zero()) {
        let side = if total.before.is_zero() { "before" } else { "after" };
        return Err(Error::Invalid(format!("the total weight {side} is 0: there is nothing to compare")));
    }
    Ok(())
}

fn clone_frames(frames: &Frames) -> Frames {
    let mut clone = Frames::new();
    clone.intern_all(frames);
    clone
}

/// Returns the findings of all rules, in their order, the largest value of each first.
fn find<'a>(mut all: Accumulator<'a>, all_chances: Option<&Chances>, mut common: Option<Common<'a>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, rule) in all.rules.iter().enumerate() {
        let (accumulator, chances) = match &mut common {
            Some(common) if rule.is_of_common_functions() => (&mut common.accumulator, Some(&common.chances)),
            _ => (&mut all, all_chances),
        };
        let mut totals = std::mem::take(&mut accumulator.totals[number]);
        let accumulator = &*accumulator;
        if rule.measure == Measure::BusyLoop {
            findings.push(accumulator.busy_loop.finding(number, rule, &accumulator.frames));
            continue;
        }
        if totals.is_empty() {
            totals.insert(Subject::Rule, RuleTotal::default());
        }
        let mut noisy = BTreeSet::new();
        let is_met = !rule.has_pattern() || accumulator.matches[number].contains(&true);
        let found = totals.into_iter().map(|(subject, total)| {
            let percent = rule.measure.percent(total.weights, accumulator.total);
            let chance = chances.filter(|_| rule.measure.is_growth()).map(|all| all.chance(number, rule, subject));
            let verdict = match percent > rule.limit {
                true if !chance.flatten().is_none_or(is_significant) => {
                    if let Subject::Function(frame) = subject {
                        noisy.insert(frame);
                    }
                    Verdict::WithinNoise
                }
                true => Verdict::Failed,
                false if is_met => Verdict::Passed,
                false => Verdict::NoMatch,
            };
            Finding {
                rule: number,
                subject: accumulator.subject_name(rule, subject),
                percent,
                weights: total.weights,
                verdict,
                worst: total.worst.map(|(stack, weights)| (stack.to_text(&accumulator.frames), weights)),
            }
        });
        let start = findings.len();
        findings.extend(found);
        if let (Measure::Growth, Some(common), Some(chances)) = (rule.measure, &common, all_chances) {
            findings.extend(find_new(number, rule, common, &noisy, chances));
        }
        findings[start..].sort_by(|a, b| b.percent.total_cmp(&a.percent).then_with(|| a.subject.cmp(&b.subject)));
    }
    findings
}

/// Returns the new functions that exceed a limit by themselves and count for functions that exceed it within noise: the noise of
/// a caller does not hide what it calls now.
fn find_new(
    number: usize,
    rule: &Rule,
    common: &Common<'_>,
    noisy: &BTreeSet<FrameId>,
    chances: &Chances,
) -> Vec<Finding> {
    let total = common.accumulator.total;
    let findings = common.new_functions_of(noisy).into_iter().filter_map(|(frame, after)| {
        let weights = Weights { after, ..Weights::default() };
        let (subject, percent) = (Subject::Function(frame), rule.measure.percent(weights, total));
        let is_real = chances.chance(number, rule, subject).is_none_or(is_significant);
        (percent > rule.limit && is_real).then(|| Finding {
            rule: number,
            subject: common.accumulator.subject_name(rule, subject),
            percent,
            weights,
            verdict: Verdict::Failed,
            worst: None,
        })
    });
    findings.collect()
}

/// Returns a stack as folded text, without its weight.
fn join_names(stack: &[FrameId], frames: &Frames) -> Vec<u8> {
    stack.iter().map(|frame| frames.name(*frame)).collect::<Vec<_>>().join(&b';')
}
