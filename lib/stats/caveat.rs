//! Warnings about judgements.

use std::borrow::Cow;

use super::judgement::EFFECTIVE_SAMPLES_PER_RUN;
use super::sample_weight::{WeightKind, WeightOptions, WeightSurvey};
use crate::profile::{Weight, Weights};

/// One run counts as at most [`EFFECTIVE_SAMPLES_PER_RUN`] samples, so with this many times more, it makes no difference for a
/// verdict if a sample weighs less.
const PLENTY_OF_SAMPLES: f64 = 10.0;

/// A warning about a judgement.
pub type Caveat = Cow<'static, str>;

/// Least difference between the shares that two sides lost of which judgements warn. Lost samples count for no function, so that each seems
/// to have less on the side that lost more: of equal programs of which one side lost 2 %, 8 of 20 had a significant function with five
/// runs a side.
const MIN_LOST_DIFFERENCE: f64 = 0.005;

/// Returns a warning about judging two sides with these totals if one lost more of its samples.
pub fn caveat_of_lost(total: Weights, lost: Weights) -> Option<Caveat> {
    let [before, after] = [(lost.before, total.before), (lost.after, total.after)]
        .map(|(lost, total)| if total.is_zero() { 0.0 } else { lost.as_f64() / total.as_f64() });
    ((before - after).abs() >= MIN_LOST_DIFFERENCE).then(|| {
        let (before, after) = (100.0 * before, 100.0 * after);
        format!(
            "{before:.1} % of the weight before and {after:.1} % after was lost, which biases the comparison; -n compares shares of \
             the rest"
        )
        .into()
    })
}

impl WeightSurvey {
    /// Returns a warning about judging sides of which only the weights are known, if they deserve one.
    ///
    /// `fg-diff -n` makes the totals of both sides equal, which those of two runs hardly ever are. The factor is not
    /// known, and so neither is the weight of one sample before: with it, the verdict may be another.
    pub fn caveat(&self, kind: WeightKind, options: WeightOptions, of_lost: Option<Caveat>) -> Option<Caveat> {
        let is_scaled = self.has_difference && self.total == self.total_before;
        let scaled = "both sides have the same total, as fg-diff -n writes them: the weight of one sample before is not known, and \
                      the verdict may be wrong; give the profiles with --before and --after, and -n";
        if is_scaled { Some(scaled.into()) } else { self.caveat_of_single_runs(kind, options, of_lost) }
    }

    /// Returns a warning about judging sides of one run each, if their weights deserve one: because of their kind, or because their
    /// common divisor is taken for a sample, and the samples are so few that the verdict depends on it; or `of_lost`, the warning about
    /// what was lost.
    pub fn caveat_of_single_runs(
        &self,
        kind: WeightKind,
        options: WeightOptions,
        of_lost: Option<Caveat>,
    ) -> Option<Caveat> {
        let is_derived = options.per_sample.is_none();
        let (WeightKind::Samples(sample) | WeightKind::LargeCounts(sample) | WeightKind::LikelySamples(sample)) = kind
        else {
            return kind.caveat(true).map(Caveat::from).or(of_lost);
        };
        if of_lost.is_some() {
            return of_lost;
        }
        if matches!(kind, WeightKind::LikelySamples(_)) {
            let text = format!(
                "one sample is taken to weigh {sample}, unless --per-sample says otherwise, because few weights are small; if the \
                 weights are durations or periods, compare several runs per side with --before and --after"
            );
            return Some(text.into());
        }
        let [before, after] = [self.total_before, self.total].map(|total| total / sample.millionths().max(1));
        let are_few = (before.min(after) as f64) < PLENTY_OF_SAMPLES * EFFECTIVE_SAMPLES_PER_RUN;
        if matches!(kind, WeightKind::LargeCounts(_)) {
            let text = "few weights are small, but they are taken for numbers of samples; if the weights are durations or periods, give \
                        that of one sample with --per-sample, or compare several runs per side with --before and --after";
            return Some(text.into());
        }
        (is_derived && sample != Weight::ONE && are_few).then(|| {
            let text = format!(
                "all weights are multiples of {sample}, taken as the weight of one sample: {before} before, {after} after; if a \
                 sample weighs less, give --per-sample; if the weights are exact counts, --exact"
            );
            text.into()
        })
    }
}
