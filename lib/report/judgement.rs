//! What weights mean, and which changes are more than noise: the report's only use of `stats`.

use super::measure::{format_count, format_microseconds, format_weight};
use crate::markers::is_thread_state;
use crate::profile::{Profile, Weight, Weights};
use crate::stats::significance::{FALSE_DISCOVERY_RATE, Runs, SignificanceTest};
use crate::stats::weight_kind::{CommonDivisor, WeightKind};

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
    pub(super) fn new(profile: &Profile) -> Self {
        let has_states = profile.frames.iter().any(|(_, name)| is_thread_state(name));
        let unit = match weight_kind(profile) {
            _ if has_states => Unit::Microseconds,
            WeightKind::Counts(sample) => Unit::Samples(sample),
            WeightKind::LikelyCounts(_) | WeightKind::Durations => Unit::Unknown,
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

fn weight_kind(profile: &Profile) -> WeightKind {
    let mut divisor = CommonDivisor::default();
    profile.all_weights().for_each(|weights| divisor.add(weights.after));
    divisor.kind_or_one(&profile.frames)
}

/// The chances of changes, or the reason why they are not known.
pub(super) struct Judgement {
    /// For each change the probability that noise alone causes it; empty if it is not known.
    pub(super) chances: Vec<f64>,
    /// A doubt about the chances, or the reason why there are none.
    pub(super) caveat: Option<&'static str>,
}

impl Judgement {
    /// Judges changes whose weights add up to those of the profile. `runs` is the number of runs that each side adds up.
    pub(super) fn new(profile: &Profile, changes: &[Weights], runs: Runs) -> Self {
        let kind = weight_kind(profile);
        let chances = kind.sample().map(|sample| {
            let test = SignificanceTest::new(changes.iter().copied(), sample, profile.total(), runs);
            test.adjusted_p_values(changes.iter().copied())
        });
        Self { chances: chances.unwrap_or_default(), caveat: kind.caveat(runs) }
    }

    /// True if a change is more than noise, or if that is not known.
    pub(super) fn counts(&self, change: usize) -> bool {
        self.chances.get(change).is_none_or(|chance| *chance <= FALSE_DISCOVERY_RATE)
    }
}
