//! Selects and reshapes stacks.
//!
//! The verbs have the meaning of pprof's, applied to frames: a pattern matches anywhere in a frame's name. Each
//! distinct frame is renamed and matched once, however many stacks contain it. The order is fixed: rename frames,
//! select stacks, select frames within them, then apply limits to the weights of the result.
//!
//! Lines without a match are not parsed if only matches matter. Stacks that are kept in sorted order are written as they are
//! read; if they are many, files are read twice, so that memory does not grow with them.

mod accumulate;
mod frame_matcher;
mod frame_table;
mod frames;
mod line_pattern;
mod names;
pub mod rename;
mod select;
mod sorted_stacks;
mod split;
mod threshold;
mod unmatched;

pub use frame_matcher::FrameMatcher;
pub use frames::{Recursion, Reshape};
pub use names::Names;
pub use rename::Rename;
pub use select::Select;
pub use split::Split;
pub use threshold::Threshold;
pub use unmatched::UnmatchedPattern;

use std::cmp::Reverse;
use std::io::Write;

use self::accumulate::{Accumulator, Kept};
use self::frame_table::FrameTable;
use self::line_pattern::line_filter;
use self::sorted_stacks::{SortedStacks, StackWriter};
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::{self, LineFilter, LineKind, read_selected};
use crate::input::Source;
use crate::parallel::cores;
use crate::profile::{Profile, Weight, Weights};

/// Largest size of sorted stacks in memory, in bytes.
const MAX_SORTED: usize = 32 << 20;

/// A filter of stacks. The default changes nothing but merges equal stacks.
#[derive(Clone, Debug, Default)]
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

/// The result of a filter, to be written with [`Filter::write`].
pub struct Filtered<'w> {
    table: FrameTable,
    kept: Kept<'w>,
    /// The kind of the input; `None` if it has no stack.
    pub kind: Option<LineKind>,
    /// True if a stack was selected by its root and focus. Only in such stacks other patterns were looked for.
    pub has_selected: bool,
    /// Weight of all stacks, if it was asked for.
    pub total: Weights,
    /// Weight of the dropped stacks, if it was asked for.
    pub dropped: Weights,
    /// Weight of the stacks that were dropped because they have no frame left.
    pub emptied: Weights,
}

impl Filtered<'_> {
    /// True if no stack is left. Stacks that were too many for memory are some.
    pub fn is_empty(&self) -> bool {
        match &self.kept {
            Kept::Sorted(stacks) => stacks.is_empty(),
            Kept::Any(profile) => profile.is_empty(),
            Kept::TooMany(_) | Kept::OutOfOrder | Kept::Writer(_) => false,
        }
    }
}

impl Filter {
    /// True if stacks are dropped that have no match, and not only frames.
    pub fn drops_without_match(&self) -> bool {
        self.reshape.show.is_some() || self.reshape.show_from.is_some()
    }

    /// Returns the patterns for frames in use, each with the name of its verb: first those that select stacks to keep.
    fn matchers(&self) -> impl Iterator<Item = (&'static str, &FrameMatcher)> {
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
    /// Lines without a match are parsed only if the weight of dropped stacks is needed.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit, and those of [`read_selected`].
    pub fn apply(
        &mut self,
        sources: &[Source],
        needs_dropped: bool,
        diagnostics: &mut Diagnostics,
    ) -> Result<Filtered<'static>, Error> {
        self.apply_within(MAX_SORTED, sources, needs_dropped, diagnostics)
    }

