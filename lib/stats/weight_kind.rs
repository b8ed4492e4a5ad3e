//! The kind of a profile's weights: counts of samples, or durations.

use super::significance::Runs;
use crate::markers::is_thread_state;
use crate::profile::{Frames, Weight};

/// Weights may be durations if there are at least this many, and each is at least this multiple of their common
/// divisor. Otherwise they are counts.
const ENOUGH: u128 = 20;

/// Kind of a profile's weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightKind {
    /// Counts of samples, each of this weight.
    Counts(Weight),
    /// Probably counts of samples of this weight, but possibly durations.
    LikelyCounts(Weight),
    /// Durations, as leaves that are thread states show.
    #[default]
    Durations,
}

impl WeightKind {
    /// Returns the weight of one sample, if the weights are counts.
    pub fn sample(self) -> Option<Weight> {
        match self {
            Self::Counts(weight) | Self::LikelyCounts(weight) => Some(weight),
            Self::Durations => None,
        }
    }

    /// Returns a warning about judging differences between this number of runs a side.
    pub fn caveat(self, runs: Runs) -> Option<&'static str> {
        match self {
            _ if runs.are_several() => None,
            Self::Counts(_) => None,
            Self::LikelyCounts(_) => Some(
                "the weights are taken for numbers of samples; if they are durations, compare several runs per side with \
                 fg-diff --significant",
            ),
            Self::Durations => Some(
                "the weights are durations, and one run per side does not show how much they vary; compare several runs \
                 per side with fg-diff --significant",
            ),
        }
    }
}

/// The greatest common divisor of weights. If the weights are counts, it is the weight of one sample.
#[derive(Clone, Copy, Debug)]
pub struct CommonDivisor {
    divisor: u128,
    smallest: u128,
    count: u128,
}

impl Default for CommonDivisor {
    fn default() -> Self {
        Self { divisor: 0, smallest: u128::MAX, count: 0 }
    }
}

impl CommonDivisor {
    /// Adds a weight.
    pub fn add(&mut self, weight: Weight) {
        let weight = weight.millionths();
        if weight > 0 {
            self.divisor = common_divisor(self.divisor, weight);
            self.smallest = self.smallest.min(weight);
            self.count += 1;
        }
    }

    /// Adds the weights that were added to another divisor.
    pub fn merge(&mut self, other: Self) {
        self.divisor = common_divisor(self.divisor, other.divisor);
        self.smallest = self.smallest.min(other.smallest);
        self.count += other.count;
    }

    /// Returns the kind of the weights that were added. `frames` has the frames of their stacks: thread states among
    /// them show that the weights are durations.
    pub fn kind(&self, frames: &Frames) -> WeightKind {
        let divisor = self.divisor.max(1);
        let sample = Weight::from_millionths(divisor);
        if frames.iter().any(|(_, name)| is_thread_state(name)) {
            WeightKind::Durations
        } else if self.count < ENOUGH || self.smallest / divisor < ENOUGH {
            WeightKind::Counts(sample)
        } else {
            WeightKind::LikelyCounts(sample)
        }
    }

    /// Like [`kind`](Self::kind), but assumes that a sample weighs 1 if there are too few weights to tell by their
    /// divisor.
    pub fn kind_or_one(&self, frames: &Frames) -> WeightKind {
        match self.kind(frames) {
            WeightKind::Counts(_) if self.count < ENOUGH => WeightKind::Counts(Weight::ONE),
            kind => kind,
        }
    }
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
