//! Checks a profile, plain or differential, against rules.
//!
//! Each rule sees each stack once. Shares are of the total weight, in a differential profile of the total after. Growth
//! is in percent of the total before; if the weights are counts, it must also be significant, where a run counts as at
//! most [`EFFECTIVE_SAMPLES_PER_RUN`](crate::stats::significance::EFFECTIVE_SAMPLES_PER_RUN) samples.

mod busy_loop;
mod report;
mod rule;

pub use report::{Style, annotation, format_line, junit, junit_error};
pub use rule::{DEFAULT_BUSY_LOOP_LIMIT, Measure, Rule};

use std::collections::BTreeMap;

use self::busy_loop::BusyLoopDetector;
use crate::Error;
use crate::csv::{Categories, charged_frame};
use crate::diagnostics::Diagnostics;
use crate::folded::{LineKind, StackSink, read_all};
use crate::input::Source;
use crate::markers::is_thread_state;
use crate::profile::{FrameId, Frames, Weight, Weights};
use crate::stats::significance::{FALSE_DISCOVERY_RATE, Runs, SignificanceTest};
use crate::stats::weight_kind::{CommonDivisor, WeightKind};

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
    /// The pattern of the rule, or a function.
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

/// Checks all rules. `runs` is the number of runs that each side of a differential profile adds up.
///
/// # Errors
/// [`Error::Overflow`], those of [`read_all`], [`Error::AlreadyReported`] if a source could not be read, and
/// [`Error::Invalid`] if a growth rule meets a plain profile, if a rule names an unknown category, or if the profile is
/// empty.
pub fn check(
    sources: &[Source],
    rules: &[Rule],
    categories: &Categories,
    runs: Runs,
    diagnostics: &mut Diagnostics,
) -> Result<Vec<Finding>, Error> {
    rules.iter().try_for_each(|rule| rule.check_category(categories))?;
    let mut accumulator = Accumulator::new(rules, categories);
    read_all(sources, &mut accumulator, diagnostics)?;
    if diagnostics.has_failed() {
        return Err(Error::AlreadyReported);
    }
    if accumulator.total == Weights::default() {
        return Err(Error::Invalid("the profile is empty: there is nothing to check".to_owned()));
    }
    if accumulator.differential && (accumulator.total.before.is_zero() || accumulator.total.after.is_zero()) {
        let side = if accumulator.total.before.is_zero() { "before" } else { "after" };
        return Err(Error::Invalid(format!("the total weight {side} is 0: there is nothing to compare")));
    }
    if !accumulator.differential && rules.iter().any(|rule| rule.measure.is_growth()) {
        return Err(Error::Invalid(
            "--growth and --inclusive-growth need a differential profile, which fg-diff writes".to_owned(),
        ));
    }
    let weight_kind = accumulator.differential.then(|| accumulator.divisor.kind_or_one(&accumulator.frames));
    if let Some(doubt) =
        weight_kind.filter(|_| rules.iter().any(|rule| rule.measure.is_growth())).and_then(|it| it.caveat(runs))
    {
        diagnostics.warn(doubt);
    }
    Ok(accumulator.findings(weight_kind, runs))
}

/// Weights of one rule, or of one function under a rule for each function.
#[derive(Debug, Default)]
struct RuleTotal {
    weights: Weights,
    worst: Option<(Vec<FrameId>, Weights)>,
}

impl RuleTotal {
    fn add(&mut self, stack: &[FrameId], weights: Weights, weigh: fn(Weights) -> Weight) -> Result<(), Error> {
        self.weights.add(weights)?;
        if self.worst.as_ref().is_none_or(|(_, worst)| weigh(*worst) < weigh(weights)) {
            self.worst = Some((stack.to_vec(), weights));
        }
        Ok(())
    }
}

/// Applies the rules to stacks while they are read.
struct Accumulator<'a> {
    rules: &'a [Rule],
    frames: Frames,
    /// For each frame, true if it is a thread state.
    is_state: Vec<bool>,
    /// Self weight of each frame.
    self_weights: Vec<Weights>,
    /// For each rule and frame, true if the rule applies to the frame.
    matches: Vec<Vec<bool>>,
    /// Number of stacks that were added.
    stacks: u64,
    /// For each frame, the number of the last stack that contains it.
    last_stack: Vec<u64>,
    /// Distinct frames of the last stack.
    distinct: Vec<FrameId>,
    /// Weights of each rule, by function if the rule limits each function separately.
    totals: Vec<BTreeMap<Option<FrameId>, RuleTotal>>,
    busy_loop: BusyLoopDetector<'a>,
    categories: &'a Categories,
    differential: bool,
    total: Weights,
    divisor: CommonDivisor,
}