    /// Applies the filter; sorted stacks larger than `max_sorted` bytes are not kept in memory.
    fn apply_within(
        &mut self,
        max_sorted: usize,
        sources: &[Source],
        needs_dropped: bool,
        diagnostics: &mut Diagnostics,
    ) -> Result<Filtered<'static>, Error> {
        let can_read_again = !sources.iter().any(|source| *source == Source::Stdin || source.is_stream());
        let max_sorted = Some(max_sorted).filter(|_| can_read_again && self.reshape.is_empty());
        let lines = if needs_dropped { None } else { self.line_filter() };
        let kept =
            if self.limits_weights() { Kept::Any(Box::default()) } else { Kept::Sorted(SortedStacks::default()) };
        let mut accumulator = Accumulator::new(self, FrameTable::default(), kept, max_sorted);
        read_selected(sources, lines.as_ref(), &mut accumulator, diagnostics)?;
        let mut filtered = accumulator.finish()?;
        if let Kept::OutOfOrder = filtered.kept {
            let again = self.read_again(filtered.table, Kept::Any(Box::default()), sources)?;
            let Filtered { total, dropped, emptied, .. } = filtered;
            filtered = Filtered { total, dropped, emptied, ..again };
        }
        self.limit_weights(filtered)
    }

    /// Applies the filter again to files in which everything was reported that there is to report.
    fn read_again<'w>(&mut self, table: FrameTable, kept: Kept<'w>, sources: &[Source]) -> Result<Filtered<'w>, Error> {
        let lines = self.line_filter();
        let mut accumulator = Accumulator::new(self, table, kept, None);
        read_selected(sources, lines.as_ref(), &mut accumulator, &mut Diagnostics::silent())?;
        accumulator.finish()
    }

    /// Returns a filter of the lines that have to be parsed; `None` if all have to be.
    fn line_filter(&self) -> Option<LineFilter> {
        let renames = !self.names.is_empty() || self.split.is_some();
        if renames || matches!(self.min, Some(Threshold::Percent(_))) {
            return None;
        }
        let patterns = [&self.select.root, &self.select.focus].into_iter().flatten();
        line_filter(patterns.map(FrameMatcher::pattern))
    }

    fn limits_weights(&self) -> bool {
        self.min.is_some() || self.top.is_some()
    }

    /// Drops the stacks that are too light.
    fn limit_weights<'w>(&self, mut filtered: Filtered<'w>) -> Result<Filtered<'w>, Error> {
        let Kept::Any(profile) = &mut filtered.kept else { return Ok(filtered) };
        profile.frames = std::mem::take(&mut filtered.table.frames);
        profile.presort(cores());
        if self.limits_weights() {
            let min = self.min.map_or(Ok(Weight::ZERO), |min| min.resolve(larger_weight(filtered.total)))?;
            let kept = keep_heaviest(profile, &mut filtered.dropped, min, self.top.unwrap_or(usize::MAX))?;
            **profile = kept;
        }
        Ok(filtered)
    }

    /// Writes the result of [`apply`](Self::apply) to the same sources; `name` is that of the output, for messages.
    ///
    /// # Errors
    /// [`Error::Write`], and those of [`apply`](Self::apply) if a source is read once more.
    pub fn write(
        &mut self,
        filtered: Filtered<'_>,
        sources: &[Source],
        name: &str,
        mut out: &mut dyn Write,
    ) -> Result<(), Error> {
        let is_differential = filtered.kind == Some(LineKind::Differential);
        let writer = |stacks, out| StackWriter::new(stacks, is_differential, name, out);
        match filtered.kept {
            Kept::Any(profile) => folded::write(&profile, &mut out).map_err(|error| Error::write(name, error)),
            Kept::Sorted(stacks) => writer(stacks, out).finish(&filtered.table.frames),
            _ => {
                let kept = Kept::Writer(writer(SortedStacks::default(), out));
                let Filtered { kept: Kept::Writer(writer), table, .. } =
                    self.read_again(filtered.table, kept, sources)?
                else {
                    return Ok(());
                };
                writer.finish(&table.frames)
            }
        }
    }
}

