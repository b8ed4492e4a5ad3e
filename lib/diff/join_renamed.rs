//! Comparisons in which functions that were probably renamed have one name.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::counterpart::Counterpart;
use super::counterparts::Counterparts;
use super::modules::{Module, find_module};
use super::renamed::{self, Renamed};
use super::runs::ComparedRuns;
use super::significant::{find_one_sided, keep_equal_pairs};
use crate::Error;
use crate::filter::rename;
use crate::profile::{Profile, Weight, Weights};
use crate::stats::sample_weight::{WeightOptions, WeightSurvey};
use crate::tally::RunSums;

/// Most modules that are looked for.
const MOST_MODULES: usize = 16;

impl ComparedRuns {
    /// Returns the comparison with modules and types that were renamed under their names after. All functions whose names contain
    /// them are compared then, also those that cost more or less.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn join_modules(mut self) -> Result<Self, Error> {
        let mut known: Vec<Module> = Vec::new();
        while known.len() < MOST_MODULES {
            let Some(module) = find_module(&self.profile, &find_one_sided(&self)?, &known)? else { break };
            self.profile = rename_in(&self.profile, &names_after(&module.functions))?;
            self.runs.before = rename_functions(&self.runs.before, &module.functions)?;
            known.push(module);
        }
        // Modules in modules come before these.
        let mut modules: Vec<Counterpart> = known.into_iter().map(|module| module.counterpart).collect();
        modules.sort_by_key(|module| Reverse(module.before.len()));
        self.counterparts.extend(Counterparts::from_names(modules));
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
    let names = names_after(renamed);
    profiles.iter().map(|profile| rename_in(profile, &names)).collect()
}

fn names_after(renamed: &[Renamed]) -> BTreeMap<&[u8], &[u8]> {
    renamed.iter().map(|pair| (&pair.before[..], &pair.after[..])).collect()
}

fn rename_in(profile: &Profile, names: &BTreeMap<&[u8], &[u8]>) -> Result<Profile, Error> {
    rename::rename_frames(profile, |name| match names.get(name) {
        Some(name) => Cow::Owned(name.to_vec()),
        None => Cow::Borrowed(name),
    })
}
