//! Judges the code that only one side of a comparison has, so that noise of its callers does not hide its cost.
//!
//! The cost of such code counts for functions that both sides have. Where these vary from run to run, growth by the code is within
//! their noise, so the code is judged by itself, too: the self weights of its functions and, for rules that include callees, all
//! stacks that contain it. New functions may be cost that moved: they may replace others, be extracted from their callers, or call
//! what others called. So their growth is at most that of the sum of what they may replace and of themselves.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::accumulate::{Accumulator, Subject};
use super::chances::{Chances, observe};
use super::rule::{Measure, Rule};
use super::{Finding, Verdict, join_names};
use crate::Error;
use crate::diff::{ComparedRuns, Hiding, OneSided};
use crate::profile::{FrameId, Frames, Weights};
use crate::stats::judgement::Observation;
use crate::tally::{Charging, GroupBy, Row, is_significant};

/// Most functions that a finding names.
const MOST_NAMES: usize = 3;

/// The stacks of a comparison, and what is left of them without functions that only one side has.
pub(super) struct NewCode {
    stacks: Vec<Stack>,
    /// The distinct stacks without functions that only one side has.
    rests: Vec<Rest>,
    /// For each frame, true if it is a function that only the side after has.
    is_new: Vec<bool>,
}

/// A stack of [`NewCode`].
struct Stack {
    frames: Vec<FrameId>,
    /// Index of the stack without functions that only one side has.
    rest: usize,
    weights: Weights,
    observation: Observation,
    /// The function that is charged with it.
    charged: Option<FrameId>,
    /// True if a function that only one side has is charged with it.
    is_own: bool,
}

/// The stacks that are equal without functions that only one side has.
#[derive(Debug)]
struct Rest {
    frames: Vec<FrameId>,
    /// The function that is charged with what is left.
    charged: Option<FrameId>,
    /// True if one of the stacks contains such a function, and another function is charged with it.
    has_inner: bool,
}

/// A rule, and what was found by it without new code.
pub(super) struct Search<'a> {
    pub number: usize,
    pub rule: &'a Rule,
    /// The subjects that exceed the limit within noise.
    pub noisy: &'a BTreeSet<Subject>,
    /// True if a subject exceeds the limit by more than noise.
    pub has_failed: bool,
    pub chances: &'a Chances,
    pub total: Weights,
}

/// Sum of some stacks.
#[derive(Debug)]
struct Sum {
    weights: Weights,
    observation: Observation,
}

/// Stacks whose new code is judged together.
struct Group<'s> {
    stacks: Vec<&'s Stack>,
    /// True if its new code may be reported. The others are judged as well: to judge only what has grown would find growth by
    /// chance.
    counts: bool,
}

/// The sum of what the new code of a group may replace, and of the code itself.
#[derive(Default)]
struct Whole {
    sum: Option<Sum>,
    /// The sum of each function that is charged.
    functions: BTreeMap<Option<FrameId>, Option<Sum>>,
}

/// New code that exceeds the limit of a rule by more than noise.
struct Candidate {
    finding: Finding,
    /// True if it is several functions.
    is_sum: bool,
}

