//! Sums up weights while they are read.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::diff::ComparedRuns;
use crate::folded::{LineKind, StackSink, read_parallel, read_sums};
use crate::input::Source;
use crate::profile::{FrameId, Frames, Weights};
use crate::stats::caveat::{Caveat, caveat_of_lost};
use crate::stats::judgement::{Design, Observation};
use crate::stats::sample_weight::{WeightKind, WeightOptions, WeightSurvey};
use crate::tally::{
    GroupBy, Judgement, Row, Tally, check_not_flattened, observe_runs, observe_sum, observe_sums, tally_profile,
};

/// Sums of all keys, and totals of the profile.
#[derive(Debug, Default)]
pub struct Counts {
    /// Names of frames.
    pub frames: Frames,
    /// True if each stack has two weights.
    pub differential: bool,
    /// Total weight of the profile.
    pub total: Weights,
    /// Sums of all keys with weight.
    pub rows: Vec<Row>,
    /// Kind of the weights of a differential profile.
    pub weight_kind: WeightKind,
    /// Weights of each row in each run of a differential profile.
    pub observations: Vec<Vec<Observation>>,
    /// The chances of the weights of each row of a differential profile, if its weights allow a judgement.
    pub chances: Option<Vec<Vec<f64>>>,
    /// The judgement of the functions.
    pub judgement: Option<Judgement>,
    /// A warning about the judgement, if the weights deserve one.
    pub caveat: Option<Caveat>,
    survey: WeightSurvey,
    /// True if differences were flattened.
    is_flattened: bool,
    /// The sums by function, if rows have other keys and are judged by the spread of functions.
    functions: Option<Vec<Row>>,
}

impl Counts {
    /// Judges the rows of a differential profile that is the sum of its runs.
    ///
    /// # Errors
    /// [`Error::Invalid`] if they were judged before.
    pub fn judge_sums(&mut self, options: WeightOptions) -> Result<(), Error> {
        check_not_flattened(self.is_flattened)?;
        self.weight_kind = self.survey.kind(&self.frames, options);
        let lost = self.rows.iter().find(|row| self.frames.is_lost(&row.frames));
        let of_lost = lost.and_then(|lost| caveat_of_lost(self.total, lost.weights[0]));
        self.caveat = self.survey.caveat(self.weight_kind, options, of_lost);
        self.observations = observe_sums(&self.rows);
        let functions = self.functions.as_deref().map(observe_sums);
        let design = Design::of_sums(self.weight_kind, self.survey.scale_before());
        self.judge(functions.as_deref(), &observe_sum(self.total), design);
        Ok(())
    }

    /// Judges the rows. `functions` has the observations of the functions, if they are other rows.
    fn judge(&mut self, functions: Option<&[Vec<Observation>]>, total: &Observation, design: Design) {
        let (rows, observations) = match (&self.functions, functions) {
            (Some(rows), Some(observations)) => (rows, observations),
            _ => (&self.rows, &self.observations[..]),
        };
        self.judgement = Judgement::new(rows, &self.frames, observations, total, design);
        self.chances = self.judgement.as_ref().map(|judged| match functions {
            Some(_) => {
                let chances = judged.chances_of_rows(&self.rows, &self.frames, &self.observations);
                chances.into_iter().map(|chance| vec![chance]).collect()
            }
            None => judged.chances.clone(),
        });
    }
}

/// Sums up the stacks of a comparison, and judges the sums by their spread from run to run.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn count_runs(compared: ComparedRuns, by: GroupBy) -> Result<Counts, Error> {
    let rows = tally_profile(&compared.profile, by)?;
    let mut counts = Counts {
        differential: true,
        total: compared.profile.total(),
        weight_kind: compared.weight_kind,
        caveat: compared.caveat.clone(),
        ..Counts::default()
    };
    counts.observations = observe_runs(&rows, &compared.profile.frames, &compared.runs, by)?;
    counts.rows = rows;
    let mut functions = None;
    if by.is_judged_by_functions() {
        let rows = tally_profile(&compared.profile, GroupBy::Function)?;
        functions = Some(observe_runs(&rows, &compared.profile.frames, &compared.runs, GroupBy::Function)?);
        counts.functions = Some(rows);
    }
    let (total, design) = (compared.total(), compared.design()?);
    counts.frames = compared.profile.frames;
    counts.judge(functions.as_deref(), &total, design);
    Ok(counts)
}

