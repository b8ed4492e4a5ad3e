//! Comparisons of the functions that both sides have: cost that only moved between functions is no growth.
//!
//! A function that is extracted, inlined, wrapped or renamed is on one side only, and so is its weight, at equal cost. Without
//! the functions of one side only, stacks are the same as before, and their weights too: the self weight of such a function
//! counts for its nearest caller that both sides have. A new cost is growth of that caller.
//!
//! A rare function that chance alone may have put on one side is compared by itself. If one side has more samples, most functions that it
//! alone has are rare ones: if they counted for their callers, these would grow. With three runs of 1,000 samples before and of 4,000
//! after, `fg-check -n` then failed in 30 of 30 comparisons of equal programs of 600 functions.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::runs::ComparedRuns;
use crate::Error;
use crate::markers::{UNMATCHED, WAKER_SEPARATOR, is_marker};
use crate::profile::{FrameId, Frames, Profile};
use crate::tally::{Charging, GroupBy, Judgement, Row, RunSums, observe_runs, tally_profile};

/// The functions that only one side of a comparison has.
#[derive(Debug, Default)]
pub struct OneSided {
    /// The functions by name: true for those that only the side after has.
    functions: HashMap<Vec<u8>, bool, FxBuildHasher>,
}

/// A function that only one side has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OneSidedFunction {
    /// Name of the function.
    pub name: Vec<u8>,
    /// True if it is new, false if it is gone.
    pub is_new: bool,
}

impl OneSided {
    /// Returns the functions that have weight on one side only, and not by chance. The rows have self and inclusive weights;
    /// `may_be_chance` takes the index of a row.
    pub fn new(rows: &[Row], frames: &Frames, may_be_chance: impl Fn(usize) -> bool) -> Self {
        let mut functions = HashMap::default();
        for (index, row) in rows.iter().enumerate() {
            let (name, inclusive) = (frames.name(row.frames[0]), row.weights[1]);
            let is_function = !is_marker(name) && name != WAKER_SEPARATOR;
            if is_function && inclusive.before.is_zero() != inclusive.after.is_zero() && !may_be_chance(index) {
                functions.insert(name.to_vec(), inclusive.before.is_zero());
            }
        }
        Self { functions }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns true for a function that only the side after has, and false for one that only the side before has; `None` for
    /// others.
    pub fn is_new(&self, name: &[u8]) -> Option<bool> {
        self.functions.get(name).copied()
    }

    /// Returns what is needed to hide the functions from stacks of these frames, and adds a frame for stacks of which nothing
    /// is left.
    pub fn hiding(&self, frames: &mut Frames) -> Hiding {
        let is_hidden = frames.iter().map(|(_, name)| self.functions.contains_key(name)).collect();
        let is_function = frames.iter().map(|(_, name)| !is_marker(name)).collect();
        Hiding { is_hidden, is_function, unmatched: frames.intern(UNMATCHED) }
    }

    /// Returns a profile without the functions.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    fn hide(&self, profile: &Profile) -> Result<Profile, Error> {
        let mut hidden = Profile::new(profile.is_differential());
        hidden.frames.intern_all(&profile.frames);
        let hiding = self.hiding(&mut hidden.frames);
        profile.for_each(|stack, weights| hidden.add(&hiding.apply(stack), weights))?;
        Ok(hidden)
    }

    fn hide_in_all(&self, profiles: &[Profile]) -> Result<Vec<Profile>, Error> {
        profiles.iter().map(|profile| self.hide(profile)).collect()
    }

    /// Returns, by the name of each function that both sides have, the functions whose self weight counts for it.
    fn find_charged(&self, profile: &Profile) -> BTreeMap<Vec<u8>, BTreeSet<OneSidedFunction>> {
        let mut frames = Frames::new();
        frames.intern_all(&profile.frames);
        let hiding = self.hiding(&mut frames);
        let charging = Charging::new(&frames);
        let mut charged = BTreeMap::<Vec<u8>, BTreeSet<OneSidedFunction>>::new();
        let _ = profile.for_each(|stack, _| {
            let (own, rest) = (charging.charged(stack), charging.charged(&hiding.apply(stack)));
            if let (Some(own), Some(rest)) = (own, rest)
                && let Some(is_new) = self.functions.get(frames.name(own))
            {
                let function = OneSidedFunction { name: frames.name(own).to_vec(), is_new: *is_new };
                charged.entry(frames.name(rest).to_vec()).or_default().insert(function);
            }
            Ok::<(), ()>(())
        });
        charged
    }
}

/// Functions to hide, by frame.
#[derive(Debug)]
pub struct Hiding {
    is_hidden: Vec<bool>,
    is_function: Vec<bool>,
    unmatched: FrameId,
}

