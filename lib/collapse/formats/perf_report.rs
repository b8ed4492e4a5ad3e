//! `perf report --stdio --no-children -g folded`: shares of functions, each with its stacks and their shares, or with
//! `count` or `period` their numbers.
//!
//! ```text
//! # Samples: 192  of event 'cycles'
//! # Overhead  Command  Shared Object  Symbol
//! # ........  .......  .............  ......
//!     98.70%  app      app            [.] hash
//! 74.87% hash;main;_start
//! 23.83% hash;_start
//! ```

use bstr::ByteSlice as _;

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::text;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "perf-report",
    description: "perf report --stdio --no-children -g folded",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    text::lines(head).any(is_heading)
}

fn is_heading(line: &[u8]) -> bool {
    line.starts_with(b"#")
        && (line.contains_str("Overhead") || line.contains_str("Children"))
        && line.contains_str("Symbol")
}

/// What is said of one event.
#[derive(Default)]
struct Section {
    event: Vec<u8>,
    /// How many samples there were at most, and whether it is just as many.
    samples: Option<(Weight, bool)>,
    periods: Option<Weight>,
    entries: Vec<Entry>,
}

/// A line of the table, and its stacks.
#[derive(Default)]
struct Entry {
    /// In percent.
    share: Weight,
    root: Vec<u8>,
    symbol: Vec<u8>,
    stacks: Vec<Listed>,
}

/// A stack, with its share in percent or its number.
struct Listed {
    weight: Weight,
    percent: bool,
    frames: Vec<u8>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut section, mut command) = (Vec::new(), Section::default(), None);
    while document.line(&mut line)? {
        if is_heading(&line) {
            if line.contains_str("Children") {
                let what = "perf report has counted stacks once for each of their functions: give it --no-children";
                return Err(document.unreadable(what));
            }
            command = line.find("Command");
        } else if let Some(said) = line.strip_prefix(b"#") {
            if let Some(next) = Section::begun(said) {
                std::mem::replace(&mut section, next).add(document, sink)?;
            } else if let Some((_, periods)) = text::split_once(said, "Event count (approx.): ") {
                section.periods = Weight::parse(periods.trim());
            }
        } else if line.is_empty() {
            continue;
        } else if let Some((share, symbol)) = row(&line) {
            let root = command.and_then(|at| text::split_once(line.get(at..)?, "  ")).map(|(name, _)| name.to_vec());
            let root = root.unwrap_or_default();
            section.entries.push(Entry { share, root, symbol: symbol.to_vec(), stacks: Vec::new() });
        } else if let (Some(stack), Some(entry)) = (stack(&line), section.entries.last_mut()) {
            entry.stacks.push(stack);
        } else if line.contains_str("---") || line.trim() == b"|" {
            return Err(document.unreadable("a drawn call graph: give perf report --stdio --no-children -g folded"));
        } else {
            document.malformed("neither a share of a function nor one of a stack")?;
        }
    }
    section.add(document, sink)
}

/// The share and the function of `    98.70%  app      app   [.] hash`.
fn row(line: &[u8]) -> Option<(Weight, &[u8])> {
    let (share, rest) = text::split_once(line, "%")?;
    // `[.]` and `[k]` say where the function runs.
    let place = rest.windows(6).position(|part| part.starts_with(b"  [") && part.ends_with(b"] "))?;
    let weight = Weight::parse(share.trim()).filter(|_| line.starts_with(b" "))?;
    Some((weight, rest[place + 6..].trim()))
}

/// The share, or number, and the frames of `74.87% hash;main;_start`.
fn stack(line: &[u8]) -> Option<Listed> {
    let (share, frames) = text::split_word(line);
    let weight = Weight::parse(share.strip_suffix(b"%").unwrap_or(share)).filter(|weight| !weight.is_zero())?;
    (!frames.is_empty()).then(|| Listed { weight, percent: share.ends_with(b"%"), frames: frames.to_vec() })
}

impl Section {
    /// Of `Samples: 12K of event 'cycles'`.
    fn begun(said: &[u8]) -> Option<Self> {
        let (number, rest) = text::split_word(text::split_once(said, "Samples: ")?.1);
        let event = text::split_once(rest, "'").and_then(|(_, name)| name.rsplit_once_str("'")).map(|(name, _)| name);
        let digits = number.trim_end_with(|last| last.is_ascii_alphabetic());
        let rounded = match &number[digits.len()..] {
            b"" => 1,
            b"K" => 1_000,
            b"M" => 1_000_000,
            _ => 1_000_000_000,
        };
        let known = text::number(digits).map(|number| (number.saturating_add(u64::from(rounded > 1)), rounded == 1));
        let samples = known.and_then(|(number, exact)| Some((text::times(Weight::new(number), rounded)?, exact)));
        Some(Self { event: event.unwrap_or_default().to_vec(), samples, ..Self::default() })
    }

    fn add(self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        if self.entries.is_empty() || !document.events.accept(&self.event) {
            return Ok(());
        }
        let stacks = || self.entries.iter().flat_map(|entry| entry.stacks.iter().map(move |stack| (entry, stack)));
        let whole = self.whole()?;
        document.unit(match whole {
            None => "percent",
            Some(whole) if Some(whole.weight) == self.periods => "events",
            _ => "samples",
        });
        // Callers come last, or first: the end at which the function stands is the leaf.
        let (mut first, mut last) = (0, 0);
        for (Entry { symbol, .. }, Listed { frames, .. }) in stacks() {
            let ends = |at: Option<&[u8]>| usize::from(at == Some(symbol));
            first += ends(frames.split(|byte| *byte == b';').next());
            last += ends(frames.rsplit(|byte| *byte == b';').next());
        }
        for (entry, alone) in self.entries.iter().zip(self.alone(whole)?) {
            entry.add(whole.is_some(), alone, last > first, document, sink)?;
        }
        Ok(())
    }

