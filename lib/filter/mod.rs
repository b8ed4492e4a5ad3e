//! Selecting and reshaping stacks.
//!
//! The verbs mean what they mean in pprof, on frames: a pattern is searched for anywhere in a frame's name. Every distinct
//! frame is renamed and judged once, however many stacks it stands in. The order is fixed: names, then which stacks are
//! kept, then which of their frames, then the weights of what became of them.

mod frames;
mod judge;
mod names;
pub mod rename;
mod select;
mod shorten;
mod threshold;

pub use frames::{Recursion, Reshape};
pub use judge::Judge;
pub use names::Names;
pub use rename::Rename;
pub use select::Select;
pub use threshold::Threshold;

use std::cmp::Reverse;

use crate::Error;
use crate::profile::{Profile, Weight, Weights};

/// What is done to a profile; by default nothing but merging.
#[derive(Debug, Default)]
pub struct Filter {
    /// First the names.
    pub names: Names,
    /// Then which stacks are kept, by their frames.
    pub select: Select,
    /// Then which of their frames are.
    pub reshape: Reshape,
    /// Then stacks that weigh less are dropped.
    pub min: Option<Threshold>,
    /// Of what is left the heaviest so many are kept.
    pub top: Option<usize>,
}

/// What came of a profile.
#[derive(Debug)]
pub struct Filtered {
    /// The stacks that were kept.
    pub profile: Profile,
    /// What the others weighed. With the kept ones it adds up to the whole.
    pub dropped: Weights,
}

impl Filter {
    /// The patterns with the names of their options.
    pub fn judges(&self) -> impl Iterator<Item = (&'static str, &Judge)> {
        let (select, reshape) = (&self.select, &self.reshape);
        let all = [
            ("--comm", &select.comm),
            ("--focus", &select.focus),
            ("--ignore", &select.ignore),
            ("--hide", &reshape.hide),
            ("--show", &reshape.show),
            ("--show-from", &reshape.show_from),
            ("--prune-from", &reshape.prune_from),
        ];
        all.into_iter().filter_map(|(option, judge)| Some((option, judge.as_ref()?)))
    }

    /// Applies the filter.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn apply(&mut self, profile: &Profile) -> Result<Filtered, Error> {
        let mut kept = Profile::new(profile.is_differential());
        let mut dropped = Weights::default();
        let ids: Vec<_> = profile.frames.iter().map(|(_, name)| kept.frames.intern(&self.names.rename(name))).collect();
        let mut stack = Vec::new();
        profile.for_each(|frames, weights| {
            stack.clear();
            stack.extend(frames.iter().map(|frame| ids[frame.index()]));
            self.names.rename_root(&mut kept.frames, &mut stack);
            if self.select.keeps(&kept.frames, &stack) && self.reshape.apply(&kept.frames, &mut stack) {
                kept.add(&stack, weights)
            } else {
                dropped.add(weights)
            }
        })?;
        let least = self.min.map_or(Ok(Weight::ZERO), |least| least.of(heavier(profile.total())))?;
        match self.min.is_some() || self.top.is_some() {
            true => heaviest(&kept, dropped, least, self.top.unwrap_or(usize::MAX)),
            false => Ok(Filtered { profile: kept, dropped }),
        }
    }
}

/// The weight by which stacks are compared: of a differential profile the larger one.
fn heavier(weights: Weights) -> Weight {
    weights.before.max(weights.after)
}

