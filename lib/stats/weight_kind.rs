//! What one sample weighs, or that weights are durations.

use super::significance::Runs;
use crate::markers::is_thread_state;
use crate::profile::{Frames, Weight};

/// With so many weights none of which is near their common divisor, they may be no counts.
const MANY: u128 = 20;

/// What the weights of a profile are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weighed {
    /// Counts of samples that weigh so much each.
    Counts(Weight),
    /// The same, as far as one can see; but so they would be if they were durations.
    Perhaps(Weight),
    /// Durations: stacks that end in a state of a thread say so.
    #[default]
    Durations,
}

impl Weighed {
    /// What one sample weighs, if they are counts.
    pub fn sample(self) -> Option<Weight> {
        match self {
            Self::Counts(weight) | Self::Perhaps(weight) => Some(weight),
            Self::Durations => None,
        }
    }

    /// What is to be said of differences between so many runs a side.
    pub fn doubt(self, runs: Runs) -> Option<&'static str> {
        match self {
            _ if runs.are_several() => None,
            Self::Counts(_) => None,
            Self::Perhaps(_) => Some(
                "the weights are judged as counts of samples; if they are durations, fg-diff --significant of several runs \
                 a side tells what is noise",
            ),
            Self::Durations => Some(
                "the weights are durations, of which one run a side does not tell what is noise; fg-diff --significant of \
                 several does",
            ),
        }
    }
}

/// The common divisor of weights, which of counts is one sample's.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    divisor: u128,
    smallest: u128,
    number: u128,
}

impl Default for Divisor {
    fn default() -> Self {
        Self { divisor: 0, smallest: u128::MAX, number: 0 }
    }
}

impl Divisor {
    /// Takes a weight into account.
    pub fn add(&mut self, weight: Weight) {
        let weight = weight.millionths();
        if weight > 0 {
            self.divisor = common_divisor(self.divisor, weight);
            self.smallest = self.smallest.min(weight);
            self.number += 1;
        }
    }

    /// Takes the weights into account that another has seen.
    pub fn join(&mut self, other: Self) {
        self.divisor = common_divisor(self.divisor, other.divisor);
        self.smallest = self.smallest.min(other.smallest);
        self.number += other.number;
    }

    /// What the weights of stacks of such frames are.
    pub fn weighed(&self, frames: &Frames) -> Weighed {
        let divisor = self.divisor.max(1);
        let sample = Weight::from_millionths(divisor);
        if frames.iter().any(|(_, name)| is_thread_state(name)) {
            Weighed::Durations
        } else if self.number < MANY || self.smallest / divisor < MANY {
            Weighed::Counts(sample)
        } else {
            Weighed::Perhaps(sample)
        }
    }

    /// The same, but of too few weights to tell a sample weighs 1.
    pub fn weighed_if_many(&self, frames: &Frames) -> Weighed {
        match self.weighed(frames) {
            Weighed::Counts(_) if self.number < MANY => Weighed::Counts(Weight::ONE),
            weighed => weighed,
        }
    }
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
