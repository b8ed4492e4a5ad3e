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
mod order;
mod totals;

use bstr::ByteSlice as _;

use self::columns::{Columns, INLINED_MARK, Row};
use self::order::Order;
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

impl ListedStack {
    /// Returns the frames. perf puts no blank behind its separator, as in `[u8; 8]`.
    fn frames(&self) -> Vec<&[u8]> {
        let mut frames = Vec::new();
        let mut start = 0;
        for end in memchr::memchr_iter(b';', &self.frames).filter(|end| self.frames.get(end + 1) != Some(&b' ')) {
            frames.push(&self.frames[start..end]);
            start = end + 1;
        }
        frames.push(&self.frames[start..]);
        frames.into_iter().map(|name| name.strip_suffix(INLINED_MARK).unwrap_or(name)).collect()
    }

    fn first(&self) -> Option<&[u8]> {
        self.frames().first().copied()
    }

    fn has_callers(&self) -> bool {
        self.frames.contains(&b';')
    }

    fn last(&self) -> Option<&[u8]> {
        self.frames().last().copied()
    }
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
            if split_once(comment, " of events '").is_some_and(|(_, names)| names.contains_str(", ")) {
                return Err(document.unreadable("a report of a group of events: give perf report --no-group"));
            }
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
        let order = order::find_order(&self.entries);
        let has_callers = |entry: &Entry| entry.stacks.iter().any(ListedStack::has_callers);
        if order == Order::Unknown && self.entries.iter().any(has_callers) {
            let what = "nothing tells if its stacks begin with the caller or the callee";
            return Err(document.unreadable(format!("{what}; give perf report -s comm,sym, or the perf.data file")));
        }
        let all_unlisted = self.unlisted_weights(total)?;
        self.warn_of_unlisted(&all_unlisted, total, document)?;
        for (entry, unlisted) in self.entries.iter().zip(all_unlisted) {
            entry.add(total.is_some(), unlisted, order, document, sink)?;
        }
        Ok(())
    }
}

impl Entry {
    /// Adds the function alone with the unlisted weight, and the listed stacks. If stacks have numbers, those are their
    /// weights; if they have percentages, the rest of the entry's percentage is distributed among them in proportion,
    /// so that rounding errors do not add up.
    fn add(
        &self,
        has_numbers: bool,
        unlisted: u128,
        order: Order,
        document: &Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        self.add_stack(std::iter::once(&self.leaf[..]), Weight::from_millionths(unlisted), document, sink)?;
        let mut listed = self.listed().ok_or(Error::Overflow)?;
        let mut remaining = self.percent.millionths().saturating_sub(unlisted);
        for listed_stack in &self.stacks {
            let mut weight = listed_stack.weight.millionths();
            if !has_numbers {
                let part = remaining.checked_mul(weight).ok_or(Error::Overflow)? / listed.max(1);
                (listed, remaining) = (listed - weight, remaining - part);
                weight = part;
            }
            let (frames, weight) = (listed_stack.frames(), Weight::from_millionths(weight));
            match order {
                Order::RootFirst => self.add_stack(frames.into_iter().rev(), weight, document, sink)?,
                Order::LeafFirst | Order::Unknown => self.add_stack(frames.into_iter(), weight, document, sink)?,
            }
        }
        Ok(())
    }

    /// Adds a stack, leaf first, below the thread.
    fn add_stack<'a>(
        &self,
        frames: impl Iterator<Item = &'a [u8]>,
        weight: Weight,
        document: &Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let mut stack = Stack::default();
        for name in frames {
            stack.push(&function_name(name, document.options), sink);
        }
        if !self.root.is_empty() {
            stack.push(&self.root, sink);
        }
        stack.add_leaf_first(weight, sink)
    }
}