/// The heaviest `top` stacks of those that weigh `least`; among equals the first in order.
fn heaviest(profile: &Profile, mut dropped: Weights, least: Weight, top: usize) -> Result<Filtered, Error> {
    let mut order = Vec::new();
    profile.for_each_sorted::<Error>(|stack| {
        order.push((Reverse(heavier(stack.weights)), order.len()));
        Ok(())
    })?;
    order.retain(|(Reverse(weight), _)| *weight >= least);
    order.sort_unstable();
    order.truncate(top);
    let mut is_kept = vec![false; profile.len()];
    for (_, number) in order {
        is_kept[number] = true;
    }
    let mut kept = Profile::new(profile.is_differential());
    let ids = kept.frames.intern_all(&profile.frames);
    let mut numbers = 0..;
    profile.for_each_sorted(|stack| {
        if numbers.next().is_some_and(|number: usize| is_kept[number]) {
            let frames: Vec<_> = stack.frames.iter().map(|frame| ids[frame.index()]).collect();
            return kept.add(&frames, stack.weights);
        }
        dropped.add(stack.weights)
    })?;
    Ok(Filtered { profile: kept, dropped })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Filter, Judge, Names, Recursion, Reshape, Select, Threshold};
    use crate::profile::{Profile, Weight, Weights};

    type Stacks = Vec<(Vec<String>, u64)>;

    fn profile(stacks: &Stacks) -> Profile {
        let mut profile = Profile::new(false);
        for (frames, weight) in stacks {
            let stack: Vec<_> = frames.iter().map(|name| profile.frames.intern(name.as_bytes())).collect();
            profile.add(&stack, Weights::plain(Weight::new(*weight))).unwrap();
        }
        profile
    }

    fn judge() -> impl Strategy<Value = Option<Judge>> {
        let patterns = ["a", "b|c", "^d", "[a-d]-", "k.$", "."];
        prop::option::of(prop::sample::select(patterns.to_vec()).prop_map(|pattern| pattern.parse().unwrap()))
    }

    fn filter() -> impl Strategy<Value = Filter> {
        let names = (any::<bool>(), 0u8..4, any::<bool>())
            .prop_map(|(strip, level, threads)| Names::new(strip, level, vec!["b=c".parse().unwrap()], threads));
        let select = (judge(), judge(), judge()).prop_map(|(comm, focus, ignore)| Select { comm, focus, ignore });
        let recursion = prop::option::of(prop_oneof![Just(Recursion::Adjacent), Just(Recursion::All)]);
        let reshape = (any::<bool>(), judge(), judge(), judge(), judge(), recursion).prop_map(
            |(drop_unknown, hide, show, show_from, prune_from, recursion)| Reshape {
                drop_unknown,
                no_delimiters: drop_unknown,
                hide,
                show,
                show_from,
                prune_from,
                recursion,
            },
        );
        let min = prop::option::of((0u64..30).prop_map(|percent| Threshold::Percent(Weight::new(percent))));
        (names, select, reshape, min, prop::option::of(0usize..20))
            .prop_map(|(names, select, reshape, min, top)| Filter { names, select, reshape, min, top })
    }

    fn stacks() -> impl Strategy<Value = Stacks> {
        let frame =
            prop_oneof!["[a-d]{1,2}(_\\[k\\])?", "[a-d]-[0-9]", Just("[unknown]".to_owned()), Just("--".to_owned())];
        prop::collection::vec((prop::collection::vec(frame, 1..7), 0u64..1000), 0..40)
    }

    proptest! {
        #[test]
        fn what_is_kept_and_what_is_dropped_make_the_whole(stacks in stacks(), mut filter in filter()) {
            let profile = profile(&stacks);
            let filtered = filter.apply(&profile).unwrap();
            let mut sum = filtered.profile.total();
            sum.add(filtered.dropped).unwrap();
            prop_assert_eq!(sum, profile.total());
        }

        #[test]
        fn focus_and_ignore_keep_what_a_slow_search_keeps(
            stacks in stacks(),
            focus in "[a-e]",
            ignore in "[a-e]",
        ) {
            let select = Select { focus: focus.parse().ok(), ignore: ignore.parse().ok(), comm: None };
            let filtered = Filter { select, ..Filter::default() }.apply(&profile(&stacks)).unwrap();
            let wanted = stacks.iter().filter(|(frames, _)| {
                frames.iter().any(|name| name.contains(&focus)) && !frames.iter().any(|name| name.contains(&ignore))
            });
            let wanted: u64 = wanted.map(|(_, weight)| weight).sum();
            prop_assert_eq!(filtered.profile.total().after, Weight::new(wanted));
        }
    }
}
