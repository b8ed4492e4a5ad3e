//! Sums up weights by rule while stacks are read.

use std::collections::{BTreeMap, BTreeSet};

use super::busy_loop::BusyLoopDetector;
use super::join_names;
use super::rule::{Measure, Rule};
use crate::Error;
use crate::csv::{Categories, OTHER_CATEGORY};
use crate::folded::{LineKind, StackSink};
use crate::markers::LOST;
use crate::profile::{FrameId, Frames, Weight, Weights};
use crate::stats::sample_weight::WeightSurvey;
use crate::tally::{Charging, GroupBy, Tally};

/// The part of a profile that a sum is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// All that matches the rule.
    Rule,
    /// A function, for rules about each of them.
    Function(FrameId),
    /// The calls of one function by another.
    Edge(FrameId, FrameId),
    /// The functions of a category, by its number.
    Category(usize),
}

/// Weights of one rule, or of one subject under a rule for each.
#[derive(Debug, Default)]
pub(super) struct RuleTotal {
    pub weights: Weights,
    pub worst: Option<(ShortStack, Weights)>,
}

/// Number of frames of a stack that is shown: those at the root, and those at the leaf.
const SHOWN: (usize, usize) = (4, 28);

/// A stack without the frames in its middle, if there are many: each function of a deep stack may be a subject.
#[derive(Debug)]
pub(super) struct ShortStack {
    start: Vec<FrameId>,
    /// The frames at the leaf; empty if the start is the whole stack.
    end: Vec<FrameId>,
}

impl ShortStack {
    fn new(stack: &[FrameId]) -> Self {
        match stack.len() > SHOWN.0 + SHOWN.1 {
            true => Self { start: stack[..SHOWN.0].to_vec(), end: stack[stack.len() - SHOWN.1..].to_vec() },
            false => Self { start: stack.to_vec(), end: Vec::new() },
        }
    }

    /// Returns the frames as folded text, without a weight.
    pub(super) fn to_text(&self, frames: &Frames) -> Vec<u8> {
        let mut text = join_names(&self.start, frames);
        if !self.end.is_empty() {
            text.extend_from_slice(";…;".as_bytes());
            text.extend(join_names(&self.end, frames));
        }
        text
    }
}

impl RuleTotal {
    fn add(&mut self, stack: &[FrameId], weights: Weights, weigh: fn(Weights) -> Weight) -> Result<(), Error> {
        self.weights.add(weights)?;
        if self.worst.as_ref().is_none_or(|(_, worst)| weigh(*worst) < weigh(weights)) {
            self.worst = Some((ShortStack::new(stack), weights));
        }
        Ok(())
    }
}

/// Applies the rules to stacks while they are read.
pub(super) struct Accumulator<'a> {
    pub rules: &'a [Rule],
    pub frames: Frames,
    /// For each rule and frame, true if the rule applies to the frame.
    pub matches: Vec<Vec<bool>>,
    /// Weights of each rule, by subject if the rule limits each separately.
    pub totals: Vec<BTreeMap<Subject, RuleTotal>>,
    pub busy_loop: BusyLoopDetector<'a>,
    pub categories: &'a Categories,
    /// Names of the categories.
    pub category_names: Vec<&'a str>,
    /// For each frame, the number of its category.
    pub category: Vec<usize>,
    pub differential: bool,
    pub total: Weights,
    /// The part of the total that was lost; in a differential profile only.
    pub lost: Weights,
    pub survey: WeightSurvey,
    /// True if differences were flattened.
    pub is_flattened: bool,
    /// Sums of all functions, and of all calls if a rule needs them; in a differential profile only.
    pub functions: Tally,
    pub edges: Option<Tally>,
    /// All stacks if a rule limits growth; in a differential profile only.
    pub stack_sums: Option<Tally>,
    /// Sums of all leaves if a rule limits the growth of categories; in a differential profile only.
    pub leaves: Option<Tally>,
    charging: Charging,
    /// Number of stacks that were added.
    stacks: u64,
    /// For each frame, the number of the last stack that contains it.
    last_stack: Vec<u64>,
    /// Distinct frames of the last stack.
    distinct: Vec<FrameId>,
}

impl StackSink for Accumulator<'_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn begin(&mut self, kind: LineKind) {
        self.differential = kind == LineKind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.add_shown_as(stack, stack, shared, weights)
    }
}

impl<'a> Accumulator<'a> {
    /// Adds a stack that reports show as another one.
    pub fn add_shown_as(
        &mut self,
        shown: &[FrameId],
        stack: &[FrameId],
        shared: usize,
        weights: Weights,
    ) -> Result<(), Error> {
        self.total.add(weights)?;
        self.classify_new_frames();
        if self.differential {
            match self.frames.is_lost(stack) {
                true => self.lost.add(weights)?,
                false => self.survey.add_sides(weights),
            }
            self.is_flattened |= self.frames.is_flattened_mark(stack, weights);
            self.functions.add(&self.frames, stack, shared, weights)?;
            for tally in [&mut self.edges, &mut self.leaves, &mut self.stack_sums].into_iter().flatten() {
                tally.add(&self.frames, stack, shared, weights)?;
            }
        }
        self.busy_loop.add(&self.frames, stack, weights.after)?;
        self.update_distinct_frames(stack);
        for number in 0..self.rules.len() {
            let weigh = self.rules[number].measure.contribution();
            for subject in self.subjects(number, stack) {
                self.totals[number].entry(subject).or_default().add(shown, weights, weigh)?;
            }
        }
        Ok(())
    }

