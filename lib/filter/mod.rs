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
mod threshold;

pub use frames::{Recursion, Reshape};
pub use judge::Judge;
pub use names::Names;
pub use rename::Rename;
pub use select::Select;
pub use threshold::Threshold;

use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use self::select::Verdict;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::{Kind, StackSink, read_all};
use crate::input::Source;
use crate::profile::{Batch, FrameId, Frames, Profile, Weight, Weights};

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

/// What came of what was read.
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

    /// Reads all sources and applies the filter. Stacks are judged as they come: those that are dropped are not kept in
    /// memory.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit, and those of [`read_all`].
    pub fn apply(&mut self, sources: &[Source], diagnostics: &mut Diagnostics) -> Result<Filtered, Error> {
        let mut intake = Intake::new(self);
        read_all(sources, &mut intake, diagnostics)?;
        intake.finish()
    }
}

/// Filters what is read.
struct Intake<'a> {
    filter: &'a mut Filter,
    read: Frames,
    /// For each frame read, what it is called now.
    ids: Vec<FrameId>,
    /// What the last stack's frames say of it, and how many of those up to there stay.
    path: Vec<(Verdict, usize)>,
    /// Those that stay, as they are called now.
    staying: Vec<FrameId>,
    stack: Vec<FrameId>,
    batch: Batch,
    kept: Profile,
    dropped: Weights,
    total: Weights,
}

impl<'a> Intake<'a> {
    fn new(filter: &'a mut Filter) -> Self {
        Self {
            filter,
            read: Frames::new(),
            ids: Vec::new(),
            path: Vec::new(),
            staying: Vec::new(),
            stack: Vec::new(),
            batch: Batch::default(),
            kept: Profile::default(),
            dropped: Weights::default(),
            total: Weights::default(),
        }
    }

    /// What a frame is called now.
    fn renamed(&mut self, frame: FrameId, is_root: bool) -> FrameId {
        for index in self.ids.len()..self.read.len() {
            let name = self.filter.names.rename(self.read.name(FrameId::from_index(index as u32)));
            self.ids.push(self.kept.frames.intern(&name));
        }
        let frame = self.ids[frame.index()];
        if is_root { self.filter.names.rename_root(&mut self.kept.frames, frame) } else { frame }
    }

    /// Keeps what is left of the present stack; `false` if nothing is.
    fn keep(&mut self, weights: Weights) -> Result<bool, Error> {
        let mut stack = &self.staying;
        if self.filter.reshape.cuts() {
            self.stack.clone_from(&self.staying);
            self.filter.reshape.cut(&self.kept.frames, &mut self.stack);
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
        let least = filter.min.map_or(Ok(Weight::ZERO), |least| least.of(heavier(total)))?;
        match filter.min.is_some() || filter.top.is_some() {
            true => heaviest(&kept, dropped, least, filter.top.unwrap_or(usize::MAX)),
            false => Ok(Filtered { profile: kept, dropped }),
        }
    }
}

impl StackSink for Intake<'_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.read
    }

    fn begin(&mut self, kind: Kind) {
        self.kept = Profile::new(kind == Kind::Differential);
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        self.total.add(weights)?;
        self.path.truncate(shared);
        self.staying.truncate(self.path.last().map_or(0, |(_, staying)| *staying));
        for frame in &stack[shared..] {
            let before = self.path.last().map(|(verdict, _)| *verdict);
            let frame = self.renamed(*frame, before.is_none());
            let verdict = self.filter.select.judge(&self.kept.frames, before, frame);
            if self.filter.reshape.keeps(&self.kept.frames, frame) {
                self.staying.push(frame);
            }
            self.path.push((verdict, self.staying.len()));
        }
        if self.path.last().is_some_and(|(verdict, _)| verdict.keeps()) && self.keep(weights)? {
            return Ok(());
        }
        self.dropped.add(weights)
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

    use super::{Filter, Filtered, Intake, Judge, Names, Recursion, Reshape, Select, Threshold};
    use crate::folded::StackSink as _;
    use crate::profile::{Weight, Weights};

    type Stacks = Vec<(Vec<String>, u64)>;

    fn apply(filter: &mut Filter, stacks: &Stacks) -> Filtered {
        let mut intake = Intake::new(filter);
        let mut last: &[String] = &[];
        for (frames, weight) in stacks {
            let shared = frames.iter().zip(last).take_while(|(a, b)| a == b).count();
            let stack: Vec<_> = frames.iter().map(|name| intake.read.intern(name.as_bytes())).collect();
            intake.add(&stack, shared, Weights::plain(Weight::new(*weight))).unwrap();
            last = frames;
        }
        intake.finish().unwrap()
    }

    fn total(stacks: &Stacks) -> Weights {
        Weights::plain(Weight::new(stacks.iter().map(|(_, weight)| weight).sum()))
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
            let filtered = apply(&mut filter, &stacks);
            let mut sum = filtered.profile.total();
            sum.add(filtered.dropped).unwrap();
            prop_assert_eq!(sum, total(&stacks));
        }

        #[test]
        fn focus_and_ignore_keep_what_a_slow_search_keeps(
            stacks in stacks(),
            focus in "[a-e]",
            ignore in "[a-e]",
        ) {
            let select = Select { focus: focus.parse().ok(), ignore: ignore.parse().ok(), comm: None };
            let filtered = apply(&mut Filter { select, ..Filter::default() }, &stacks);
            let wanted = stacks.iter().filter(|(frames, _)| {
                frames.iter().any(|name| name.contains(&focus)) && !frames.iter().any(|name| name.contains(&ignore))
            });
            let wanted: u64 = wanted.map(|(_, weight)| weight).sum();
            prop_assert_eq!(filtered.profile.total().after, Weight::new(wanted));
        }
    }
}
