//! Functions that probably have another name after: they have neither grown nor shrunk.

use std::cmp::Reverse;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::context::Context;
use super::fit::ARROW;
use super::page::{Fact, Item, Number, Value};
use super::{Options, Subject};
use crate::Error;
use crate::diff::{self, Counterparts, Renamed};
use crate::profile::{FrameId, Frames, Profile, Weights};

/// The subject of a report with what was probably renamed.
pub(super) struct Found {
    /// The subject, with modules that were renamed under their names after.
    pub(super) subject: Subject,
    pub(super) functions: Vec<Renamed>,
    /// The modules of a comparison that was read.
    pub(super) counterparts: Counterparts,
}

/// Finds what was probably renamed in a comparison.
///
/// # Errors
/// [`Error::Overflow`].
pub(super) fn find(subject: Subject, options: &Options) -> Result<Found, Error> {
    let (subject, functions, counterparts) = match subject {
        _ if options.exact_names => (subject, Vec::new(), Counterparts::default()),
        Subject::Profile(profile) if profile.is_differential() && !profile.is_flattened() => {
            let found = diff::find_renamed_in_sums(profile, options.weights)?;
            (Subject::Profile(found.profile), found.renamed, found.counterparts)
        }
        Subject::Profile(_) => (subject, Vec::new(), Counterparts::default()),
        Subject::Runs(compared) => {
            let compared = compared.join_modules()?;
            let renamed = compared.find_renamed()?;
            (Subject::Runs(compared), renamed, Counterparts::default())
        }
    };
    Ok(Found { subject, functions, counterparts })
}

/// The frames of functions that were probably renamed.
#[derive(Debug, Default)]
pub(super) struct RenamedFrames(Vec<RenamedFrame>);

/// The frames of a function before and after.
#[derive(Clone, Copy, Debug)]
struct RenamedFrame {
    before: FrameId,
    after: FrameId,
}

impl RenamedFrames {
    /// Finds the frames of functions.
    pub(super) fn new(renamed: &[Renamed], frames: &Frames) -> Self {
        let by_name: HashMap<&[u8], FrameId, FxBuildHasher> = match renamed.is_empty() {
            true => HashMap::default(),
            false => frames.iter().map(|(frame, name)| (name, frame)).collect(),
        };
        let pairs = renamed.iter().filter_map(|pair| {
            Some(RenamedFrame { before: *by_name.get(&*pair.before)?, after: *by_name.get(&*pair.after)? })
        });
        Self(pairs.collect())
    }

    /// True if no function was renamed.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True for a frame with one of the names.
    pub(super) fn contains(&self, frame: FrameId) -> bool {
        self.0.iter().any(|pair| pair.before == frame || pair.after == frame)
    }

    /// Returns a profile in which these functions have their names after, and all frames the same IDs; `None` if there is no such
    /// function.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn join(&self, profile: &Profile) -> Result<Option<Profile>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut joined = Profile::new(profile.is_differential());
        joined.frames.intern_all(&profile.frames);
        let names: HashMap<FrameId, FrameId, FxBuildHasher> =
            self.0.iter().map(|pair| (pair.before, pair.after)).collect();
        let mut stack = Vec::new();
        profile.for_each(|frames, weights| {
            stack.clear();
            stack.extend(frames.iter().map(|frame| names.get(frame).copied().unwrap_or(*frame)));
            joined.add(&stack, weights)
        })?;
        Ok(Some(joined))
    }

    /// Returns the fact that names these functions, with the changes of their inclusive weights, the largest first.
    pub(super) fn fact(&self, context: &Context<'_>) -> Option<Fact> {
        let pairs = self.0.iter().map(|pair| {
            let [old, new] = [pair.before, pair.after].map(|frame| context.survey.functions[frame.index()].inclusive);
            (pair, Weights { before: old.before, after: new.after })
        });
        let mut pairs: Vec<(&RenamedFrame, Weights)> = pairs.collect();
        // Pairs of equal change stay in the order of their names.
        pairs.sort_by_key(|(_, weights)| Reverse(weights.difference()));
        let items = pairs.into_iter().map(|(pair, weights)| {
            let name = [pair.before, pair.after].map(|frame| context.name(frame)).join(ARROW);
            Item::new(name, Some(Number::Change(context.change(weights))))
        });
        (!self.0.is_empty()).then(|| Fact::new("renamed?", Value::List(items.collect())))
    }
}
