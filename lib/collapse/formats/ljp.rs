//! Output of the JVM agent lightweight-java-profiler: for each stack its count, its number of frames, and the frames,
//! leaf first.
//!
//! ```text
//! 42 3  hash(H.java:10)
//!       run(R.java:5)
//!       main(M.java:1)
//! Total trace count: 42
//! ```
//! The count is the weight. Files and lines are left out.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, indentation, parse_number, split_once, split_word};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "ljp",
    description: "lightweight Java profiler",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).find(|line| !line.is_empty()).is_some_and(|line| parse_leaf(line).is_some())
}

/// The message about a line that is neither the first nor another one of a stack.
const NO_FRAME: &str = "expected a frame, or a count, a depth and a frame";

/// Returns true for `run(R.java:5)`.
fn is_frame(text: &[u8]) -> bool {
    text.ends_with(b")") && memchr::memchr(b'(', text).is_some_and(|start| start > 0 && text[start - 1] != b' ')
}

/// Returns the count and the leaf of a stack's first line. The number of frames, which is between them, is not needed.
fn parse_leaf(line: &[u8]) -> Option<(u64, &[u8])> {
    let (count, rest) = split_word(line);
    let (depth, frame) = split_word(rest);
    parse_number(depth)?;
    Some((parse_number(count)?, frame)).filter(|(_, frame)| is_frame(frame))
}

/// Returns true if a line is certainly the first one of a stack, and `next` the text after it.
pub(super) fn begins_sample(line: &[u8], next: &[u8]) -> bool {
    if !line.first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    let next = next.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_caller = indentation(next) > 0 && is_frame(next.trim_ascii());
    parse_leaf(line.trim_ascii_end()).is_some() && (is_caller || parse_leaf(next).is_some() || is_total(next))
}

/// Returns true for `Total trace count: 42`.
fn is_total(line: &[u8]) -> bool {
    line.strip_prefix(b"Total trace count:").is_some_and(|count| parse_number(count.trim_ascii()).is_some())
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut count) = (Vec::new(), Stack::default(), Weight::ZERO);
    let mut ended = false;
    while document.read_line(&mut line)? {
        let frame = match parse_leaf(&line) {
            Some((next, frame)) => {
                stack.add_leaf_first(std::mem::replace(&mut count, Weight::new(next)), sink)?;
                frame
            }
            None if line.trim_ascii().is_empty() => continue,
            None if is_total(&line) => {
                ended = true;
                continue;
            }
            None if indentation(&line) > 0 && !count.is_zero() && is_frame(line.trim_ascii()) => line.trim_ascii(),
            None => {
                match is_frame(&line) {
                    true => document.report_unindented(NO_FRAME)?,
                    false => document.report_malformed(NO_FRAME)?,
                }
                continue;
            }
        };
        stack.push(split_once(frame, "(").map_or(frame, |(function, _)| function), sink);
    }
    stack.add_leaf_first(count, sink)?;
    document.check_end(ended, "its total")
}