    /// What of each function's share is in none of its stacks, since perf left those out as too small; together as much as
    /// is missing from what perf says of the whole.
    fn alone(&self, whole: Option<Whole>) -> Result<Vec<u128>, Error> {
        let alone = self.entries.iter().map(|entry| entry.alone(whole.map(|whole| whole.weight)));
        let mut alone = alone.collect::<Option<Vec<u128>>>().ok_or(Error::Overflow)?;
        let Some(Whole { weight, .. }) = whole.filter(|whole| whole.stated) else { return Ok(alone) };
        let total = |sum: u128, more: Option<u128>| sum.checked_add(more?);
        let listed = self.entries.iter().map(Entry::listed).try_fold(0, total).ok_or(Error::Overflow)?;
        let mut sum = alone.iter().copied().map(Some).try_fold(0, total).ok_or(Error::Overflow)?;
        let mut rest = weight.millionths().saturating_sub(listed) / ONE;
        for share in alone.iter_mut().filter(|share| **share > 0) {
            let part = rest.checked_mul(*share).ok_or(Error::Overflow)?.saturating_add(sum / 2) / sum;
            (rest, sum) = (rest - part, sum - *share);
            *share = part * ONE;
        }
        Ok(alone)
    }

    /// What all weighs together, if stacks have numbers: as it is said, or as those that have some let expect. Which
    /// numbers they are is not said.
    fn whole(&self) -> Result<Option<Whole>, Error> {
        let (mut numbers, mut shares) = (0u128, 0u128);
        for entry in self.entries.iter().filter(|entry| entry.stacks.iter().any(|stack| !stack.percent)) {
            shares = shares.checked_add(entry.share.millionths()).ok_or(Error::Overflow)?;
            numbers = entry.listed().and_then(|listed| numbers.checked_add(listed)).ok_or(Error::Overflow)?;
        }
        if shares == 0 {
            return Ok(None);
        }
        let stated = |weight| Ok(Some(Whole { weight, stated: true }));
        let numbers = Weight::from_millionths(numbers);
        match (self.samples, self.periods) {
            (Some((samples, true)), _) if numbers <= samples => stated(samples),
            (samples, Some(periods)) if samples.is_none_or(|(samples, _)| numbers > samples) && numbers <= periods => {
                stated(periods)
            }
            _ => {
                let likely = numbers.millionths().checked_mul(HUNDRED).ok_or(Error::Overflow)? / shares;
                Ok(Some(Whole { weight: Weight::from_millionths(likely), stated: false }))
            }
        }
    }
}

/// What all stacks of an event weigh.
#[derive(Clone, Copy)]
struct Whole {
    weight: Weight,
    /// Whether perf says so.
    stated: bool,
}

/// A weight of one, and all percents, in millionths.
const ONE: u128 = 1_000_000;
const HUNDRED: u128 = 100_000_000;

/// What a share has less or more than it was, in millionths of a percent: two decimals are printed.
const ROUNDED: u128 = 5_000;

impl Entry {
    /// What the stacks have together.
    fn listed(&self) -> Option<u128> {
        self.stacks.iter().try_fold(0u128, |sum, stack| sum.checked_add(stack.weight.millionths()))
    }

    /// What its stacks do not have of its share, beyond what rounding does.
    fn alone(&self, whole: Option<Weight>) -> Option<u128> {
        let (listed, share) = (self.listed()?, self.share.millionths());
        let Some(whole) = whole else {
            let rounded = ROUNDED * (self.stacks.len() as u128 + 1);
            return Some(share.saturating_sub(listed)).map(|left| if left > rounded { left } else { 0 });
        };
        let number = |percent: u128| whole.millionths().checked_mul(percent).map(|number| number / HUNDRED);
        let (left, rounded) = (number(share)?.saturating_sub(listed), number(ROUNDED)?);
        Some(if left > rounded { (left + ONE / 2) / ONE * ONE } else { 0 })
    }

    /// Adds the stacks: with their numbers, or with what they have of the function's share.
    fn add(
        &self,
        numbered: bool,
        alone: u128,
        root_first: bool,
        document: &Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        self.add_stack(&self.symbol, Weight::from_millionths(alone), false, document, sink)?;
        let mut left = self.listed().ok_or(Error::Overflow)?;
        let mut rest = self.share.millionths() - alone.min(self.share.millionths());
        for Listed { weight, frames, .. } in &self.stacks {
            let mut part = weight.millionths();
            if !numbered {
                let share = rest.checked_mul(part).ok_or(Error::Overflow)? / left.max(1);
                (left, rest) = (left - part, rest - share);
                part = share;
            }
            self.add_stack(frames, Weight::from_millionths(part), root_first, document, sink)?;
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
            stack.push(&text::function(name, document.options), sink);
        }
        if !self.root.is_empty() {
            stack.push(&self.root, sink);
        }
        stack.add_leaf_first(weight, sink)
    }
}
