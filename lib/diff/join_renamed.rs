//! Comparisons in which functions that were probably renamed have one name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::counterparts::Counterparts;
use super::renamed::{self, Renamed};
use super::runs::ComparedRuns;
use super::significant::{find_one_sided, keep_equal_pairs};
use crate::Error;
use crate::filter::rename;
use crate::profile::{Profile, Weight, Weights};
use crate::stats::sample_weight::{WeightOptions, WeightSurvey};
use crate::tally::RunSums;

impl ComparedRuns {
    /// Returns the functions that were probably renamed. One of a pair has vanished and the other is new, neither by chance; they
    /// are alike, and do not differ significantly.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn find_renamed(&self) -> Result<Vec<Renamed>, Error> {
        let renamed = renamed::find_renamed(&self.profile, &find_one_sided(self)?)?;
        keep_equal_pairs(self, renamed)
    }
}

/// Returns a differential profile, and its functions that were probably renamed.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn find_renamed_in_sums(profile: Profile, options: WeightOptions) -> Result<(Profile, Vec<Renamed>), Error> {
    let mut survey = WeightSurvey::default();
    profile.measured_weights().for_each(|weights| survey.add_sides(weights));
    let weight_kind = survey.kind(&profile.frames, options);
    let before = take_side(&profile, |weights| weights.before)?;
    let after = take_side(&profile, |weights| weights.after)?;
    let runs =
        RunSums { before: vec![before], after: vec![after], factors_before: vec![1.0], factors_after: vec![1.0] };
    let compared = ComparedRuns { profile, runs, weight_kind, caveat: None, counterparts: Counterparts::default() };
    let renamed = compared.find_renamed()?;
    Ok((compared.profile, renamed))
}

/// Returns the profile of one side.
fn take_side(profile: &Profile, side: impl Fn(Weights) -> Weight) -> Result<Profile, Error> {
    let mut plain = Profile::new(false);
    plain.frames.intern_all(&profile.frames);
    profile.for_each(|stack, weights| match side(weights) {
        Weight::ZERO => Ok(()),
        weight => plain.add(stack, Weights::plain(weight)),
    })?;
    Ok(plain)
}

/// Gives renamed functions of all profiles their names after.
pub(super) fn rename_functions(profiles: &[Profile], renamed: &[Renamed]) -> Result<Vec<Profile>, Error> {
    let names: BTreeMap<&[u8], &[u8]> = renamed.iter().map(|pair| (&pair.before[..], &pair.after[..])).collect();
    let renamed = profiles.iter().map(|profile| {
        rename::rename_frames(profile, |name| {
            names.get(name).map_or(Cow::Borrowed(name), |name| Cow::Owned(name.to_vec()))
        })
    });
    renamed.collect()
}
