//! Which stacks are kept.
//!
//! The verbs mean what they mean in pprof, on frames: a pattern is searched for anywhere in a frame's name, suffixes like
//! `_[k]` included. Every distinct frame is judged once, however many stacks it stands in.

mod judge;
pub mod rename;
mod threshold;

pub use judge::Judge;
pub use rename::Rename;
pub use threshold::Threshold;

use crate::Error;
use crate::profile::{FrameId, Profile, Weights};

/// Which stacks are kept. The default keeps all.
#[derive(Debug, Default)]
pub struct Filter {
    /// Keep only stacks with a frame that matches.
    pub focus: Option<Judge>,
    /// Drop stacks with a frame that matches, also where another one is in focus.
    pub ignore: Option<Judge>,
}

/// What came of a profile.
#[derive(Debug)]
pub struct Filtered {
    /// The stacks that were kept.
    pub profile: Profile,
    /// What the stacks that were not kept weighed. With the kept ones it adds up to the whole.
    pub dropped: Weights,
}

impl Filter {
    /// Applies the filter.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn apply(&mut self, profile: &Profile) -> Result<Filtered, Error> {
        let mut filtered = Filtered { profile: Profile::new(profile.is_differential()), dropped: Weights::default() };
        let mut stack = Vec::new();
        profile.for_each(|frames, weights| {
            if !self.keeps(profile, frames) {
                return filtered.dropped.add(weights);
            }
            let kept = &mut filtered.profile;
            stack.clear();
            stack.extend(frames.iter().map(|frame| kept.frames.intern(profile.frames.name(*frame))));
            kept.add(&stack, weights)
        })?;
        Ok(filtered)
    }

    fn keeps(&mut self, profile: &Profile, stack: &[FrameId]) -> bool {
        let any = |judge: &mut Option<Judge>, without: bool| match judge {
            Some(judge) => stack.iter().any(|frame| judge.matches(&profile.frames, *frame)),
            None => without,
        };
        // Both are asked, so that each knows whether it ever matches.
        let (in_focus, ignored) = (any(&mut self.focus, true), any(&mut self.ignore, false));
        in_focus && !ignored
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Filter, Judge};
    use crate::profile::{Profile, Weight, Weights};

    proptest! {
        #[test]
        fn what_is_kept_and_what_is_dropped_make_the_whole(
            stacks in prop::collection::vec((prop::collection::vec("[a-e]{1,2}", 1..6), 0u64..1000), 0..40),
            focus in "[a-e]",
            ignore in "[a-e]",
        ) {
            let mut profile = Profile::new(false);
            for (frames, weight) in &stacks {
                let stack: Vec<_> = frames.iter().map(|name| profile.frames.intern(name.as_bytes())).collect();
                profile.add(&stack, Weights::plain(Weight::new(*weight))).unwrap();
            }
            let mut filter = Filter {
                focus: Some(Judge::new(&focus).unwrap()),
                ignore: Some(Judge::new(&ignore).unwrap()),
            };
            let filtered = filter.apply(&profile).unwrap();
            let mut sum = filtered.profile.total();
            sum.add(filtered.dropped).unwrap();
            prop_assert_eq!(sum, profile.total());
            let wanted = stacks.iter().filter(|(frames, _)| {
                frames.iter().any(|name| name.contains(&focus)) && !frames.iter().any(|name| name.contains(&ignore))
            });
            let wanted: u64 = wanted.map(|(_, weight)| weight).sum();
            prop_assert_eq!(filtered.profile.total().after, Weight::new(wanted));
        }
    }
}
