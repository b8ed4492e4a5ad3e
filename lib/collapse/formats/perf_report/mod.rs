//! `perf report --stdio --no-children -g folded`: for each function its percentage, then its stacks with their
//! percentages, or with `-g folded,count` or `-g folded,period` with their numbers of samples or their periods.
//!
//! ```text
//! # Samples: 192  of event 'cycles'
//! # Overhead  Command  Shared Object  Symbol
//! # ........  .......  .............  ......
//!     98.70%  app      app            [.] hash
//! 74.87% hash;main;_start
//! 23.83% hash;_start
//! ```
//! The weight is the percentage or the number of a stack. perf leaves out stacks below `--percent-limit`: what they
//! miss of their row's percentage is added as a stack of the row's function alone, or of its module or `[unknown]` if the
//! table has no functions. The command, if there is such a column, is the root frame. Of several events, the first counts
//! unless `--event` names another. All other columns are left out.
//!
//! All sums are in millionths, as in [`Weight`].

mod columns;

use bstr::ByteSlice as _;
use rustc_hash::FxHashSet;

use self::columns::{Columns, Row};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    first_lines, function_name, multiply_weight, parse_number, split_once, split_word,
};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "perf-report",
    description: "perf report --stdio --no-children -g folded",
    tested_with: "perf 6.1, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

pub(in crate::collapse) fn recognizes(head: &[u8]) -> bool {
    let mut headings = first_lines(head).filter(|line| is_heading(line));
    headings.next().is_some_and(|heading| columns::has_symbols(heading) || first_lines(head).any(is_folded_stack))
}

fn is_heading(line: &[u8]) -> bool {
    line.starts_with(b"# ") && [&b"Overhead"[..], b"Children"].iter().any(|name| line[1..].trim().starts_with(name))
}

/// Returns true for the stacks of `-g folded`, in whatever unit.
fn is_folded_stack(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_digit) && parse_stack(line).is_some()
}

/// The part of a report about one event.
#[derive(Default)]
struct Section {
    event: Vec<u8>,
    samples: Option<SampleCount>,
    /// The sum of all periods.
    periods: Option<Weight>,
    entries: Vec<Entry>,
    /// True if a stack has a percentage where stacks of earlier sections have numbers, or the other way round.
    has_other_kind: bool,
}

/// The number of samples in a section's heading, which perf rounds.
#[derive(Clone, Copy)]
struct SampleCount {
    /// As printed: `12K` is 12,000.
    count: u64,
    max: Weight,
    is_exact: bool,
}

/// A line of the table, and its stacks.
#[derive(Default)]
struct Entry {
    /// Percentage of the event.
    percent: Weight,
    /// The frame of the command.
    root: Vec<u8>,
    /// The function, or what is known in its place.
    leaf: Vec<u8>,
    stacks: Vec<ListedStack>,
}

/// A stack below a line of the table.
struct ListedStack {
    /// A percentage, or a number of samples, or a period.
    weight: Weight,
    is_percent: bool,
    /// Separated by `;`.
    frames: Vec<u8>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut section, mut columns) = (Vec::new(), Section::default(), Columns::default());
    let mut heading = Vec::new();
    // All stacks of a report have weights of the same kind.
    let mut is_percent = None;
    while document.read_line(&mut line)? {
        if is_heading(&line) {
            if line.contains_str("Children") {
                let what = "perf report counted stacks once for each of their functions: give it --no-children";
                return Err(document.unreadable(what));
            }
            if line.contains_str(" / ") {
                let what =
                    "a tree of perf report --hierarchy, which is not read: give it -g folded without --hierarchy";
                return Err(document.unreadable(what));
            }
            heading.clone_from(&line);
            columns = Columns::parse(&heading, b"");
        } else if line.starts_with(b"# ..") {
            columns = Columns::parse(&heading, &line);
        } else if let Some(comment) = line.strip_prefix(b"#").filter(is_comment) {
            if let Some(next) = Section::parse(comment) {
                std::mem::replace(&mut section, next).add(document, sink)?;
            } else if let Some((_, periods)) = split_once(comment, "Event count (approx.): ") {
                section.periods = Weight::parse(periods.trim());
            }
        } else if line.is_empty() {
            continue;
        } else if let Some(Row { percent, root, leaf }) = columns.parse_row(&line) {
            section.entries.push(Entry { percent, root, leaf, stacks: Vec::new() });
        } else if let (Some(stack), Some(entry)) = (parse_stack(&line), section.entries.last_mut()) {
            if *is_percent.get_or_insert(stack.is_percent) == stack.is_percent {
                // A percentage of `0.00` has been rounded.
                entry.stacks.extend(Some(stack).filter(|stack| !stack.weight.is_zero()));
            } else {
                section.has_other_kind = true;
                document.report_malformed("expected weights of the same kind as before")?;
            }
        } else if line.contains_str("---") || line.trim() == b"|" {
            return Err(document.unreadable("a drawn call graph: give perf report --stdio --no-children -g folded"));
        } else if is_lone_percentage(&line) {
            return Err(document.unreadable("a flat call graph: give perf report --stdio --no-children -g folded"));
        } else {
            document.report_malformed("expected a percentage and a function, or a weight and a stack")?;
        }
    }
    section.add(document, sink)
}

