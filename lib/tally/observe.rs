//! Sums of each run of a comparison.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::{GroupBy, Row, tally_profile};
use crate::Error;
use crate::profile::{FrameId, Frames, Profile};
use crate::stats::judgement::Observation;

/// Profiles of the runs of a comparison, and what makes their weights comparable.
#[derive(Debug, Default)]
pub struct RunSums {
    /// The profiles of the runs before.
    pub before: Vec<Profile>,
    /// The profiles of the runs after.
    pub after: Vec<Profile>,
    /// Factor of the weights of each run before.
    pub factors_before: Vec<f64>,
    /// Factor of the weights of each run after.
    pub factors_after: Vec<f64>,
}

impl RunSums {
    /// Returns the profile and factor of each run before, then of each run after.
    pub fn iter(&self) -> impl Iterator<Item = (&Profile, f64)> {
        let factors = self.factors_before.iter().chain(&self.factors_after).copied();
        self.before.iter().chain(&self.after).zip(factors)
    }

    /// Splits a weight per run, in the order of [`iter`](Self::iter), into those before and those after.
    pub fn observation(&self, weights: &[f64]) -> Observation {
        let (before, after) = weights.split_at(self.before.len());
        Observation { before: before.to_vec(), after: after.to_vec() }
    }
}

/// Returns the observations of each row, for each of its weights. Frames of rows are those of `frames`.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn observe_runs(
    rows: &[Row],
    frames: &Frames,
    runs: &RunSums,
    by: GroupBy,
) -> Result<Vec<Vec<Observation>>, Error> {
    let by_name: HashMap<&[u8], FrameId, FxBuildHasher> = frames.iter().map(|(id, name)| (name, id)).collect();
    let index: HashMap<&[FrameId], usize, FxBuildHasher> =
        rows.iter().enumerate().map(|(number, row)| (&row.frames[..], number)).collect();
    let nothing = Observation { before: vec![0.0; runs.before.len()], after: vec![0.0; runs.after.len()] };
    let mut observations: Vec<Vec<Observation>> =
        rows.iter().map(|row| vec![nothing.clone(); row.weights.len()]).collect();
    for (number, (run, factor)) in runs.iter().enumerate() {
        for row in tally_profile(run, by)? {
            let ids: Option<Vec<FrameId>> =
                row.frames.iter().map(|frame| by_name.get(run.frames.name(*frame)).copied()).collect();
            let Some(found) = ids.and_then(|ids| index.get(&ids[..]).copied()) else { continue };
            for (observation, weights) in observations[found].iter_mut().zip(&row.weights) {
                let weight = weights.after.as_f64() * factor;
                match number.checked_sub(runs.before.len()) {
                    None => observation.before[number] = weight,
                    Some(after) => observation.after[after] = weight,
                }
            }
        }
    }
    Ok(observations)
}
