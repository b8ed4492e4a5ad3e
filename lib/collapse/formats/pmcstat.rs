//! `pmcstat -G` of FreeBSD: for each event a tree of callers. Its roots are the leaves of stacks; their callers are
//! indented below them.
//!
//! ```text
//! @ CPU_CLK_UNHALTED [30 samples]
//!
//! 100.0%  [30]       memcpy @ /lib/libc.so.7
//!  66.67%  [20]        copy_all @ /bin/app
//! ```
//! The number in brackets counts the samples of a function with all its callers. So a stack weighs the number minus those
//! of the callers. Of several events, the first counts unless `--event` names another. Percentages and modules are left
//! out.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, indentation, parse_number, split_once};
use crate::collapse::sink::Sink;
use crate::collapse::stack::{CallTree, MAX_SHARED_DEPTH};
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "pmcstat",
    description: "FreeBSD pmcstat -G",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).find(|line| !line.is_empty()).is_some_and(|line| parse_event(line).is_some())
}

/// Returns the event and its number of samples of `@ EVENT [30 samples]`.
fn parse_event(line: &[u8]) -> Option<(&[u8], u64)> {
    let (name, rest) = split_once(line.strip_prefix(b"@ ")?, " [")?;
    Some((name, parse_number(rest.strip_suffix(b" samples]")?)?))
}

/// Most percent that the functions of an event have together, some of which were rounded up.
const MAX_SHARE: Weight = Weight::new(101);

/// Returns true if no function is indented, although those of an event have more than all of its samples: some are callers.
fn has_lost_indentation(head: &[u8]) -> bool {
    let (mut sum, mut has_too_many) = (Weight::ZERO, false);
    for line in first_lines(head) {
        if parse_event(line).is_some() {
            sum = Weight::ZERO;
        }
        let Some((share, depth)) = parse_share(line) else { continue };
        if depth > 0 {
            return false;
        }
        sum = sum.checked_add(share).unwrap_or(sum);
        has_too_many |= sum > MAX_SHARE;
    }
    has_too_many
}

/// Returns the percentage of a function, and its depth in the tree.
fn parse_share(line: &[u8]) -> Option<(Weight, usize)> {
    let (depth, ..) = parse_node(line)?;
    Some((Weight::parse(split_once(line, "%")?.0.trim_ascii())?, depth))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    if has_lost_indentation(document.head()?) {
        return Err(document.indentation_lost());
    }
    let (mut line, mut tree, mut is_selected) = (Vec::new(), CallTree::new_inverted(), true);
    let (mut missing, mut leaf_depth) = (Weight::ZERO, None);
    while document.read_line(&mut line)? {
        if let Some((name, samples)) = parse_event(&line) {
            tree.leave(0, sink)?;
            report_missing(is_selected, missing, document)?;
            (missing, leaf_depth) = (Weight::new(samples), None);
            is_selected = document.events.accept_many(name, samples);
        } else if let Some((depth, name, count)) = parse_node(&line) {
            if depth <= *leaf_depth.get_or_insert(depth) {
                missing = missing.saturating_sub(count);
            }
            if is_selected && !tree.enter_inclusive(depth, &function_name(name, document.options), count, sink)? {
                let what =
                    format!("more samples than its callee has left, or more than {MAX_SHARED_DEPTH} frames deep");
                document.report_malformed(&what)?;
            }
        } else if !line.trim_ascii().is_empty() {
            document.report_malformed("expected a percentage, a number of samples and a function")?;
        }
    }
    tree.leave(0, sink)?;
    report_missing(is_selected, missing, document)
}

/// Reports samples of the event that no function has. pmcstat itself leaves out functions with few samples.
fn report_missing(is_selected: bool, missing: Weight, document: &mut Document<'_>) -> Result<(), Error> {
    if !is_selected || missing.is_zero() {
        return Ok(());
    }
    let what = format!("{missing} of the event's samples are not in the input: it is incomplete or cut short");
    document.report_damage(&what, false)
}

/// Returns the depth of a function in the tree, its name, and its number of samples.
fn parse_node(line: &[u8]) -> Option<(usize, &[u8], Weight)> {
    let (share, rest) = split_once(line, "%")?;
    Weight::parse(share.trim_ascii())?;
    let (count, rest) = split_once(rest.trim_ascii_start().strip_prefix(b"[")?, "]")?;
    let name = split_once(rest, " @ ").map_or(rest, |(name, _)| name).trim_ascii();
    (!name.is_empty()).then_some((indentation(line), name, Weight::new(parse_number(count)?)))
}