    pub fn new(rules: &'a [Rule], categories: &'a Categories) -> Self {
        let tally_for =
            |measure: Measure, by: GroupBy| rules.iter().any(|rule| rule.measure == measure).then(|| Tally::new(by));
        Self {
            rules,
            frames: Frames::new(),
            matches: vec![Vec::new(); rules.len()],
            totals: rules.iter().map(|_| BTreeMap::new()).collect(),
            busy_loop: BusyLoopDetector::new(categories),
            categories,
            category_names: categories.names().collect(),
            category: Vec::new(),
            differential: false,
            total: Weights::default(),
            lost: Weights::default(),
            survey: WeightSurvey::default(),
            is_flattened: false,
            functions: Tally::new(GroupBy::Function),
            edges: tally_for(Measure::EdgeGrowth, GroupBy::Edge),
            stack_sums: rules.iter().any(|rule| rule.measure.is_growth()).then(|| Tally::new(GroupBy::Stack)),
            leaves: tally_for(Measure::CategoryGrowth, GroupBy::Leaf),
            charging: Charging::default(),
            stacks: 0,
            last_stack: Vec::new(),
            distinct: Vec::new(),
        }
    }

    /// Returns the weights of all stacks that contribute to a rule as a whole.
    pub(super) fn rule_total(&self, number: usize) -> Weights {
        self.totals[number].get(&Subject::Rule).map_or_else(Weights::default, |total| total.weights)
    }

    /// Returns the subjects of a rule to which a stack contributes.
    pub(super) fn find_subjects(&mut self, number: usize, stack: &[FrameId]) -> Vec<Subject> {
        self.classify_new_frames();
        self.update_distinct_frames(stack);
        self.subjects(number, stack)
    }

    /// Returns the subjects of a rule to which the stack contributes. [`distinct`](Self::distinct) has its frames.
    fn subjects(&self, number: usize, stack: &[FrameId]) -> Vec<Subject> {
        let (rule, matches) = (&self.rules[number], &self.matches[number]);
        let charged = self.charging.charged(stack);
        let categorized = charged.map(|charged| self.category_frame(charged, self.charging.state(stack)));
        let charged = charged.filter(|frame| matches[frame.index()]);
        let matching = self.distinct.iter().filter(|frame| matches[frame.index()]);
        match rule.measure {
            Measure::Growth if rule.is_per_function() => charged.map(Subject::Function).into_iter().collect(),
            Measure::Each => charged.map(Subject::Function).into_iter().collect(),
            Measure::InclusiveGrowth if rule.is_per_function() => {
                matching.map(|frame| Subject::Function(*frame)).collect()
            }
            Measure::EachInclusive => matching.map(|frame| Subject::Function(*frame)).collect(),
            Measure::EdgeGrowth => {
                let calls = stack.windows(2).filter(|call| call.iter().any(|frame| matches[frame.index()]));
                let calls: BTreeSet<Subject> = calls.map(|call| Subject::Edge(call[0], call[1])).collect();
                calls.into_iter().collect()
            }
            Measure::CategoryGrowth => {
                // Lost samples say nothing of the program.
                categorized
                    .filter(|frame| matches[frame.index()] && self.frames.name(*frame) != LOST)
                    .map(|frame| Subject::Category(self.category[frame.index()]))
                    .into_iter()
                    .collect()
            }
            Measure::Category => rule_if(categorized.is_some_and(|frame| matches[frame.index()])),
            Measure::SelfShare | Measure::Growth | Measure::Unknown => rule_if(charged.is_some()),
            Measure::Inclusive | Measure::InclusiveGrowth | Measure::Truncated => {
                rule_if(stack.iter().any(|frame| matches[frame.index()]))
            }
            Measure::Lost => rule_if(stack.len() == 1 && matches[stack[0].index()]),
            Measure::BusyLoop => Vec::new(),
        }
    }

    /// Returns the frame by whose category self weight counts: the thread state if a rule matches it, else the function.
    pub(super) fn category_frame(&self, charged: FrameId, state: Option<FrameId>) -> FrameId {
        state.filter(|state| self.category_names[self.category[state.index()]] != OTHER_CATEGORY).unwrap_or(charged)
    }

    /// Returns the name of a subject, for reports.
    pub fn subject_name(&self, rule: &Rule, subject: Subject) -> Vec<u8> {
        match subject {
            Subject::Rule => rule.subject(),
            Subject::Function(frame) => self.frames.name(frame).to_vec(),
            Subject::Edge(caller, callee) => join_names(&[caller, callee], &self.frames),
            Subject::Category(number) => self.category_names[number].as_bytes().to_vec(),
        }
    }

    /// Applies the rules to frames that are new.
    fn classify_new_frames(&mut self) {
        self.charging.update(&self.frames);
        for index in self.last_stack.len()..self.frames.len() {
            let name = self.frames.name(FrameId::from_index(index as u32));
            self.last_stack.push(0);
            let category = self.categories.categorize(name);
            self.category.push(self.category_names.iter().position(|known| *known == category).unwrap_or(0));
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
}

/// Returns the rule itself as the only subject if a condition is met.
fn rule_if(is_met: bool) -> Vec<Subject> {
    if is_met { vec![Subject::Rule] } else { Vec::new() }
}
