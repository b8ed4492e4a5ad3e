//! The chances of growth: the same judgement as that of fg-csv and fg-diff.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::accumulate::{Accumulator, Subject};
use super::rule::{Measure, Rule};
use crate::Error;
use crate::diff::ComparedRuns;
use crate::folded::{LineKind, StackSink as _};
use crate::profile::{FrameId, Weights};
use crate::stats::caveat::{Caveat, caveat_of_lost};
use crate::stats::judgement::{Design, Observation};
use crate::stats::sample_weight::{WeightKind, WeightOptions};
use crate::tally::{GroupBy, Judgement, Row, observe_runs, observe_sum, observe_sums};

/// Chances of the differences that rules limit.
#[derive(Debug, Default)]
pub(super) struct Chances {
    /// True if there is one run a side, or if the runs are not known.
    is_single: bool,
    weight_kind: WeightKind,
    /// A warning, if the weights deserve one.
    pub caveat: Option<Caveat>,
    judgement: Option<Rc<Judgement>>,
    /// Weights of each function as they were read.
    functions: BTreeMap<FrameId, Vec<Observation>>,
    /// Chances of the self and inclusive weight of each function.
    function_chances: BTreeMap<FrameId, Vec<f64>>,
    /// Chances by call and by category.
    edges: BTreeMap<(FrameId, FrameId), f64>,
    categories: BTreeMap<usize, f64>,
    /// Observation of each rule with a pattern.
    groups: BTreeMap<usize, Observation>,
    /// The only function that the pattern of a rule matches.
    single_functions: BTreeMap<usize, FrameId>,
}

impl Chances {
    /// Judges all functions, and the calls and categories if a rule limits their growth.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn new(
        accumulator: &mut Accumulator,
        runs: Option<&ComparedRuns>,
        options: WeightOptions,
    ) -> Result<Self, Error> {
        let weight_kind = match runs {
            Some(runs) => runs.weight_kind,
            None => accumulator.survey.kind(&accumulator.frames, options),
        };
        let design = match runs {
            Some(runs) => runs.design()?,
            None => Design::of_sums(weight_kind, accumulator.survey.scale_before()),
        };
        let caveat = match runs {
            Some(runs) => runs.caveat.clone(),
            None => {
                let of_lost = caveat_of_lost(accumulator.total, accumulator.lost);
                accumulator.survey.caveat(weight_kind, options, of_lost)
            }
        };
        let total = runs.map_or_else(|| observe_sum(accumulator.total), ComparedRuns::total);
        let is_single = design.is_single();
        let rows = nonzero_rows(accumulator.functions.rows()?);
        let observed = observe(&rows, accumulator, runs, GroupBy::Function)?;
        let judgement = Judgement::new(&rows, &accumulator.frames, &observed, &total, design).map(Rc::new);
        let names = rows.iter().map(|row| row.frames[0]);
        let judged = judgement.as_ref().map_or_else(Vec::new, |judgement| judgement.chances.clone());
        Self {
            is_single,
            weight_kind,
            caveat,
            function_chances: names.clone().zip(judged).collect(),
            functions: names.zip(observed).collect(),
            judgement,
            ..Self::default()
        }
        .with_sums(accumulator, runs)
    }

    /// Judges the functions that both sides have; the weights of the others count for their callers. They are judged as parts
    /// of all functions, so that the chances are the same as without this.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn of_common(&self, accumulator: &mut Accumulator, runs: Option<&ComparedRuns>) -> Result<Self, Error> {
        let rows = nonzero_rows(accumulator.functions.rows()?);
        let observed = observe(&rows, accumulator, runs, GroupBy::Function)?;
        let chances = self.judgement.as_ref().map_or_else(Vec::new, |all| {
            all.chances_as_parts(&rows, &accumulator.frames, &observed, |function| {
                self.functions.get(&function)?.first()
            })
        });
        let names = rows.iter().map(|row| row.frames[0]);
        Self {
            is_single: self.is_single,
            weight_kind: self.weight_kind,
            function_chances: names.zip(chances).collect(),
            judgement: self.judgement.clone(),
            ..Self::default()
        }
        .with_sums(accumulator, runs)
    }

    /// Judges the calls and categories if a rule limits their growth, and observes the rules with a pattern.
    fn with_sums(mut self, accumulator: &mut Accumulator, runs: Option<&ComparedRuns>) -> Result<Self, Error> {
        if let Some(tally) = &mut accumulator.edges {
            let rows = nonzero_rows(tally.rows()?);
            let observed = observe(&rows, accumulator, runs, GroupBy::Edge)?;
            if let Some(judgement) = &self.judgement {
                let calls = rows.iter().map(|row| (row.frames[0], row.frames[1]));
                self.edges = calls.zip(judgement.chances_of_rows(&rows, &accumulator.frames, &observed)).collect();
            }
        }
        self.categories = judge_categories(accumulator, runs, self.judgement.as_deref())?;
        self.groups = observe_groups(accumulator, runs)?;
        self.single_functions = find_single_functions(accumulator);
        Ok(self)
    }

    /// Returns the reason why growth cannot be judged; `None` if it can.
    pub fn refusal(&self) -> Option<&'static str> {
        match &self.judgement {
            Some(_) => None,
            None => self.weight_kind.caveat(true),
        }
    }

    /// True if there is one run a side, and runs may differ.
    pub fn is_uncertain(&self) -> bool {
        self.is_single && self.weight_kind != WeightKind::Exact
    }

    /// Returns the chance of the difference of a group of stacks; 1 if the weights do not allow a judgement. `own` is the self
    /// weight of a function that is part of the group.
    pub fn chance_of_group(&self, group: &Observation, own: Option<&Observation>) -> f64 {
        self.judgement.as_ref().map_or(1.0, |judgement| judgement.chance_of_group(group, own))
    }

    /// Returns the chances of the differences of sums of functions, judged together: each the sum and its functions; 1 if the
    /// weights do not allow a judgement.
    pub fn chances_of_sums(&self, sums: &[(Observation, Vec<Observation>)]) -> Vec<f64> {
        self.judgement.as_ref().map_or_else(|| vec![1.0; sums.len()], |judgement| judgement.chances_of_sums(sums))
    }

    /// True if chance alone may have put a function on one side.
    pub fn may_be_on_one_side_by_chance(&self, function: FrameId) -> bool {
        let known = self.functions.get(&function).zip(self.function_chances.get(&function));
        known
            .zip(self.judgement.as_ref())
            .is_some_and(|((observed, chances), all)| all.may_be_on_one_side_by_chance(observed, chances))
    }

    /// Describes what a weight is taken for.
    pub fn describe(&self) -> String {
        self.weight_kind.describe()
    }

    /// Returns the chance of a difference; `None` if the weights do not allow a judgement.
    pub fn chance(&self, number: usize, rule: &Rule, subject: Subject) -> Option<f64> {
        let judgement = self.judgement.as_ref()?;
        let function = match subject {
            Subject::Function(frame) => Some(frame),
            Subject::Rule => self.single_functions.get(&number).copied(),
            _ => None,
        };
        if let Some(chances) = function.and_then(|frame| self.function_chances.get(&frame)) {
            return Some(chances[usize::from(rule.measure == Measure::InclusiveGrowth)]);
        }
        match subject {
            Subject::Rule => self.groups.get(&number).map(|group| judgement.chance_of_group(group, None)),
            Subject::Edge(caller, callee) => self.edges.get(&(caller, callee)).copied(),
            Subject::Category(category) => self.categories.get(&category).copied(),
            Subject::Function(_) => None,
        }
        .or(Some(1.0))
    }
}

