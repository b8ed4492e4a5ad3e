//! FreeBSD's `pmcstat -G`: trees of callers, the leaf outside, of samples with all callers.
//!
//! ```text
//! @ CPU_CLK_UNHALTED [30 samples]
//!
//! 100.0%  [30]       memcpy @ /lib/libc.so.7
//!  66.67%  [20]        copy_all @ /bin/app
//! ```

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Tree;
use crate::collapse::text;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "pmcstat",
    description: "FreeBSD pmcstat -G",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    text::lines(head).find(|line| !line.is_empty()).is_some_and(|line| event(line).is_some())
}

/// The event, and its samples, of `@ EVENT [30 samples]`.
fn event(line: &[u8]) -> Option<(&[u8], u64)> {
    let (name, rest) = text::split_once(line.strip_prefix(b"@ ")?, " [")?;
    Some((name, text::number(rest.strip_suffix(b" samples]")?)?))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut taken) = (Vec::new(), Tree::of_callers(), true);
    let (mut missing, mut top) = (Weight::ZERO, None);
    while document.line(&mut line)? {
        if let Some((name, samples)) = event(&line) {
            tree.leave(0, sink)?;
            tell_missing(taken, missing, document)?;
            (missing, top) = (Weight::new(samples), None);
            taken = document.events.accept_many(name, samples);
        } else if let Some((depth, name, count)) = node(&line) {
            if depth <= *top.get_or_insert(depth) {
                missing = missing.saturating_sub(count);
            }
            if taken && !tree.enter_whole(depth, &text::function(name, document.options), count, sink)? {
                document.malformed("more samples than the function that it calls has left, or too deep a stack")?;
            }
        } else if !line.trim_ascii().is_empty() {
            document.malformed("expected a share, a number of samples and a function")?;
        }
    }
    tree.leave(0, sink)?;
    tell_missing(taken, missing, document)
}

/// Functions with few samples are left out by pmcstat itself.
fn tell_missing(taken: bool, missing: Weight, document: &mut Document<'_>) -> Result<(), Error> {
    let what = || format!("{missing} of the event's samples are not in the input: it is a part, or cut short");
    if taken && !missing.is_zero() { document.damaged(&what(), false) } else { Ok(()) }
}

/// The depth of a function in the tree, its name, and its samples.
fn node(line: &[u8]) -> Option<(usize, &[u8], Weight)> {
    let (share, rest) = text::split_once(line, "%")?;
    Weight::parse(share.trim_ascii())?;
    let (count, rest) = text::split_once(rest.trim_ascii_start().strip_prefix(b"[")?, "]")?;
    let name = text::split_once(rest, " @ ").map_or(rest, |(name, _)| name).trim_ascii();
    (!name.is_empty()).then_some((text::indentation(line), name, Weight::new(text::number(count)?)))
}
