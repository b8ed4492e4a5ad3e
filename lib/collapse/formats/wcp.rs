//! wallClockProfiler (`wcp`): for each stack a percentage and a number of samples, then the frames, leaf first.
//!
//! ```text
//! Full stacks (2 unique):
//!
//! 99.790% ===================== (17194 samples)
//!        1: poll   (at /src/a.nim:3)
//!        2: main
//! ```
//! The number of samples is the weight. The table of functions before the stacks is left out; source lines are too,
//! unless `--srcline` asks for them.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_once};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "wcp",
    description: "wallClockProfiler",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(|line| line.starts_with(b"Full stacks") || parse_samples(line).is_some())
}

/// Returns the number of `99.790% ==== (17194 samples)`.
fn parse_samples(line: &[u8]) -> Option<u64> {
    let (percentage, rest) = split_once(line.trim_ascii(), "%")?;
    Weight::parse(percentage)?;
    let (_, count) = split_once(rest, "(")?;
    parse_number(count.strip_suffix(b" samples)").or_else(|| count.strip_suffix(b" sample)"))?)
}

/// Returns true for a line of the table of functions, or its heading.
fn is_function(line: &[u8]) -> bool {
    let percentage = split_once(line, "%").map(|(percentage, _)| percentage);
    percentage.is_some_and(|percentage| Weight::parse(percentage).is_some()) || line.starts_with(b"Wall clock profile")
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut weight) = (Vec::new(), Stack::default(), None);
    // The number of stacks that the headings state, and that were found.
    let (mut stated, mut found) = (0, 0);
    while document.read_line(&mut line)? {
        let trimmed = line.trim_ascii();
        let numbered = split_once(trimmed, ": ").filter(|(number, _)| parse_number(number).is_some());
        if let Some((_, number)) = split_once(trimmed, "Full stacks (") {
            let number = number.strip_suffix(b" unique):").and_then(parse_number).unwrap_or(0);
            stated = number.saturating_add(stated);
        }
        if let Some(count) = parse_samples(trimmed) {
            found += 1;
            stack.add_leaf_first(weight.replace(Weight::new(count)).unwrap_or_default(), sink)?;
        } else if let Some((_, frame)) = numbered.filter(|_| weight.is_some()) {
            let without_line = split_once(frame, "(at ").filter(|_| !document.options.srcline);
            stack.push(without_line.map_or(frame, |(name, _)| name).trim_ascii(), sink);
        } else if weight.is_some() && !trimmed.is_empty() {
            document.report_malformed("expected a frame")?;
        } else {
            if trimmed.starts_with(b"Full stacks") || is_function(trimmed) {
                document.skip_own_line();
            } else {
                document.skip_line();
            }
            stack.add_leaf_first(weight.take().unwrap_or_default(), sink)?;
        }
    }
    let has_frames = weight.is_none() || !stack.is_empty();
    stack.add_leaf_first(weight.unwrap_or_default(), sink)?;
    document.check_end(found >= stated && has_frames, "the last of its stacks")?;
    document.check_last_line()
}