impl Hiding {
    /// Returns a stack without the functions; `[unmatched]` is in their place if no function is left.
    pub fn apply<'a>(&self, stack: &'a [FrameId]) -> Cow<'a, [FrameId]> {
        if !stack.iter().any(|frame| self.is_hidden[frame.index()]) {
            return Cow::Borrowed(stack);
        }
        let mut rest: Vec<FrameId> = stack.iter().copied().filter(|frame| !self.is_hidden[frame.index()]).collect();
        if !rest.iter().any(|frame| self.is_function[frame.index()]) {
            rest.insert(0, self.unmatched);
        }
        Cow::Owned(rest)
    }
}

/// A comparison of the functions that both sides have.
#[derive(Debug)]
pub struct CommonRuns {
    /// The comparison without the other functions.
    pub compared: ComparedRuns,
    /// By the name of each function, those of one side only whose self weight counts for it.
    pub charged: BTreeMap<Vec<u8>, BTreeSet<OneSidedFunction>>,
}

impl ComparedRuns {
    /// Returns the comparison of the functions that both sides have; `None` if these are all.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn common(&self) -> Result<Option<CommonRuns>, Error> {
        let (rows, frames) = (tally_profile(&self.profile, GroupBy::Function)?, &self.profile.frames);
        let observed = observe_runs(&rows, frames, &self.runs, GroupBy::Function)?;
        let judgement = Judgement::new(&rows, frames, &observed, &self.total(), self.design()?);
        let one_sided = OneSided::new(&rows, frames, |row| {
            judgement.as_ref().is_some_and(|all| all.may_be_on_one_side_by_chance(&observed[row], &all.chances[row]))
        });
        if one_sided.is_empty() {
            return Ok(None);
        }
        let charged = one_sided.find_charged(&self.profile);
        Ok(Some(CommonRuns { compared: self.without(&one_sided)?, charged }))
    }

    /// Returns the comparison without these functions.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn without(&self, one_sided: &OneSided) -> Result<Self, Error> {
        let runs = RunSums {
            before: one_sided.hide_in_all(&self.runs.before)?,
            after: one_sided.hide_in_all(&self.runs.after)?,
            factors_before: self.runs.factors_before.clone(),
            factors_after: self.runs.factors_after.clone(),
        };
        Ok(Self {
            profile: one_sided.hide(&self.profile)?,
            runs,
            weight_kind: self.weight_kind,
            caveat: self.caveat.clone(),
            counterparts: self.counterparts.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{OneSided, OneSidedFunction};
    use crate::diff::differential_profile;
    use crate::folded;
    use crate::profile::Profile;
    use crate::tally::{GroupBy, tally_profile};

    /// Returns the functions of one side only. Those with a name of two letters may be there by chance.
    fn one_sided(profile: &Profile) -> OneSided {
        let rows = tally_profile(profile, GroupBy::Function).unwrap();
        OneSided::new(&rows, &profile.frames, |row| profile.frames.name(rows[row].frames[0]).len() == 2)
    }

    fn common(lines: &[&str]) -> Vec<String> {
        let profile = differential_profile(lines);
        let one_sided = one_sided(&profile);
        let mut text = Vec::new();
        folded::write(&one_sided.hide(&profile).unwrap(), &mut text).unwrap();
        String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn moved_cost_is_equal() {
        for (lines, expected) in [
            // Extracted, wrapped, renamed, inlined.
            (&["m;f 100 60", "m;f;g 0 40"][..], &["m;f 100 100"][..]),
            (&["m;f;h 50 0", "m;f;wrap;h 0 50", "m;f 1 1"], &["m;f 1 1", "m;f;h 50 50"]),
            (&["m;old 30 0", "m;old;read 20 0", "m;new 0 30", "m;new;read 0 20"], &["m 30 30", "m;read 20 20"]),
            (&["m;f;g 40 0", "m;f 60 100"], &["m;f 100 100"]),
            // By chance.
            (&["m;f 9 9", "m;f;r1 3 0", "m;f;r2 0 4"], &["m;f 9 9", "m;f;r1 3 0", "m;f;r2 0 4"]),
            // States and what was lost are no functions; a new thread is.
            (
                &["m;f 1 1", "[lost] 0 5", "new;run;[off-cpu] 0 7"],
                &["[lost] 0 5", "[unmatched];[off-cpu] 0 7", "m;f 1 1"],
            ),
        ] {
            assert_eq!(common(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_function_is_charged_with_those_of_one_side_below_it() {
        let profile = differential_profile(&["m;f 100 100", "m;f;g;[off-cpu] 0 40", "m;f;old 3 0", "m;f;g;f 0 1"]);
        let charged = one_sided(&profile).find_charged(&profile);
        let expected =
            [("g", true), ("old", false)].map(|(name, is_new)| OneSidedFunction { name: name.into(), is_new });
        let expected = expected.into_iter().collect();
        assert_eq!(charged.into_iter().collect::<Vec<_>>(), [(b"f".to_vec(), expected)]);
    }
}
