//! The meaning of weights, and the changes that are more than noise: the report's only use of `stats`.

use super::context::Context;
use super::evidence::{Evidence, Sampling};
use super::measure::{format_count, format_microseconds, format_weight};
use crate::Error;
use crate::markers::is_thread_state;
use crate::profile::{FrameId, Weight, Weights};
use crate::stats::judgement::Design;
use crate::stats::sample_weight::WeightKind;
use crate::tally::{self, Row, observe_sum};

/// The unit of the weights of a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    unit: Unit,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    /// Thread states show that the weights are time.
    Microseconds,
    /// Samples of this weight.
    Samples(Weight),
    Unknown,
}

impl Amount {
    /// Finds out the unit of a profile.
    pub(super) fn new(context: &Context<'_>) -> Self {
        let profile = context.profile;
        let has_states = profile.frames.iter().any(|(_, name)| is_thread_state(name));
        let unit = match context.evidence.sampling(profile).kind {
            _ if has_states => Unit::Microseconds,
            WeightKind::Samples(sample) => Unit::Samples(sample),
            _ => Unit::Unknown,
        };
        Self { unit }
    }

    /// Formats a weight with its unit.
    pub(super) fn text(self, weight: Weight) -> String {
        match self.unit {
            Unit::Microseconds => format_microseconds(weight),
            Unit::Samples(Weight::ONE) => format!("{} samples", format_weight(weight)),
            Unit::Samples(sample) => {
                let count = weight.millionths() / sample.millionths().max(1);
                let count = format_count(usize::try_from(count).unwrap_or(usize::MAX));
                format!("{} ({count} samples of {})", format_weight(weight), format_weight(sample))
            }
            Unit::Unknown => format!("weight {}", format_weight(weight)),
        }
    }
}

/// The chances of changes, or the reason why they are not known.
pub(super) struct Judgement {
    /// For each change the probability that noise alone causes it; empty if it is not known.
    pub(super) chances: Vec<f64>,
    /// A doubt about the chances, or the reason why there are none.
    pub(super) caveat: Option<&'static str>,
}

impl Judgement {
    /// Judges the changes of the weights of own functions.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn new(
        context: &Context<'_>,
        functions: impl Iterator<Item = (FrameId, Weights)>,
    ) -> Result<Self, Error> {
        let Context { profile, evidence, .. } = context;
        let rows: Vec<Row> =
            functions.map(|(frame, weights)| Row { frames: vec![frame], weights: vec![weights] }).collect();
        let observations = evidence.observe(context.origins, &rows)?;
        let Sampling { kind, scale_before, caveat } = evidence.sampling(profile);
        let (total, design) = match evidence {
            Evidence::Sums(_) => (observe_sum(profile.total()), Design::of_sums(kind, scale_before)),
            Evidence::Runs { total, design, .. } => (total.clone(), design.clone()),
        };
        let judged = tally::Judgement::new(&rows, &profile.frames, &observations, &total, design);
        Ok(Self { chances: judged.map(|judged| judged.chances.concat()).unwrap_or_default(), caveat })
    }

    /// True if a change is more than noise, or if that is not known.
    pub(super) fn counts(&self, change: usize) -> bool {
        self.chances.get(change).is_none_or(|chance| tally::is_significant(*chance))
    }
}