fn nonzero_rows(mut rows: Vec<Row>) -> Vec<Row> {
    rows.retain(|row| row.weights.iter().any(|weights| *weights != Weights::default()));
    rows
}

/// Returns the weights of rows in each run, or their sums if the runs are not known.
pub(super) fn observe(
    rows: &[Row],
    accumulator: &Accumulator<'_>,
    runs: Option<&ComparedRuns>,
    by: GroupBy,
) -> Result<Vec<Vec<Observation>>, Error> {
    match runs {
        Some(compared) => observe_runs(rows, &accumulator.frames, &compared.runs, by),
        None => Ok(observe_sums(rows)),
    }
}

/// Judges the self weights of all categories together, if a rule limits their growth.
fn judge_categories(
    accumulator: &mut Accumulator,
    runs: Option<&ComparedRuns>,
    functions: Option<&Judgement>,
) -> Result<BTreeMap<usize, f64>, Error> {
    let Some((functions, tally)) = functions.zip(accumulator.leaves.as_mut()) else { return Ok(BTreeMap::new()) };
    let rows = nonzero_rows(tally.rows()?);
    let observed = observe(&rows, accumulator, runs, GroupBy::Leaf)?;
    let mut sums: BTreeMap<usize, Observation> = BTreeMap::new();
    for (row, observations) in rows.iter().zip(observed) {
        let frame = accumulator.category_frame(row.frames[0], row.frames.get(1).copied());
        let category = accumulator.category[frame.index()];
        match sums.get_mut(&category) {
            Some(sum) => sum.add(&observations[0]),
            None => drop(sums.insert(category, observations[0].clone())),
        }
    }
    sums.retain(|_, sum| sum.before.iter().chain(&sum.after).any(|weight| *weight > 0.0));
    let (names, sums): (Vec<usize>, Vec<Observation>) = sums.into_iter().unzip();
    Ok(names.into_iter().zip(functions.chances_of_groups(&sums)).collect())
}

/// Returns the weights in each run of the rules with a pattern.
fn observe_groups(
    accumulator: &Accumulator,
    runs: Option<&ComparedRuns>,
) -> Result<BTreeMap<usize, Observation>, Error> {
    let is_group =
        |number: usize| accumulator.rules[number].measure.is_growth() && accumulator.rules[number].has_pattern();
    let groups: Vec<usize> = (0..accumulator.rules.len()).filter(|number| is_group(*number)).collect();
    let Some(compared) = runs else {
        return Ok(groups.iter().map(|number| (*number, observe_sum(accumulator.rule_total(*number)))).collect());
    };
    if groups.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut weights: Vec<Vec<f64>> = vec![Vec::new(); groups.len()];
    for (run, factor) in compared.runs.iter() {
        let mut sums = Accumulator::new(accumulator.rules, accumulator.categories);
        sums.frames.intern_all(&run.frames);
        sums.begin(LineKind::Plain);
        run.for_each_sorted::<Error>(|stack| sums.add(stack.frames, stack.shared, stack.weights))?;
        for (weights, number) in weights.iter_mut().zip(&groups) {
            weights.push(sums.rule_total(*number).after.as_f64() * factor);
        }
    }
    Ok(groups.into_iter().zip(weights.iter().map(|weights| compared.runs.observation(weights))).collect())
}

/// Returns the matching function of each rule whose pattern matches only one.
fn find_single_functions(accumulator: &Accumulator) -> BTreeMap<usize, FrameId> {
    let single = accumulator.matches.iter().enumerate().filter_map(|(number, matches)| {
        let mut matching = matches.iter().enumerate().filter(|(_, is_match)| **is_match);
        let (first, _) = matching.next()?;
        matching.next().is_none().then(|| (number, FrameId::from_index(first as u32)))
    });
    single.filter(|(number, _)| accumulator.rules[*number].has_pattern()).collect()
}