/// Returns true if what follows `#` is nothing or a blank.
fn is_comment(text: &&[u8]) -> bool {
    text.first().is_none_or(u8::is_ascii_whitespace)
}

/// Returns true for `           99.42%`, above the functions of a stack, which have a line each with `-g flat`.
fn is_lone_percentage(line: &[u8]) -> bool {
    line.starts_with(b" ") && line.trim().strip_suffix(b"%").and_then(Weight::parse).is_some()
}

/// Parses `74.87% hash;main;_start`.
fn parse_stack(line: &[u8]) -> Option<ListedStack> {
    let (number, frames) = split_word(line);
    let is_percent = number.ends_with(b"%");
    let weight = Weight::parse(number.strip_suffix(b"%").unwrap_or(number))?;
    let is_stack = !frames.is_empty() && (is_percent || !weight.is_zero());
    is_stack.then(|| ListedStack { weight, is_percent, frames: frames.to_vec() })
}

impl Section {
    /// Parses the heading `Samples: 12K of event 'cycles'`.
    fn parse(comment: &[u8]) -> Option<Self> {
        let (number, rest) = split_word(split_once(comment, "Samples: ")?.1);
        let event = split_once(rest, "'").and_then(|(_, name)| name.rsplit_once_str("'")).map(|(name, _)| name);
        let digits = number.trim_end_with(|last| last.is_ascii_alphabetic());
        let unit = match &number[digits.len()..] {
            b"" => 1,
            b"K" => 1_000,
            b"M" => 1_000_000,
            _ => 1_000_000_000,
        };
        let is_exact = unit == 1;
        let samples = parse_number(digits).and_then(|number| {
            let max = multiply_weight(Weight::new(number.saturating_add(u64::from(!is_exact))), unit)?;
            Some(SampleCount { count: number.saturating_mul(unit), max, is_exact })
        });
        Some(Self { event: event.unwrap_or_default().to_vec(), samples, ..Self::default() })
    }

    /// Adds all stacks of the section, if its event is selected.
    fn add(self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        if self.has_other_kind && self.entries.iter().all(|entry| entry.stacks.is_empty()) {
            let what = "another report, with weights of another kind, ends before this line; it is left out";
            return Err(document.unreadable_line(format!("{what}: give each file by itself")));
        }
        let samples = self.samples.map_or(1, |samples| samples.count);
        if self.entries.is_empty() || !document.events.accept_many(&self.event, samples) {
            return Ok(());
        }
        let total = self.find_total()?;
        document.set_unit(match total {
            None => "percent",
            Some(total) if Some(total.weight) == self.periods => "events",
            _ => "samples",
        });
        let root_first = self.is_root_first();
        let all_unlisted = self.unlisted_weights(total)?;
        self.warn_of_unlisted(&all_unlisted, total, document)?;
        for (entry, unlisted) in self.entries.iter().zip(all_unlisted) {
            entry.add(total.is_some(), unlisted, root_first, document, sink)?;
        }
        Ok(())
    }

