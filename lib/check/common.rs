//! The weights of the functions that both sides have, for rules about the growth of each function.

use super::accumulate::Accumulator;
use super::chances::Chances;
use super::clone_frames;
use super::new_code::NewCode;
use crate::Error;
use crate::diff::{ComparedRuns, OneSided};
use crate::folded::{LineKind, StackSink as _};

/// The weights without functions that only one side has, the chances of their differences, and the code that is left out.
pub(super) struct Common<'a> {
    pub accumulator: Accumulator<'a>,
    pub chances: Chances,
    pub new_code: NewCode,
}

impl<'a> Common<'a> {
    /// Returns the weights of a differential profile that was read; `None` if both sides have the same functions, or if no rule
    /// is about growth.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn new(
        all: &mut Accumulator<'a>,
        runs: Option<&ComparedRuns>,
        chances: &Chances,
    ) -> Result<Option<Self>, Error> {
        let Some(stacks) = &mut all.stack_sums else { return Ok(None) };
        let rows = all.functions.rows()?;
        let may_be_chance = |row: usize| chances.may_be_on_one_side_by_chance(rows[row].frames[0]);
        let one_sided = OneSided::new(&rows, &all.frames, may_be_chance);
        if one_sided.is_empty() {
            return Ok(None);
        }
        let rows = stacks.rows()?;
        let mut accumulator = Accumulator::new(all.rules, all.categories);
        accumulator.frames = clone_frames(&all.frames);
        let hiding = one_sided.hiding(&mut accumulator.frames);
        accumulator.begin(LineKind::Differential);
        for row in &rows {
            accumulator.add_shown_as(&row.frames, &hiding.apply(&row.frames), 0, row.weights[0])?;
        }
        let new_code = NewCode::new(rows, all, &accumulator.frames, &one_sided, &hiding, runs)?;
        let runs = runs.map(|runs| runs.without(&one_sided)).transpose()?;
        let chances = chances.of_common(&mut accumulator, runs.as_ref())?;
        Ok(Some(Self { accumulator, chances, new_code }))
    }
}