impl StackSink for Accumulator<'_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn begin(&mut self, kind: LineKind) {
        self.differential = kind == LineKind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.total.add(weights)?;
        self.divisor.add(weights.after);
        self.classify_new_frames();
        self.busy_loop.add(&self.frames, stack, weights.after)?;
        self.update_distinct_frames(stack);
        let charged = charged_frame(stack, |frame| self.is_state[frame.index()]);
        if let Some(frame) = charged {
            self.self_weights[frame.index()].add(weights)?;
        }
        for (number, rule) in self.rules.iter().enumerate() {
            let (matches, totals) = (&self.matches[number], &mut self.totals[number]);
            let weigh = rule.measure.contribution();
            if rule.measure == Measure::InclusiveGrowth && rule.is_per_function() {
                for frame in &self.distinct {
                    totals.entry(Some(*frame)).or_default().add(stack, weights, weigh)?;
                }
                continue;
            }
            let is_met = match rule.measure {
                Measure::SelfShare | Measure::Category | Measure::Growth | Measure::Unknown => {
                    charged.is_some_and(|frame| matches[frame.index()])
                }
                Measure::Inclusive | Measure::InclusiveGrowth | Measure::Truncated => {
                    stack.iter().any(|frame| matches[frame.index()])
                }
                Measure::Lost => stack.len() == 1 && matches[stack[0].index()],
                Measure::BusyLoop => false,
            };
            if is_met {
                let subject = charged.filter(|_| rule.is_per_function());
                totals.entry(subject).or_default().add(stack, weights, weigh)?;
            }
        }
        Ok(())
    }
}

impl<'a> Accumulator<'a> {
    fn new(rules: &'a [Rule], categories: &'a Categories) -> Self {
        Self {
            rules,
            frames: Frames::new(),
            is_state: Vec::new(),
            self_weights: Vec::new(),
            matches: vec![Vec::new(); rules.len()],
            stacks: 0,
            last_stack: Vec::new(),
            distinct: Vec::new(),
            totals: rules.iter().map(|_| BTreeMap::new()).collect(),
            busy_loop: BusyLoopDetector::new(categories),
            categories,
            differential: false,
            total: Weights::default(),
            divisor: CommonDivisor::default(),
        }
    }

    /// Applies the rules to frames that are new.
    fn classify_new_frames(&mut self) {
        for index in self.is_state.len()..self.frames.len() {
            let name = self.frames.name(FrameId::from_index(index as u32));
            self.is_state.push(is_thread_state(name));
            self.self_weights.push(Weights::default());
            self.last_stack.push(0);
            for (rule, matches) in self.rules.iter().zip(&mut self.matches) {
                matches.push(rule.matches(name, self.categories));
            }
        }
    }

    fn update_distinct_frames(&mut self, stack: &[FrameId]) {
        self.stacks += 1;
        self.distinct.clear();
        for frame in stack {
            let last = std::mem::replace(&mut self.last_stack[frame.index()], self.stacks);
            if last != self.stacks {
                self.distinct.push(*frame);
            }
        }
    }

    fn findings(mut self, weight_kind: Option<WeightKind>, runs: Runs) -> Vec<Finding> {
        let sample = weight_kind.and_then(WeightKind::sample);
        // Self weights, because each sample is in only one of them.
        let test =
            sample.map(|sample| SignificanceTest::new(self.self_weights.iter().copied(), sample, self.total, runs));
        let totals = std::mem::take(&mut self.totals);
        let mut findings = Vec::new();
        for (number, (rule, mut totals)) in self.rules.iter().zip(totals).enumerate() {
            if rule.measure == Measure::BusyLoop {
                findings.push(self.busy_loop.finding(number, rule, &self.frames));
                continue;
            }
            if totals.is_empty() {
                totals.entry(None).or_default();
            }
            let p_values = match test.as_ref().filter(|_| rule.measure.is_growth()) {
                Some(test) => test.adjusted_p_values(totals.values().map(|total| total.weights)),
                None => vec![0.0; totals.len()],
            };
            let is_met = !rule.has_pattern() || self.matches[number].contains(&true);
            let found = totals.into_iter().zip(p_values).map(|((frame, total), p)| {
                let percent = rule.measure.percent(total.weights, self.total);
                let verdict = match percent > rule.limit {
                    true if p > FALSE_DISCOVERY_RATE => Verdict::WithinNoise,
                    true => Verdict::Failed,
                    false if is_met => Verdict::Passed,
                    false => Verdict::NoMatch,
                };
                Finding {
                    rule: number,
                    subject: frame.map_or_else(|| rule.subject(), |frame| self.frames.name(frame).to_vec()),
                    percent,
                    weights: total.weights,
                    verdict,
                    worst: total.worst.map(|(stack, weights)| (self.text(&stack), weights)),
                }
            });
            let start = findings.len();
            findings.extend(found);
            findings[start..].sort_by(|a, b| b.percent.total_cmp(&a.percent).then_with(|| a.subject.cmp(&b.subject)));
        }
        findings
    }

    fn text(&self, stack: &[FrameId]) -> Vec<u8> {
        stack.iter().map(|frame| self.frames.name(*frame)).collect::<Vec<_>>().join(&b';')
    }
}
