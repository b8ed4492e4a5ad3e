//! Comparisons in which functions that were probably renamed have one name.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::counterparts::Counterparts;
use super::modules::find_modules;
use super::renamed::{self, Renamed};
use super::runs::ComparedRuns;
use super::significant::{find_one_sided, keep_equal_pairs};
use crate::Error;
use crate::filter::rename;
use crate::profile::{Profile, Weight, Weights};
use crate::stats::sample_weight::{WeightOptions, WeightSurvey};
use crate::tally::{GroupBy, RunSums, tally_profile};

impl ComparedRuns {
    /// Returns the comparison with modules that were renamed under their names after. All of their functions are compared then, also
    /// those that cost more or less.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn join_modules(mut self) -> Result<Self, Error> {
        let pairs = self.find_renamed()?;
        let names = |is_before: bool| names_of_side(&self.profile, is_before);
        let modules =
            Counterparts::of_modules(find_modules(&pairs, &borrowed(&names(true)?), &borrowed(&names(false)?)));
        if modules.is_empty() {
            return Ok(self);
        }
        let rename = |profile: &Profile| rename::rename_frames(profile, |name| modules.rename(name));
        self.profile = rename(&self.profile)?;
        self.runs.before = self.runs.before.iter().map(rename).collect::<Result<_, _>>()?;
        self.counterparts.extend(modules);
        Ok(self)
    }

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

/// Returns the names of the functions that have weight on a side.
fn names_of_side(both: &Profile, is_before: bool) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    for row in tally_profile(both, GroupBy::Function)? {
        let weights = row.weights[1];
        if !(if is_before { weights.before } else { weights.after }).is_zero() {
            names.insert(String::from_utf8_lossy(both.frames.name(row.frames[0])).into_owned());
        }
    }
    Ok(names)
}

fn borrowed(names: &BTreeSet<String>) -> BTreeSet<&str> {
    names.iter().map(String::as_str).collect()
}

/// A differential profile with its functions that were probably renamed.
#[derive(Debug)]
pub struct RenamedInSums {
    /// The profile, with modules that were renamed under their names after.
    pub profile: Profile,
    /// The functions.
    pub renamed: Vec<Renamed>,
    /// The modules.
    pub counterparts: Counterparts,
}

/// Finds the functions of a differential profile that were probably renamed.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
pub fn find_renamed_in_sums(profile: Profile, options: WeightOptions) -> Result<RenamedInSums, Error> {
    let mut survey = WeightSurvey::default();
    profile.measured_weights().for_each(|weights| survey.add_sides(weights));
    let weight_kind = survey.kind(&profile.frames, options);
    let before = take_side(&profile, |weights| weights.before)?;
    let after = take_side(&profile, |weights| weights.after)?;
    let runs =
        RunSums { before: vec![before], after: vec![after], factors_before: vec![1.0], factors_after: vec![1.0] };
    let compared = ComparedRuns { profile, runs, weight_kind, caveat: None, counterparts: Counterparts::default() };
    let compared = compared.join_modules()?;
    let renamed = compared.find_renamed()?;
    Ok(RenamedInSums { profile: compared.profile, renamed, counterparts: compared.counterparts })
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
