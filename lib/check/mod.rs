//! A gate: whether a profile, or the difference of two, keeps to rules.
//!
//! Every stack is looked at once, by every rule. A share is of all weight, of a differential profile of that after;
//! growth is of all weight before, and where the weights are counts it must be more than noise, for which a run counts as
//! so many samples at most as [`ONE_RUN`](crate::stats::significance::ONE_RUN) says.

mod report;
mod rule;
mod spin;

pub use report::{Style, annotation, junit, junit_of_error, line};
pub use rule::{BUSY, Measure, Rule};

use std::collections::BTreeMap;

use self::spin::Spin;
use crate::Error;
use crate::csv::{Categories, charged};
use crate::diagnostics::Diagnostics;
use crate::folded::{Kind, StackSink, read_all};
use crate::input::Source;
use crate::markers::is_thread_state;
use crate::profile::{FrameId, Frames, Weight, Weights};
use crate::stats::significance::{Differences, FALSE_DISCOVERIES, Runs};
use crate::stats::weight_kind::{Divisor, Weighed};

/// Whether a rule is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Kept,
    /// It is, since no frame of the profile is what it is about: rightly so, or the function has another name by now.
    Unmet,
    /// The limit is exceeded, but that may be noise.
    Excused,
    /// It is not.
    Broken,
}

/// What a rule found.
#[derive(Debug)]
pub struct Finding {
    /// The rule's place among all.
    pub rule: usize,
    /// What it was found of: the rule's pattern, or a function.
    pub subject: Vec<u8>,
    /// Its value, in hundredths.
    pub percent: f64,
    /// The weights that it is made of.
    pub weights: Weights,
    /// What that means for the rule.
    pub verdict: Verdict,
    /// The stack that contributes most, and its weights.
    pub worst: Option<(Vec<u8>, Weights)>,
}

/// Checks all rules; each side of a differential profile adds up so many runs.
///
/// # Errors
/// [`Error::Overflow`], those of [`read_all`], [`Error::AlreadyReported`] if a source could not be read, and [`Error::Invalid`] if a
/// rule about growth meets a profile that is not differential, if a rule names a category that there is not, or if there
/// is nothing to check.
pub fn check(
    sources: &[Source],
    rules: &[Rule],
    categories: &Categories,
    runs: Runs,
    diagnostics: &mut Diagnostics,
) -> Result<Vec<Finding>, Error> {
    rules.iter().try_for_each(|rule| rule.knows_its_category(categories))?;
    let mut intake = Intake::new(rules, categories);
    read_all(sources, &mut intake, diagnostics)?;
    if diagnostics.has_failed() {
        return Err(Error::AlreadyReported);
    }
    if intake.total == Weights::default() {
        return Err(Error::Invalid("the profile is empty: there is nothing to check".to_owned()));
    }
    if intake.differential && (intake.total.before.is_zero() || intake.total.after.is_zero()) {
        let side = if intake.total.before.is_zero() { "before" } else { "after" };
        return Err(Error::Invalid(format!("the profile is empty {side}: there is nothing to compare")));
    }
    if !intake.differential && rules.iter().any(|rule| rule.measure.is_growth()) {
        return Err(Error::Invalid(
            "rules about growth need a profile of two weights a line, as fg-diff writes it".to_owned(),
        ));
    }
    let weighed = intake.differential.then(|| intake.divisor.weighed_if_many(&intake.frames));
    if let Some(doubt) =
        weighed.filter(|_| rules.iter().any(|rule| rule.measure.is_growth())).and_then(|it| it.doubt(runs))
    {
        diagnostics.warn(doubt);
    }
    Ok(intake.findings(weighed, runs))
}

/// What one rule, or one function under a rule for each, has gathered.
#[derive(Debug, Default)]
struct Tally {
    weights: Weights,
    worst: Option<(Vec<FrameId>, Weights)>,
}

impl Tally {
    fn add(&mut self, stack: &[FrameId], weights: Weights, weigh: fn(Weights) -> Weight) -> Result<(), Error> {
        self.weights.add(weights)?;
        if self.worst.as_ref().is_none_or(|(_, worst)| weigh(*worst) < weigh(weights)) {
            self.worst = Some((stack.to_vec(), weights));
        }
        Ok(())
    }
}

/// Looks at what is read.
struct Intake<'a> {
    rules: &'a [Rule],
    frames: Frames,
    /// For each frame whether it is a state, its self weight, and for each rule whether the rule is about it.
    is_state: Vec<bool>,
    alone: Vec<Weights>,
    concerns: Vec<Vec<bool>>,
    /// How many stacks there were, and for each frame the number of the last in which it stood.
    stacks: u64,
    last_stack: Vec<u64>,
    /// The frames of the last stack, each once, however often it recurs.
    distinct: Vec<FrameId>,
    /// For each rule what it gathers, by function where each is judged by itself.
    tallies: Vec<BTreeMap<Option<FrameId>, Tally>>,
    spin: Spin<'a>,
    categories: &'a Categories,
    differential: bool,
    total: Weights,
    divisor: Divisor,
}