/// Sums up the stacks of all sources while they are read; a single file is read on all cores.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit, and those of [`read_sums`].
pub fn count(sources: &[Source], by: GroupBy, diagnostics: &mut Diagnostics) -> Result<Counts, Error> {
    // Most stacks appear once, so merging sums of stacks costs as much as computing them: not in parallel.
    if let [source] = sources
        && by != GroupBy::Stack
        && let Some(parts) = read_parallel(source, || Accumulator::new(by))
    {
        return merge_parts(parts);
    }
    let mut accumulator = Accumulator::new(by);
    read_sums(sources, &mut accumulator, diagnostics)?;
    merge_parts(vec![accumulator])
}

/// Merges the sums of several parts.
fn merge_parts(parts: Vec<Accumulator>) -> Result<Counts, Error> {
    let mut whole = Counts::default();
    let (mut rows, mut functions) = (MergedRows::default(), MergedRows::default());
    for mut part in parts {
        whole.survey.merge(&part.counts.survey);
        whole.differential = part.counts.differential;
        whole.is_flattened |= part.counts.is_flattened;
        whole.total.add(part.counts.total)?;
        let ids = match whole.frames.len() {
            0 => None,
            _ => Some(whole.frames.intern_all(&part.counts.frames)),
        };
        if ids.is_none() {
            whole.frames = part.counts.frames;
        }
        rows.add(part.tally.rows()?, ids.as_deref())?;
        if let Some(tally) = &mut part.functions {
            functions.add(tally.rows()?, ids.as_deref())?;
        }
    }
    whole.rows = rows.with_weight();
    let functions = functions.with_weight();
    whole.functions = (!functions.is_empty()).then_some(functions);
    Ok(whole)
}

/// The rows of several parts of a profile.
#[derive(Default)]
struct MergedRows {
    rows: Vec<Row>,
    /// The number of each row by its key; empty until there is a second part.
    indices: HashMap<Vec<FrameId>, usize, FxBuildHasher>,
}

impl MergedRows {
    /// Adds the rows of a part. `ids` has the frames of the whole profile, if the part has others.
    fn add(&mut self, mut rows: Vec<Row>, ids: Option<&[FrameId]>) -> Result<(), Error> {
        if let Some(ids) = ids {
            rows.iter_mut().flat_map(|row| &mut row.frames).for_each(|frame| *frame = ids[frame.index()]);
        }
        if self.rows.is_empty() {
            self.rows = rows;
            return Ok(());
        }
        if self.indices.is_empty() {
            self.indices = self.rows.iter().map(|row| row.frames.clone()).zip(0..).collect();
        }
        for row in rows {
            match self.indices.get(&row.frames) {
                Some(index) => {
                    let sums = self.rows[*index].weights.iter_mut();
                    sums.zip(row.weights).try_for_each(|(sum, weights)| sum.add(weights))?;
                }
                None => {
                    self.indices.insert(row.frames.clone(), self.rows.len());
                    self.rows.push(row);
                }
            }
        }
        Ok(())
    }

    /// Returns the rows that have weight.
    fn with_weight(mut self) -> Vec<Row> {
        self.rows.retain(|row| row.weights.iter().any(|weights| *weights != Weights::default()));
        self.rows
    }
}

/// Sums up stacks while they are read.
struct Accumulator {
    counts: Counts,
    tally: Tally,
    /// Sums by function of a differential profile, if they are needed to judge the rows.
    functions: Option<Tally>,
}

impl Accumulator {
    fn new(by: GroupBy) -> Self {
        let functions = by.is_judged_by_functions().then(|| Tally::new(GroupBy::Function));
        Self { counts: Counts::default(), tally: Tally::new(by), functions }
    }
}

impl StackSink for Accumulator {
    fn frames(&mut self) -> &mut Frames {
        &mut self.counts.frames
    }

    fn begin(&mut self, kind: LineKind) {
        self.counts.differential = kind == LineKind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.counts.total.add(weights)?;
        if self.counts.differential {
            if !self.counts.frames.is_lost(stack) {
                self.counts.survey.add_sides(weights);
            }
            self.counts.is_flattened |= self.counts.frames.is_flattened_mark(stack, weights);
            let functions = self.functions.as_mut();
            functions.map_or(Ok(()), |functions| functions.add(&self.counts.frames, stack, shared, weights))?;
        }
        self.tally.add(&self.counts.frames, stack, shared, weights)
    }
}
