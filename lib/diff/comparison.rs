//! The result of a comparison, stack by stack and in total.

use super::counterparts::Counterparts;
use super::options::Options;
use super::renamed::Renamed;
use super::scale::{Ratio, Scaler};
use crate::Error;
use crate::profile::{Weight, Weights};
use crate::stats::caveat::Caveat;
use crate::stats::sample_weight::WeightKind;

/// Share of the weight of each side that only this side has, above which names are taken to differ.
const MISMATCH: f64 = 0.5;

/// Totals of a comparison, updated with each stack.
#[derive(Debug)]
pub struct Comparison {
    /// Total weight of each side as read.
    pub totals: Weights,
    /// Factor by which weights before are multiplied.
    pub factor: f64,
    /// Number of stacks.
    pub stacks: u64,
    /// Number of stacks that only the side before has.
    pub only_before: u64,
    /// Number of stacks that only the side after has.
    pub only_after: u64,
    /// Weight of the stacks that only one side has, before and after.
    pub weights_only: Weights,
    /// Number of stacks that differ, without flattened ones.
    pub different: u64,
    /// Number of differences that were flattened.
    pub flattened: u64,
    /// Functions that were renamed, if they were looked for.
    pub renamed: Vec<Renamed>,
    /// Names before that are compared under other names.
    pub counterparts: Counterparts,
    /// Kind of the weights, if significance was tested.
    pub weight_kind: Option<WeightKind>,
    /// A warning about judging the runs, if they deserve one.
    pub caveat: Option<Caveat>,
    scale: Scaler,
    /// Number of stacks before that of lost samples.
    lost_stack: Option<u64>,
    min_change: Weight,
}

impl Comparison {
    /// Returns an empty comparison.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the smallest change does not fit.
    pub(super) fn new(totals: Weights, ratio: Ratio, unit: Weight, options: &Options) -> Result<Self, Error> {
        Ok(Self {
            totals,
            factor: ratio.as_f64(),
            stacks: 0,
            only_before: 0,
            only_after: 0,
            weights_only: Weights::default(),
            different: 0,
            flattened: 0,
            renamed: Vec::new(),
            counterparts: Counterparts::default(),
            weight_kind: None,
            caveat: None,
            scale: Scaler::new(ratio, unit),
            lost_stack: None,
            min_change: options.min_change.map_or(Ok(Weight::ZERO), |min| min.resolve(totals.after))?,
        })
    }

    /// Sets the position of the stack of lost samples. It takes no part in scaling: its rounding error is not carried on.
    pub(super) fn with_lost_stack(self, position: Option<u64>) -> Self {
        Self { lost_stack: position, ..self }
    }

    /// Returns the share of each side's weight that only this side has, if it is most of both: then names differ, not what is
    /// measured.
    pub fn mismatch(&self) -> Option<(f64, f64)> {
        let before = self.weights_only.before.as_f64() / self.totals.before.as_f64();
        let after = self.weights_only.after.as_f64() / self.totals.after.as_f64();
        (before > MISMATCH && after > MISMATCH).then_some((before, after))
    }

    /// Returns the name of the side with total weight zero, if the other one has weight.
    pub fn empty_side(&self) -> Option<&'static str> {
        match (self.totals.before.is_zero(), self.totals.after.is_zero()) {
            (true, false) => Some("before"),
            (false, true) => Some("after"),
            _ => None,
        }
    }

    /// Adds the next stack in order and returns its weights, with the weight before scaled.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the scaled weight does not fit.
    pub(super) fn scale_stack(&mut self, weights: Weights) -> Result<Weights, Error> {
        let is_lost = self.lost_stack == Some(self.stacks);
        self.stacks += 1;
        self.only_before += u64::from(weights.after.is_zero() && !weights.before.is_zero());
        self.only_after += u64::from(weights.before.is_zero() && !weights.after.is_zero());
        if weights.before.is_zero() || weights.after.is_zero() {
            self.weights_only.add(weights)?;
        }
        let mut scale_alone = self.scale;
        let scale = if is_lost { &mut scale_alone } else { &mut self.scale };
        Ok(Weights { before: scale.scale_next(weights.before)?, after: weights.after })
    }

    /// Returns the weights of a scaled stack to write: the weight before is set to the weight after if the difference is
    /// not significant or too small.
    pub(super) fn flatten_stack(&mut self, mut weights: Weights, is_significant: bool) -> Weights {
        if weights.before != weights.after {
            if is_significant && weights.difference() >= self.min_change {
                self.different += 1;
            } else {
                self.flattened += 1;
                weights.before = weights.after;
            }
        }
        weights
    }
}