impl StackSink for Intake<'_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn begin(&mut self, kind: Kind) {
        self.differential = kind == Kind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        self.total.add(weights)?;
        self.divisor.add(weights.after);
        self.learn();
        self.spin.add(&self.frames, stack, weights.after)?;
        self.note_distinct(stack);
        let charged = charged(stack, |frame| self.is_state[frame.index()]);
        if let Some(frame) = charged {
            self.alone[frame.index()].add(weights)?;
        }
        for (number, rule) in self.rules.iter().enumerate() {
            let (concerns, tallies) = (&self.concerns[number], &mut self.tallies[number]);
            let weigh = rule.measure.contribution();
            if rule.measure == Measure::InclusiveGrowth && rule.judges_each() {
                for frame in &self.distinct {
                    tallies.entry(Some(*frame)).or_default().add(stack, weights, weigh)?;
                }
                continue;
            }
            let is_met = match rule.measure {
                Measure::SelfShare | Measure::Category | Measure::Growth | Measure::Unknown => {
                    charged.is_some_and(|frame| concerns[frame.index()])
                }
                Measure::Inclusive | Measure::InclusiveGrowth | Measure::Truncated => {
                    stack.iter().any(|frame| concerns[frame.index()])
                }
                Measure::Lost => stack.len() == 1 && concerns[stack[0].index()],
                Measure::BusyLoop => false,
            };
            if is_met {
                let subject = charged.filter(|_| rule.judges_each());
                tallies.entry(subject).or_default().add(stack, weights, weigh)?;
            }
        }
        Ok(())
    }
}

impl<'a> Intake<'a> {
    fn new(rules: &'a [Rule], categories: &'a Categories) -> Self {
        Self {
            rules,
            frames: Frames::new(),
            is_state: Vec::new(),
            alone: Vec::new(),
            concerns: vec![Vec::new(); rules.len()],
            stacks: 0,
            last_stack: Vec::new(),
            distinct: Vec::new(),
            tallies: rules.iter().map(|_| BTreeMap::new()).collect(),
            spin: Spin::new(categories),
            categories,
            differential: false,
            total: Weights::default(),
            divisor: Divisor::default(),
        }
    }

    /// Judges frames that are new.
    fn learn(&mut self) {
        for index in self.is_state.len()..self.frames.len() {
            let name = self.frames.name(FrameId::from_index(index as u32));
            self.is_state.push(is_thread_state(name));
            self.alone.push(Weights::default());
            self.last_stack.push(0);
            for (rule, concerns) in self.rules.iter().zip(&mut self.concerns) {
                concerns.push(rule.concerns(name, self.categories));
            }
        }
    }

    fn note_distinct(&mut self, stack: &[FrameId]) {
        self.stacks += 1;
        self.distinct.clear();
        for frame in stack {
            let last = std::mem::replace(&mut self.last_stack[frame.index()], self.stacks);
            if last != self.stacks {
                self.distinct.push(*frame);
            }
        }
    }

    fn findings(mut self, weighed: Option<Weighed>, runs: Runs) -> Vec<Finding> {
        let sample = weighed.and_then(Weighed::sample);
        // Self weights, since no sample is in two of them.
        let differences = sample.map(|sample| Differences::new(self.alone.iter().copied(), sample, self.total, runs));
        let tallies = std::mem::take(&mut self.tallies);
        let mut findings = Vec::new();
        for (number, (rule, mut tallies)) in self.rules.iter().zip(tallies).enumerate() {
            if rule.measure == Measure::BusyLoop {
                findings.push(self.spin.finding(number, rule, &self.frames));
                continue;
            }
            if tallies.is_empty() {
                tallies.entry(None).or_default();
            }
            let chances = match differences.as_ref().filter(|_| rule.measure.is_growth()) {
                Some(differences) => differences.chances(tallies.values().map(|tally| tally.weights)),
                None => vec![0.0; tallies.len()],
            };
            let is_met = !rule.has_pattern() || self.concerns[number].contains(&true);
            let found = tallies.into_iter().zip(chances).map(|((frame, tally), chance)| {
                let percent = rule.measure.percent(tally.weights, self.total);
                let verdict = match percent > rule.limit {
                    true if chance > FALSE_DISCOVERIES => Verdict::Excused,
                    true => Verdict::Broken,
                    false if is_met => Verdict::Kept,
                    false => Verdict::Unmet,
                };
                Finding {
                    rule: number,
                    subject: frame.map_or_else(|| rule.subject(), |frame| self.frames.name(frame).to_vec()),
                    percent,
                    weights: tally.weights,
                    verdict,
                    worst: tally.worst.map(|(stack, weights)| (self.text(&stack), weights)),
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