    /// Returns true if stacks are printed root first (`-g caller`): more of them end in the function of their row than begin
    /// with it, or without functions more of all functions are the last than the first one of a stack.
    fn is_root_first(&self) -> bool {
        let (mut first, mut last) = (0, 0);
        let (mut firsts, mut lasts) = (FxHashSet::default(), FxHashSet::default());
        for entry in &self.entries {
            for stack in &entry.stacks {
                let frame = stack.frames.split(|byte| *byte == b';').next();
                first += usize::from(frame == Some(&entry.leaf));
                firsts.insert(frame);
                let frame = stack.frames.rsplit(|byte| *byte == b';').next();
                last += usize::from(frame == Some(&entry.leaf));
                lasts.insert(frame);
            }
        }
        if (first, last) == (0, 0) { lasts.len() > firsts.len() } else { last > first }
    }

    /// Warns if perf left out stacks with much of the weight.
    fn warn_of_unlisted(
        &self,
        unlisted: &[u128],
        total: Option<Total>,
        document: &mut Document<'_>,
    ) -> Result<(), Error> {
        let unlisted = checked_sum(unlisted.iter().copied().map(Some)).ok_or(Error::Overflow)?;
        let all = total.map_or(HUNDRED_PERCENT, |total| total.weight.millionths());
        let percent = unlisted.checked_mul(100).ok_or(Error::Overflow)? / all.max(1);
        if percent >= MIN_UNLISTED_PERCENT {
            let what = "of the weight without stacks: perf leaves out those below --percent-limit";
            document.warn(&format!("{percent} % {what}"));
        }
        Ok(())
    }

    /// Returns for each entry the weight that none of its listed stacks has, because perf left out small stacks. If
    /// perf states the total, these weights add up to what is missing from it.
    fn unlisted_weights(&self, total: Option<Total>) -> Result<Vec<u128>, Error> {
        let unlisted = self.entries.iter().map(|entry| entry.unlisted_weight(total.map(|total| total.weight)));
        let mut unlisted = unlisted.collect::<Option<Vec<u128>>>().ok_or(Error::Overflow)?;
        let Some(Total { weight, .. }) = total.filter(|total| total.is_stated) else { return Ok(unlisted) };
        let listed = checked_sum(self.entries.iter().map(Entry::listed)).ok_or(Error::Overflow)?;
        let mut unlisted_sum = checked_sum(unlisted.iter().copied().map(Some)).ok_or(Error::Overflow)?;
        let mut missing = weight.millionths().saturating_sub(listed) / ONE;
        for weight in unlisted.iter_mut().filter(|weight| **weight > 0) {
            let product = missing.checked_mul(*weight).ok_or(Error::Overflow)?;
            let part = product.saturating_add(unlisted_sum / 2) / unlisted_sum;
            (missing, unlisted_sum) = (missing - part, unlisted_sum - *weight);
            *weight = part * ONE;
        }
        Ok(unlisted)
    }

    /// Returns the weight of the whole event if stacks have numbers, or `None` if they have percentages.
    ///
    /// perf does not say whether the numbers are samples or periods. They are samples if they fit into the stated
    /// number of samples, else periods if they fit into the stated sum of periods; else the total is extrapolated from
    /// the entries that have numbers.
    fn find_total(&self) -> Result<Option<Total>, Error> {
        let (mut numbers, mut percents) = (0u128, 0u128);
        for entry in self.entries.iter().filter(|entry| entry.stacks.iter().any(|stack| !stack.is_percent)) {
            percents = percents.checked_add(entry.percent.millionths()).ok_or(Error::Overflow)?;
            numbers = entry.listed().and_then(|listed| numbers.checked_add(listed)).ok_or(Error::Overflow)?;
        }
        if percents == 0 {
            return Ok(None);
        }
        let numbers = Weight::from_millionths(numbers);
        if let Some(SampleCount { max, is_exact: true, .. }) = self.samples
            && numbers <= max
        {
            return Ok(Some(Total { weight: max, is_stated: true }));
        }
        if let Some(periods) = self.periods
            && self.samples.is_none_or(|samples| numbers > samples.max)
            && numbers <= periods
        {
            return Ok(Some(Total { weight: periods, is_stated: true }));
        }
        let extrapolated = numbers.millionths().checked_mul(HUNDRED_PERCENT).ok_or(Error::Overflow)? / percents;
        Ok(Some(Total { weight: Weight::from_millionths(extrapolated), is_stated: false }))
    }
}

