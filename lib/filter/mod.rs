//! Selects and reshapes stacks.
//!
//! The verbs have the meaning of pprof's, applied to frames: a pattern matches anywhere in a frame's name. Each
//! distinct frame is renamed and matched once, however many stacks contain it. The order is fixed: rename frames,
//! select stacks, select frames within them, then apply limits to the weights of the result.

mod frame_matcher;
mod frames;
mod names;
pub mod rename;
mod select;
mod split;
mod threshold;

pub use frame_matcher::FrameMatcher;
pub use frames::{Recursion, Reshape};
pub use names::Names;
pub use rename::Rename;
pub use select::Select;
pub use split::Split;
pub use threshold::Threshold;

use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use self::select::Selection;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::{LineKind, StackSink, read_all};
use crate::input::Source;
use crate::profile::{Batch, FrameId, Frames, Profile, Weight, Weights};

/// A filter of stacks. The default changes nothing but merges equal stacks.
#[derive(Debug, Default)]
pub struct Filter {
    /// Renames frames, first.
    pub names: Names,
    /// Splits the renamed frames into several.
    pub split: Option<Split>,
    /// Selects stacks by their frames, second.
    pub select: Select,
    /// Selects frames within stacks, third.
    pub reshape: Reshape,
    /// Smallest weight of a stack that is kept.
    pub min: Option<Threshold>,
    /// Number of heaviest stacks to keep.
    pub top: Option<usize>,
}

/// The result of a filter.
#[derive(Debug)]
pub struct Filtered {
    /// Stacks that were kept.
    pub profile: Profile,
    /// Weight of the dropped stacks; with the kept ones it adds up to the total read.
    pub dropped: Weights,
}

impl Filter {
    /// Returns the patterns in use, each with the name of its verb.
    pub fn matchers(&self) -> impl Iterator<Item = (&'static str, &FrameMatcher)> {
        // Every field is named, so that the compiler reports a new verb that is missing here.
        let Select { root, focus, ignore } = &self.select;
        let Reshape { hide, show, show_from, prune_from, drop_unknown: _, no_delimiters: _, recursion: _ } =
            &self.reshape;
        let all = [
            ("root", root),
            ("focus", focus),
            ("ignore", ignore),
            ("hide", hide),
            ("show", show),
            ("show-from", show_from),
            ("prune-from", prune_from),
        ];
        all.into_iter().filter_map(|(verb, matcher)| Some((verb, matcher.as_ref()?)))
    }

    /// Reads all sources and applies the filter to each stack as it is read: dropped stacks take no memory.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit, and those of [`read_all`].
    pub fn apply(&mut self, sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Filtered, Error> {
        let mut accumulator = Accumulator::new(self);
        read_all(sources, &mut accumulator, diagnostics)?;
        accumulator.finish()
    }
}

/// Filters stacks while they are read.
struct Accumulator<'a> {
    filter: &'a mut Filter,
    read: Frames,
    /// New ids of the frames read, one after another: more than one if a name was split.
    ids: Vec<FrameId>,
    /// End of the ids of each frame read.
    ends: Vec<usize>,
    /// For each frame of the last stack: the selection up to it, and the number of frames kept up to it.
    path: Vec<(Selection, usize)>,
    /// Frames of the last stack that are kept, with new ids.
    kept_frames: Vec<FrameId>,
    stack: Vec<FrameId>,
    batch: Batch,
    kept: Profile,
    dropped: Weights,
    total: Weights,
}

impl<'a> Accumulator<'a> {
    fn new(filter: &'a mut Filter) -> Self {
        Self {
            filter,
            read: Frames::new(),
            ids: Vec::new(),
            ends: Vec::new(),
            path: Vec::new(),
            kept_frames: Vec::new(),
            stack: Vec::new(),
            batch: Batch::default(),
            kept: Profile::default(),
            dropped: Weights::default(),
            total: Weights::default(),
        }
    }

    /// Finds the new names of the frames that were read since the last call.
    fn rename_new_frames(&mut self) {
        for index in self.ends.len()..self.read.len() {
            let name = self.filter.names.rename(self.read.name(FrameId::from_index(index as u32)));
            match &self.filter.split {
                Some(split) => self.ids.extend(split.parts(&name).map(|part| self.kept.frames.intern(part))),
                None => self.ids.push(self.kept.frames.intern(&name)),
            }
            self.ends.push(self.ids.len());
        }
    }

    /// Adds a frame of the input to the path, and to the kept frames what is kept of it.
    fn push_frame(&mut self, frame: FrameId) {
        let is_root = self.path.is_empty();
        let mut selection = self.path.last().map(|(selection, _)| *selection);
        let start = if frame.index() == 0 { 0 } else { self.ends[frame.index() - 1] };
        for number in start..self.ends[frame.index()] {
            let mut id = self.ids[number];
            if is_root && number == start {
                id = self.filter.names.rename_root(&mut self.kept.frames, id);
            }
            selection = Some(self.filter.select.advance(&self.kept.frames, selection, id));
            if self.filter.reshape.keeps_frame(&self.kept.frames, id) {
                self.kept_frames.push(id);
            }
        }
        // A name has at least one part.
        self.path.extend(selection.map(|selection| (selection, self.kept_frames.len())));
    }

    /// Adds the kept frames of the last stack; returns `false` if none is left.
    fn add_kept(&mut self, weights: Weights) -> Result<bool, Error> {
        let mut stack = &self.kept_frames;
        if self.filter.reshape.cuts_stacks() {
            self.stack.clone_from(&self.kept_frames);
            self.filter.reshape.cut_stack(&self.kept.frames, &mut self.stack);
            stack = &self.stack;
        }
        self.batch.push(stack, weights, &self.kept.frames);
        if self.batch.is_full() {
            self.kept.add_batch(&mut self.batch)?;
        }
        Ok(!stack.is_empty())
    }