/// Returns the weight by which stacks are ranked: the larger one in a differential profile.
fn larger_weight(weights: Weights) -> Weight {
    weights.before.max(weights.after)
}
/// Keeps the heaviest `top` stacks of those that weigh at least `min`; of equal stacks the first in order.
fn keep_heaviest(profile: &Profile, dropped: &mut Weights, min: Weight, top: usize) -> Result<Profile, Error> {
    let mut order = Vec::new();
    let mut is_kept = vec![false; profile.len()];
    let mut numbers = 0..;
    profile.for_each_sorted::<Error>(|stack| {
        let number = numbers.next().unwrap_or_default();
        match profile.frames.is_flattened_mark(stack.frames, stack.weights) {
            true => is_kept[number] = true,
            false => order.push((Reverse(larger_weight(stack.weights)), number)),
        }
        Ok(())
    })?;
    order.retain(|(Reverse(weight), _)| *weight >= min);
    order.sort_unstable();
    order.truncate(top);
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
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Filter, FrameMatcher, MAX_SORTED, Names, Recursion, Reshape, Select, Threshold};
    use crate::diagnostics::Diagnostics;
    use crate::input::Source;
    use crate::profile::Weight;

    type Stacks = Vec<(Vec<String>, u64)>;

    /// The output of a filter, and the total and dropped weights that it reports.
    #[derive(Debug)]
    struct Applied {
        text: String,
        total: u64,
        dropped: u64,
        has_matched: Vec<bool>,
    }

    fn apply(filter: &mut Filter, text: &str, max_sorted: usize, needs_dropped: bool) -> Applied {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let sources = [Source::File(file.path().to_owned())];
        let mut diagnostics = Diagnostics::silent();
        let filtered = filter.apply_within(max_sorted, &sources, needs_dropped, &mut diagnostics).unwrap();
        let [total, dropped] = [filtered.total, filtered.dropped]
            .map(|weights| u64::try_from(weights.after.millionths() / Weight::ONE.millionths()).unwrap());
        let has_matched = filter.matchers().map(|(_, matcher)| matcher.has_matched()).collect();
        let mut out = Vec::new();
        filter.write(filtered, &sources, "out", &mut out).unwrap();
        Applied { text: String::from_utf8(out).unwrap(), total, dropped, has_matched }
    }

    fn text(stacks: &Stacks) -> String {
        stacks.iter().map(|(frames, weight)| format!("{} {weight}\n", frames.join(";"))).collect()
    }

    fn sum(text: &str) -> u64 {
        text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
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

    /// Stacks, half of the time in sorted order. Some have names that are changed when they are read.
    fn stacks() -> impl Strategy<Value = Stacks> {
        let frame = prop_oneof![
            "[a-d]{1,2}(_\\[k\\])?",
            "[a-d]-[0-9]",
            prop::sample::select(vec!["[unknown]", "--", "a 1", "# b : c", "d "]).prop_map(str::to_owned),
        ];
        let stacks = prop::collection::vec((prop::collection::vec(frame, 1..7), 0u64..1000), 0..40);
        (stacks, any::<bool>())
            .prop_map(|(mut stacks, sorts)| {
                if sorts {
                    stacks.sort();
                }
                // Some of the others are comments.
                stacks.push((vec!["z".to_owned()], 1));
                stacks
            })
            .prop_filter("most lines have one weight", |stacks| {
                let with_two = stacks.iter().filter(|(frames, _)| frames.last().is_some_and(|leaf| leaf == "a 1"));
                with_two.count() * 3 < stacks.len()
            })
    }

    proptest! {
        #[test]
        fn kept_and_dropped_weights_add_up_to_the_total(stacks in stacks(), mut filter in filter()) {
            let applied = apply(&mut filter, &text(&stacks), MAX_SORTED, true);
            let lines = text(&stacks);
            let comments = lines.lines().filter(|line| crate::folded::is_comment(line.as_bytes()));
            let comments: String = comments.map(|line| format!("{line}\n")).collect();
            prop_assert_eq!(applied.total, sum(&lines) - sum(&comments));
            prop_assert_eq!(sum(&applied.text) + applied.dropped, applied.total);
        }

        #[test]
        fn lines_that_are_not_parsed_and_files_that_are_read_twice_change_nothing(
            stacks in stacks(),
            root in matcher(),
            focus in matcher(),
            filter in filter(),
            is_plain in any::<bool>(),
        ) {
            let select = Select { root, focus, ..filter.select };
            let filter = if is_plain { Filter { select, ..Filter::default() } } else { Filter { select, ..filter } };
            let text = text(&stacks);
            let expected = apply(&mut filter.clone(), &text, MAX_SORTED, true);
            for (max_sorted, needs_dropped) in [(MAX_SORTED, false), (0, true), (0, false)] {
                let applied = apply(&mut filter.clone(), &text, max_sorted, needs_dropped);
                prop_assert_eq!(&applied.text, &expected.text);
                prop_assert_eq!(&applied.has_matched, &expected.has_matched);
                prop_assert!(!needs_dropped || applied.dropped == expected.dropped);
            }
        }

        #[test]
        fn focus_and_ignore_match_a_linear_search(
            stacks in stacks(),
            focus in "[a-e]",
            ignore in "[a-e]",
        ) {
            let select = Select { focus: focus.parse().ok(), ignore: ignore.parse().ok(), root: None };
            let mut filter = Filter { select, ..Filter::default() };
            let wanted = stacks.iter().filter(|(frames, _)| {
                let is_comment = frames.join(";").starts_with("# ") && frames.len() == 1;
                frames.iter().any(|name| name.contains(&focus)) && !frames.iter().any(|name| name.contains(&ignore)) && !is_comment
            });
            let wanted: u64 = wanted.map(|(_, weight)| weight).sum();
            prop_assert_eq!(sum(&apply(&mut filter, &text(&stacks), MAX_SORTED, false).text), wanted);
        }
    }
}