/// The weight of all stacks of an event.
#[derive(Clone, Copy)]
struct Total {
    weight: Weight,
    /// True if perf states it, false if it is extrapolated.
    is_stated: bool,
}

/// A weight of one, in millionths.
const ONE: u128 = 1_000_000;

/// The share of the weight without stacks from which on it is said, in percent. Samples without a callchain have none either.
const MIN_UNLISTED_PERCENT: u128 = 5;

/// 100 percent, in millionths of a percent.
const HUNDRED_PERCENT: u128 = 100_000_000;

/// The largest rounding error of a percentage, in millionths of a percent: perf prints two decimal places.
const ROUNDING_ERROR: u128 = 5_000;

fn checked_sum(mut numbers: impl Iterator<Item = Option<u128>>) -> Option<u128> {
    numbers.try_fold(0u128, |sum, number| sum.checked_add(number?))
}

/// Returns this percentage, in millionths of a percent, of a total weight.
fn percent_of(total: Weight, percent: u128) -> Option<u128> {
    total.millionths().checked_mul(percent).map(|product| product / HUNDRED_PERCENT)
}

impl Entry {
    /// Returns the sum of the listed stacks.
    fn listed(&self) -> Option<u128> {
        checked_sum(self.stacks.iter().map(|stack| Some(stack.weight.millionths())))
    }

    /// Returns the part of the entry's weight that the listed stacks do not have, or zero if rounding explains it.
    /// `total` is the weight of the event; without it, all weights are percentages.
    fn unlisted_weight(&self, total: Option<Weight>) -> Option<u128> {
        let (listed, percent) = (self.listed()?, self.percent.millionths());
        let Some(total) = total else {
            let unlisted = percent.saturating_sub(listed);
            let rounding_error = ROUNDING_ERROR * (self.stacks.len() as u128 + 1);
            return Some(if unlisted > rounding_error { unlisted } else { 0 });
        };
        let unlisted = percent_of(total, percent)?.saturating_sub(listed);
        Some(if unlisted > percent_of(total, ROUNDING_ERROR)? { (unlisted + ONE / 2) / ONE * ONE } else { 0 })
    }

    /// Adds the function alone with the unlisted weight, and the listed stacks. If stacks have numbers, those are their
    /// weights; if they have percentages, the rest of the entry's percentage is distributed among them in proportion,
    /// so that rounding errors do not add up.
    fn add(
        &self,
        has_numbers: bool,
        unlisted: u128,
        root_first: bool,
        document: &Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        self.add_stack(&self.leaf, Weight::from_millionths(unlisted), false, document, sink)?;
        let mut listed = self.listed().ok_or(Error::Overflow)?;
        let mut remaining = self.percent.millionths().saturating_sub(unlisted);
        for ListedStack { weight, frames, .. } in &self.stacks {
            let mut weight = weight.millionths();
            if !has_numbers {
                let part = remaining.checked_mul(weight).ok_or(Error::Overflow)? / listed.max(1);
                (listed, remaining) = (listed - weight, remaining - part);
                weight = part;
            }
            self.add_stack(frames, Weight::from_millionths(weight), root_first, document, sink)?;
        }
        Ok(())
    }

    fn add_stack(
        &self,
        frames: &[u8],
        weight: Weight,
        root_first: bool,
        document: &Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let mut names: Vec<&[u8]> = frames.split(|byte| *byte == b';').collect();
        if root_first {
            names.reverse();
        }
        let mut stack = Stack::default();
        for name in names {
            stack.push(&function_name(name, document.options), sink);
        }
        if !self.root.is_empty() {
            stack.push(&self.root, sink);
        }
        stack.add_leaf_first(weight, sink)
    }
}
