//! The weights of the functions that both sides have, for rules about the growth of each function.

use std::collections::{BTreeMap, BTreeSet};

use super::accumulate::Accumulator;
use super::chances::Chances;
use super::clone_frames;
use crate::Error;
use crate::diff::{ComparedRuns, OneSided};
use crate::folded::{LineKind, StackSink as _};
use crate::profile::{FrameId, Weight};
use crate::stats::sample_weight::WeightOptions;
use crate::tally::Charging;

/// The weights without functions that only one side has, and the chances of their differences.
pub(super) struct Common<'a> {
    pub accumulator: Accumulator<'a>,
    pub chances: Chances,
    /// The weights after of new functions, by the function that both sides have for which they count.
    new_functions: BTreeMap<(FrameId, FrameId), Weight>,
}

impl<'a> Common<'a> {
    /// Returns the weights of a differential profile that was read; `None` if both sides have the same functions, or if no rule
    /// is about each of them.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn new(
        all: &mut Accumulator<'a>,
        runs: Option<&ComparedRuns>,
        options: WeightOptions,
    ) -> Result<Option<Self>, Error> {
        let Some(stacks) = &mut all.stack_sums else { return Ok(None) };
        let one_sided = OneSided::new(&all.functions.rows()?, &all.frames);
        if one_sided.is_empty() {
            return Ok(None);
        }
        let mut accumulator = Accumulator::new(all.rules, all.categories);
        accumulator.frames = clone_frames(&all.frames);
        let hiding = one_sided.hiding(&mut accumulator.frames);
        accumulator.begin(LineKind::Differential);
        let charging = Charging::new(&accumulator.frames);
        let mut new_functions = BTreeMap::<_, Weight>::new();
        for row in stacks.rows()? {
            let (rest, weights) = (hiding.apply(&row.frames), row.weights[0]);
            if let (Some(own), Some(rest)) = (charging.charged(&row.frames), charging.charged(&rest))
                && own != rest
                && weights.before.is_zero()
            {
                let sum = new_functions.entry((own, rest)).or_default();
                *sum = sum.checked_add(weights.after).ok_or(Error::Overflow)?;
            }
            accumulator.add_shown_as(&row.frames, &rest, 0, weights)?;
        }
        // The kind of weights is that of the stacks as they were read.
        accumulator.survey = std::mem::take(&mut all.survey);
        let runs = runs.map(|runs| runs.without(&one_sided)).transpose()?;
        let chances = Chances::new(&mut accumulator, runs.as_ref(), options)?;
        Ok(Some(Self { accumulator, chances, new_functions }))
    }

    /// Returns the new functions with their weights after, as far as they count for these functions.
    pub fn new_functions_of(&self, charged: &BTreeSet<FrameId>) -> BTreeMap<FrameId, Weight> {
        let mut weights = BTreeMap::<FrameId, Weight>::new();
        for ((own, _), weight) in self.new_functions.iter().filter(|((_, rest), _)| charged.contains(rest)) {
            let sum = weights.entry(*own).or_default();
            *sum = sum.checked_add(*weight).unwrap_or(*sum);
        }
        weights
    }
}