impl NewCode {
    /// Collects the stacks of a differential profile. `common` has its frames, and those of the stacks without one-sided functions.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn new(
        rows: Vec<Row>,
        all: &Accumulator<'_>,
        common: &Frames,
        one_sided: &OneSided,
        hiding: &Hiding,
        runs: Option<&ComparedRuns>,
    ) -> Result<Self, Error> {
        let charging = Charging::new(common);

        let observed = observe(&rows, all, runs, GroupBy::Stack)?;
        let (mut stacks, mut rests) = (Vec::with_capacity(rows.len()), Vec::<Rest>::new());
        let mut numbers = HashMap::<Vec<FrameId>, usize, FxBuildHasher>::default();
        for (row, observed) in rows.into_iter().zip(observed) {
            let Some(observation) = observed.into_iter().next() else { continue };
            let charged = charging.charged(&row.frames);
            let is_own = charged.is_some_and(|charged| one_sided.is_new(common.name(charged)).is_some());
            let left = hiding.apply(&row.frames);
            let has_inner = !is_own && matches!(left, Cow::Owned(_));
            let rest = *numbers.entry_ref(&*left).or_insert_with(|| {
                rests.push(Rest { frames: left.to_vec(), charged: charging.charged(&left), has_inner: false });
                rests.len() - 1
            });
            rests[rest].has_inner |= has_inner;
            stacks.push(Stack { rest, weights: row.weights[0], observation, charged, is_own, frames: row.frames });
        }
        let is_new = all.frames.iter().map(|(_, name)| one_sided.is_new(name) == Some(true));
        Ok(Self { stacks, rests, is_new: is_new.collect() })
    }

    /// Returns the new functions that exceed the limit of a rule, each by itself or all together. Those of subjects that exceed the
    /// limit within noise are judged first; if none is found, all new functions are.
    ///
    /// They fail if the sum of what they may replace and of themselves has grown by more than noise. When that sum had to grow as
    /// much as they, a helper that was extracted from five of six functions that vary by 10 % failed in 30 of 100 comparisons with
    /// three runs a side.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn find(&self, search: &Search<'_>, accumulator: &mut Accumulator<'_>) -> Result<Vec<Finding>, Error> {
        let rule = search.rule;
        let has_callees = rule.measure.includes_callees();
        let counted = self.stacks.iter();
        let counted = counted.filter(|stack| stack.is_own || has_callees && self.rests[stack.rest].has_inner);
        let counted: Vec<&Stack> = counted.collect();
        let is_common = rule.is_of_common_functions();
        // Each subject by itself: the sum of those that seem to have grown would exceed what chance makes of each.
        let mut by_subject = BTreeMap::<Subject, Vec<&Stack>>::new();
        for stack in &counted {
            let frames = if is_common { &self.rests[stack.rest].frames } else { &stack.frames };
            for subject in accumulator.find_subjects(search.number, frames) {
                by_subject.entry(subject).or_default().push(stack);
            }
        }
        let groups = by_subject.into_iter();
        let groups = groups.map(|(subject, stacks)| Group { stacks, counts: search.noisy.contains(&subject) });
        let found = self.judge(search, groups.collect(), accumulator)?;
        if found.iter().any(has_failed) || search.has_failed || !is_common {
            return Ok(found);
        }
        // Callers that have not grown have no new cost. What is left of a stack of too few functions has no subject of its own.
        let fewest = if rule.measure == Measure::EdgeGrowth { 2 } else { 1 };
        let left = counted.into_iter();
        let left = left.filter(|stack| !has_callees || self.rests[stack.rest].frames.len() < fewest);
        let all = Group { stacks: left.collect(), counts: true };
        let of_all = self.judge(search, vec![all], accumulator)?;
        Ok(if of_all.is_empty() { found } else { of_all })
    }

    /// Judges the new code of each group, with all that it may replace. All groups are one family, with half of the error rate:
    /// new code is judged twice, by subject and all together.
    fn judge(
        &self,
        search: &Search<'_>,
        groups: Vec<Group<'_>>,
        accumulator: &mut Accumulator<'_>,
    ) -> Result<Vec<Finding>, Error> {
        if groups.iter().all(|group| !group.counts) {
            return Ok(Vec::new());
        }
        let mut judged = Vec::new();
        for group in groups {
            let candidates = self.candidates(search, &group.stacks, accumulator)?;
            if !candidates.is_empty() {
                judged.push((group, candidates));
            }
        }
        let wholes = self.wholes(judged.iter().map(|(group, _)| &group.stacks[..]))?;
        let sums: Vec<_> = wholes.iter().filter_map(Whole::observations).collect();
        let chances = search.chances.chances_of_sums(&sums).into_iter().map(|chance| 2.0 * chance);
        let mut found = BTreeMap::new();
        for (((group, candidates), whole), chance) in judged.into_iter().zip(&wholes).zip(chances) {
            for candidate in candidates.into_iter().filter(|_| group.counts) {
                let finding = candidate.finding(search, whole, chance);
                if finding.percent > search.rule.limit {
                    keep_worse(&mut found, finding);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Returns all that the new code of each group may replace: the stacks that are charged to the same functions if the code
    /// is left out, whatever their callers are.
    fn wholes<'s>(&self, groups: impl ExactSizeIterator<Item = &'s [&'s Stack]>) -> Result<Vec<Whole>, Error> {
        let mut by_function = BTreeMap::<Option<FrameId>, BTreeSet<usize>>::new();
        let mut wholes: Vec<Whole> = (0..groups.len()).map(|_| Whole::default()).collect();
        for (number, stacks) in groups.enumerate() {
            for stack in stacks {
                by_function.entry(self.rests[stack.rest].charged).or_default().insert(number);
            }
        }
        for stack in &self.stacks {
            for number in by_function.get(&self.rests[stack.rest].charged).into_iter().flatten() {
                let whole = &mut wholes[*number];
                add(&mut whole.sum, stack)?;
                add(whole.functions.entry(stack.charged).or_insert(None), stack)?;
            }
        }
        Ok(wholes)
    }

    /// Returns the new functions of some stacks that exceed the limit of a rule by more than noise; if none does, all of them
    /// together.
    fn candidates(
        &self,
        search: &Search<'_>,
        stacks: &[&Stack],
        accumulator: &Accumulator<'_>,
    ) -> Result<Vec<Candidate>, Error> {
        let alone = self.functions(search, stacks, accumulator)?;
        match alone.is_empty() {
            true => Ok(self.all_together(search, stacks, accumulator)?.into_iter().collect()),
            false => Ok(alone),
        }
    }

    /// Returns the new functions of some stacks that exceed the limit of a rule by more than noise, each by itself.
    fn functions(
        &self,
        search: &Search<'_>,
        stacks: &[&Stack],
        accumulator: &Accumulator<'_>,
    ) -> Result<Vec<Candidate>, Error> {
        let mut by_key = BTreeMap::<Vec<FrameId>, Vec<&Stack>>::new();
        let mut others = BTreeMap::<usize, Vec<&Stack>>::new();
        for stack in stacks {
            match self.key(search.rule.measure, stack) {
                Some(key) => by_key.entry(key).or_default().push(stack),
                None => others.entry(stack.rest).or_default().push(stack),
            }
        }
        let mut candidates = Vec::new();
        for (key, own) in &by_key {
            // What it replaces counts for it.
            let rests: BTreeSet<usize> = own.iter().map(|stack| stack.rest).collect();
            let replaced = rests.iter().filter_map(|rest| others.get(rest)).flatten();
            let stacks: Vec<&Stack> = own.iter().chain(replaced).copied().collect();
            let subject = join_names(key, &accumulator.frames);
            candidates.extend(candidate(search, &stacks, subject, false, accumulator)?);
        }
        Ok(candidates)
    }

    /// Returns the sum of the new functions of some stacks, if there are several and it exceeds the limit by more than noise.
    fn all_together(
        &self,
        search: &Search<'_>,
        stacks: &[&Stack],
        accumulator: &Accumulator<'_>,
    ) -> Result<Option<Candidate>, Error> {
        let mut weights = BTreeMap::<Vec<FrameId>, Weights>::new();
        for stack in stacks {
            if let Some(key) = self.key(search.rule.measure, stack) {
                weights.entry(key).or_default().add(stack.weights)?;
            }
        }
        if weights.len() < 2 {
            return Ok(None);
        }
        let mut largest: Vec<(Vec<FrameId>, Weights)> = weights.into_iter().collect();
        largest.sort_by_key(|(_, weights)| Reverse(weights.after));
        let names = largest.iter().take(MOST_NAMES).map(|(key, _)| join_names(key, &accumulator.frames));
        let mut subject = b"[new functions] ".to_vec();
        subject.extend(names.collect::<Vec<_>>().join(&b", "[..]));
        if largest.len() > MOST_NAMES {
            subject.extend(format!(" and {} more", largest.len() - MOST_NAMES).into_bytes());
        }
        candidate(search, stacks, subject, true, accumulator)
    }

    /// Returns the new function, or the call of it, that a stack counts for; `None` if the stack has none.
    fn key(&self, measure: Measure, stack: &Stack) -> Option<Vec<FrameId>> {
        let is_new = |frame: &FrameId| self.is_new[frame.index()];
        let first = match measure.includes_callees() {
            true => stack.frames.iter().position(is_new),
            false => stack.frames.iter().rposition(is_new).filter(|_| stack.is_own),
        }?;
        let start = if measure == Measure::EdgeGrowth { first.saturating_sub(1) } else { first };
        Some(stack.frames[start..=first].to_vec())
    }
}

/// Returns the sum of some stacks as a candidate, if it exceeds the limit by more than noise.
fn candidate(
    search: &Search<'_>,
    stacks: &[&Stack],
    subject: Vec<u8>,
    is_sum: bool,
    accumulator: &Accumulator<'_>,
) -> Result<Option<Candidate>, Error> {
    let (measure, limit) = (search.rule.measure, search.rule.limit);
    let mut sum = None;
    stacks.iter().try_for_each(|stack| add(&mut sum, stack))?;
    let Some(Sum { weights, observation }) = sum else { return Ok(None) };
    let percent = measure.percent(weights, search.total);
    if percent <= limit || !is_significant(search.chances.chance_of_group(&observation, None)) {
        return Ok(None);
    }
    let worst = stacks.iter().max_by_key(|stack| measure.contribution()(stack.weights));
    let worst = worst.map(|stack| (join_names(&stack.frames, &accumulator.frames), stack.weights));
    let finding = Finding { rule: search.number, subject, percent, weights, verdict: Verdict::Failed, worst };
    Ok(Some(Candidate { finding, is_sum }))
}

impl Candidate {
    /// Returns the finding. Its growth is at most that of the whole, and it fails only if the whole has grown by more than noise.
    fn finding(self, search: &Search<'_>, whole: &Whole, chance: f64) -> Finding {
        let mut finding = self.finding;
        let weights = whole.sum.as_ref().map_or(finding.weights, |sum| sum.weights);
        let percent = search.rule.measure.percent(weights, search.total);
        if percent < finding.percent {
            // The rest has shrunk: part of the code may have been there.
            let what: &[u8] = if self.is_sum { b" with what they may replace" } else { b" with what it may replace" };
            finding.subject.extend(what);
            (finding.percent, finding.weights) = (percent, weights);
        }
        if !is_significant(chance) {
            finding.verdict = Verdict::WithinNoise;
        }
        finding
    }
}

impl Whole {
    /// Returns the sum, and that of each function.
    fn observations(&self) -> Option<(Observation, Vec<Observation>)> {
        let functions = self.functions.values().flatten().map(|function| function.observation.clone());
        Some((self.sum.as_ref()?.observation.clone(), functions.collect()))
    }
}

fn has_failed(finding: &Finding) -> bool {
    finding.verdict == Verdict::Failed
}

/// Keeps one finding of each subject: one that has failed rather than another, and the larger of two that are equal in this.
fn keep_worse(found: &mut BTreeMap<Vec<u8>, Finding>, finding: Finding) {
    if found.get(&finding.subject).is_none_or(|known| is_worse(&finding, known)) {
        found.insert(finding.subject.clone(), finding);
    }
}

fn is_worse(finding: &Finding, known: &Finding) -> bool {
    let by_verdict = has_failed(finding).cmp(&has_failed(known));
    by_verdict.then_with(|| finding.percent.total_cmp(&known.percent)).is_gt()
}

fn add(sum: &mut Option<Sum>, stack: &Stack) -> Result<(), Error> {
    match sum {
        Some(sum) => {
            sum.weights.add(stack.weights)?;
            sum.observation.add(&stack.observation);
        }
        None => *sum = Some(Sum { weights: stack.weights, observation: stack.observation.clone() }),
    }
    Ok(())
}