    fn finish(mut self) -> Result<Filtered, Error> {
        self.kept.add_batch(&mut self.batch)?;
        let Self { filter, mut kept, dropped, total, .. } = self;
        kept.presort(available_parallelism().map_or(1, NonZeroUsize::get));
        let min = filter.min.map_or(Ok(Weight::ZERO), |min| min.resolve(larger_weight(total)))?;
        match filter.min.is_some() || filter.top.is_some() {
            true => keep_heaviest(&kept, dropped, min, filter.top.unwrap_or(usize::MAX)),
            false => Ok(Filtered { profile: kept, dropped }),
        }
    }
}

impl StackSink for Accumulator<'_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.read
    }

    fn begin(&mut self, kind: LineKind) {
        self.kept = Profile::new(kind == LineKind::Differential);
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.total.add(weights)?;
        self.path.truncate(shared);
        self.kept_frames.truncate(self.path.last().map_or(0, |(_, kept)| *kept));
        self.rename_new_frames();
        stack[shared..].iter().for_each(|frame| self.push_frame(*frame));
        if self.path.last().is_some_and(|(selection, _)| selection.is_selected()) && self.add_kept(weights)? {
            return Ok(());
        }
        self.dropped.add(weights)
    }
}

/// Returns the weight by which stacks are ranked: the larger one in a differential profile.
fn larger_weight(weights: Weights) -> Weight {
    weights.before.max(weights.after)
}

/// Keeps the heaviest `top` stacks of those that weigh at least `min`; of equal stacks the first in order.
fn keep_heaviest(profile: &Profile, mut dropped: Weights, min: Weight, top: usize) -> Result<Filtered, Error> {
    let mut order = Vec::new();
    profile.for_each_sorted::<Error>(|stack| {
        order.push((Reverse(larger_weight(stack.weights)), order.len()));
        Ok(())
    })?;
    order.retain(|(Reverse(weight), _)| *weight >= min);
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

    use super::{Accumulator, Filter, Filtered, FrameMatcher, Names, Recursion, Reshape, Select, Threshold};
    use crate::folded::StackSink as _;
    use crate::profile::{Weight, Weights};

    type Stacks = Vec<(Vec<String>, u64)>;

    fn apply(filter: &mut Filter, stacks: &Stacks) -> Filtered {
        let mut accumulator = Accumulator::new(filter);
        let mut last: &[String] = &[];
        for (frames, weight) in stacks {
            let shared = frames.iter().zip(last).take_while(|(a, b)| a == b).count();
            let stack: Vec<_> = frames.iter().map(|name| accumulator.read.intern(name.as_bytes())).collect();
            accumulator.add(&stack, shared, Weights::plain(Weight::new(*weight))).unwrap();
            last = frames;
        }
        accumulator.finish().unwrap()
    }

    fn total(stacks: &Stacks) -> Weights {
        Weights::plain(Weight::new(stacks.iter().map(|(_, weight)| weight).sum()))
    }

    fn matcher() -> impl Strategy<Value = Option<FrameMatcher>> {
        let patterns = ["a", "b|c", "^d", "[a-d]-", "k.$", "."];
        prop::option::of(prop::sample::select(patterns.to_vec()).prop_map(|pattern| pattern.parse().unwrap()))
    }

    fn filter() -> impl Strategy<Value = Filter> {
        let names = (any::<bool>(), 0u8..4, any::<bool>())
            .prop_map(|(strip, level, threads)| Names::new(strip, level, vec!["b=c".parse().unwrap()], threads));
        let select = (matcher(), matcher(), matcher()).prop_map(|(root, focus, ignore)| Select { root, focus, ignore });
        let recursion = prop::option::of(prop_oneof![Just(Recursion::Adjacent), Just(Recursion::All)]);
        let reshape = (any::<bool>(), matcher(), matcher(), matcher(), matcher(), recursion).prop_map(
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
        let split = prop::option::of("[a-d]").prop_map(|split| split.map(|pattern| pattern.parse().unwrap()));
        (names, split, select, reshape, min, prop::option::of(0usize..20))
            .prop_map(|(names, split, select, reshape, min, top)| Filter { names, split, select, reshape, min, top })
    }

    fn stacks() -> impl Strategy<Value = Stacks> {
        let frame =
            prop_oneof!["[a-d]{1,2}(_\\[k\\])?", "[a-d]-[0-9]", Just("[unknown]".to_owned()), Just("--".to_owned())];
        prop::collection::vec((prop::collection::vec(frame, 1..7), 0u64..1000), 0..40)
    }

    proptest! {
        #[test]
        fn kept_and_dropped_weights_add_up_to_the_total(stacks in stacks(), mut filter in filter()) {
            let filtered = apply(&mut filter, &stacks);
            let mut sum = filtered.profile.total();
            sum.add(filtered.dropped).unwrap();
            prop_assert_eq!(sum, total(&stacks));
        }

        #[test]
        fn focus_and_ignore_match_a_linear_search(
            stacks in stacks(),
            focus in "[a-e]",
            ignore in "[a-e]",
        ) {
            let select = Select { focus: focus.parse().ok(), ignore: ignore.parse().ok(), root: None };
            let filtered = apply(&mut Filter { select, ..Filter::default() }, &stacks);
            let wanted = stacks.iter().filter(|(frames, _)| {
                frames.iter().any(|name| name.contains(&focus)) && !frames.iter().any(|name| name.contains(&ignore))
            });
            let wanted: u64 = wanted.map(|(_, weight)| weight).sum();
            prop_assert_eq!(filtered.profile.total().after, Weight::new(wanted));
        }
    }
}
