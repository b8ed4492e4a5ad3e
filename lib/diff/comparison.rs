//! What becomes of one stack's weights, and what that adds up to.

use super::Options;
use super::scale::{Ratio, Scale};
use crate::Error;
use crate::profile::{Weight, Weights};
use crate::stats::weight_kind::Weighed;

/// A comparison: stack by stack as it goes on, and in numbers when it is done.
#[derive(Debug)]
pub struct Comparison {
    /// The weights of both sides as they were read.
    pub totals: Weights,
    /// What the weights before are multiplied by.
    pub factor: f64,
    /// How many stacks there are.
    pub stacks: u64,
    /// How many stand on one side only: before, after.
    pub only: (u64, u64),
    /// How many differ, after flattening.
    pub different: u64,
    /// How many differences were flattened.
    pub flattened: u64,
    /// What the weights are, where differences were judged by it.
    pub weighed: Option<Weighed>,
    scale: Scale,
    least: Weight,
}

impl Comparison {
    /// Nothing compared yet.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the least change does not fit.
    pub(super) fn new(totals: Weights, ratio: Ratio, unit: Weight, options: &Options) -> Result<Self, Error> {
        Ok(Self {
            totals,
            factor: ratio.as_f64(),
            stacks: 0,
            only: (0, 0),
            different: 0,
            flattened: 0,
            weighed: None,
            scale: Scale::new(ratio, unit),
            least: options.min_change.map_or(Ok(Weight::ZERO), |least| least.of(totals.after))?,
        })
    }

    /// The side that weighs nothing, if the other one does.
    pub fn empty_side(&self) -> Option<&'static str> {
        match (self.totals.before.is_zero(), self.totals.after.is_zero()) {
            (true, false) => Some("before"),
            (false, true) => Some("after"),
            _ => None,
        }
    }

    /// The weights that are written for the next stack in order: the one before scaled, or where the difference is no
    /// real one or too small, equal to the one after.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the scaled weight does not fit.
    pub(super) fn weigh(&mut self, mut weights: Weights, is_real: bool) -> Result<Weights, Error> {
        self.stacks += 1;
        self.only.0 += u64::from(weights.after.is_zero() && !weights.before.is_zero());
        self.only.1 += u64::from(weights.before.is_zero() && !weights.after.is_zero());
        weights.before = self.scale.apply(weights.before)?;
        if weights.before != weights.after {
            if is_real && weights.difference() >= self.least {
                self.different += 1;
            } else {
                self.flattened += 1;
                weights.before = weights.after;
            }
        }
        Ok(weights)
    }
}
