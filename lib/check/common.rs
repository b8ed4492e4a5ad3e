//! The weights of the functions that both sides have, for rules about the growth of each function.

use super::accumulate::Accumulator;
use super::chances::Chances;
use super::clone_frames;
use super::new_code::NewCode;
use crate::Error;
use crate::diff::{ComparedRuns, Unmatched};
use crate::folded::{LineKind, StackSink as _};
use crate::markers::UNMATCHED;

/// The weights without unmatched functions, the chances of their differences, and the code that is left out.
pub(super) struct Common<'a> {
    pub accumulator: Accumulator<'a>,
    pub chances: Chances,
    pub new_code: NewCode,
}

impl<'a> Common<'a> {
    /// Returns the weights of a differential profile that was read; `None` if no function is unmatched, or if no rule
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
        let unmatched = Unmatched::new(&rows, &all.frames, |row| chances.is_rare(rows[row].frames[0]));
        if unmatched.is_empty() {
            return Ok(None);
        }
        let rows = stacks.rows()?;
        all.frames.intern(UNMATCHED);
        let mut accumulator = Accumulator::new(all.rules, all.categories);
        accumulator.frames = clone_frames(&all.frames);
        let hiding = unmatched.hiding(&mut accumulator.frames);
        accumulator.begin(LineKind::Differential);
        for row in &rows {
            accumulator.add_shown_as(&row.frames, &hiding.without_unmatched(&row.frames), 0, row.weights[0])?;
        }
        let new_code = NewCode::new(rows, all, &accumulator.frames, &unmatched, &hiding, runs)?;
        let runs = runs.map(|runs| runs.without(&unmatched)).transpose()?;
        let chances = chances.of_common(&mut accumulator, runs.as_ref())?;
        Ok(Some(Self { accumulator, chances, new_code }))
    }
}
