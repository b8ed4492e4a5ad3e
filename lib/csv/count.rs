//! Sums up weights while they are read.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::diff::ComparedRuns;
use crate::folded::{LineKind, StackSink, read_all, read_parallel};
use crate::input::Source;
use crate::profile::{FrameId, Frames, Weights};
use crate::stats::judgement::{Design, Observation};
use crate::stats::sample_weight::{WeightKind, WeightOptions, WeightSurvey};
use crate::tally::{GroupBy, Judgement, Row, Tally, observe_runs, observe_sum, observe_sums, tally_profile};

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
    /// The judgement of the rows of a differential profile, if its weights allow one.
    pub judgement: Option<Judgement>,
    /// A warning about the judgement, if the weights deserve one.
    pub caveat: Option<&'static str>,
    survey: WeightSurvey,
}

impl Counts {
    /// Judges the rows of a differential profile that is the sum of its runs.
    pub fn judge_sums(&mut self, options: WeightOptions) {
        self.weight_kind = self.survey.kind(&self.frames, options);
        self.caveat = self.survey.caveat(self.weight_kind);
        self.observations = observe_sums(&self.rows);
        let design = Design::of_sums(self.weight_kind, self.survey.scale_before());
        self.judge(&observe_sum(self.total), design);
    }

    fn judge(&mut self, total: &Observation, design: Design) {
        self.judgement = Judgement::new(&self.rows, &self.frames, &self.observations, total, design);
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
        caveat: compared.caveat,
        ..Counts::default()
    };
    counts.observations = observe_runs(&rows, &compared.profile.frames, &compared.runs, by)?;
    counts.rows = rows;
    let (total, design) = (compared.total(), compared.design());
    counts.frames = compared.profile.frames;
    counts.judge(&total, design);
    Ok(counts)
}

/// Sums up the stacks of all sources while they are read; a single file is read on all cores.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit, and those of [`read_all`].
pub fn count(sources: &[Source], by: GroupBy, diagnostics: &mut Diagnostics) -> Result<Counts, Error> {
    // Most stacks appear once, so merging sums of stacks costs as much as computing them: not in parallel.
    if let [source] = sources
        && by != GroupBy::Stack
        && let Some(parts) = read_parallel(source, || Accumulator::new(by))
    {
        return merge_parts(parts);
    }
    let mut accumulator = Accumulator::new(by);
    read_all(sources, &mut accumulator, diagnostics)?;
    merge_parts(vec![accumulator])
}

/// Merges the sums of several parts.
fn merge_parts(parts: Vec<Accumulator>) -> Result<Counts, Error> {
    let mut whole = Counts::default();
    let mut indices = HashMap::<Vec<FrameId>, usize, FxBuildHasher>::default();
    let is_single = parts.len() == 1;
    for mut part in parts {
        let rows = part.tally.rows()?;
        whole.survey.merge(&part.counts.survey);
        whole.differential = part.counts.differential;
        whole.total.add(part.counts.total)?;
        if is_single {
            (whole.frames, whole.rows) = (part.counts.frames, rows);
            break;
        }
        let ids = whole.frames.intern_all(&part.counts.frames);
        for Row { frames, weights } in rows {
            let frames: Vec<FrameId> = frames.iter().map(|frame| ids[frame.index()]).collect();
            let index = *indices.entry(frames).or_insert_with_key(|frames| {
                let nothing = vec![Weights::default(); weights.len()];
                whole.rows.push(Row { frames: frames.clone(), weights: nothing });
                whole.rows.len() - 1
            });
            for (sum, weights) in whole.rows[index].weights.iter_mut().zip(weights) {
                sum.add(weights)?;
            }
        }
    }
    whole.rows.retain(|row| row.weights.iter().any(|weights| *weights != Weights::default()));
    Ok(whole)
}

/// Sums up stacks while they are read.
struct Accumulator {
    counts: Counts,
    tally: Tally,
}

impl Accumulator {
    fn new(by: GroupBy) -> Self {
        Self { counts: Counts::default(), tally: Tally::new(by) }
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
            self.counts.survey.add_sides(weights);
        }
        self.tally.add(&self.counts.frames, stack, shared, weights)
    }
}
