//! Recognizes `perf script` text.

use super::header::{self, Line};
use super::split::Lines;
use super::{frame, one_line};
use crate::collapse::formats::{folded, ftrace, perf_report};
use crate::collapse::line_helpers::most_lines_fit;

/// Returns true if a line is the first of a sample, and most lines are what perf prints; or if the text begins with the
/// comments of `perf script --header`.
pub(super) fn recognizes(head: &[u8]) -> bool {
    // `perf report --header` begins with the same comments.
    if folded::is_certain(head) || perf_report::recognizes(head) {
        return false;
    }
    has_sample(head)
        && most_lines_fit(head, 50, is_possible_line)
        && !most_lines_fit(head, 50, ftrace::is_event)
        && !ftrace::has_stacks(head)
        || head.starts_with(b"# ========\n")
}

/// Returns true for a line that may be part of a sample, or a comment.
fn is_possible_line(line: &[u8]) -> bool {
    line.starts_with(b"#")
        || frame::is_frame(line)
        || frame::is_annotation(line)
        || header::parse(line).is_some()
        || header::parse_bare(line).is_some()
}

/// Returns what is wrong with a text of perf whose samples have too few fields to be recognized. `None` for any other text.
pub(in crate::collapse) fn explain_missing_fields(head: &[u8]) -> Option<&'static str> {
    let is_frame = |line: &[u8]| frame::has_columns(line) || one_line::lacks_fields(line);
    let is_name = |line: &[u8]| line.ends_with(b" ") && line.trim_ascii().len() + 1 == line.len();
    let is_perf =
        most_lines_fit(head, 90, |line| is_frame(line) || is_name(line)) && most_lines_fit(head, 40, is_frame);
    is_perf.then_some("perf script text without thread IDs and times; add tid and time to the fields of perf's -F")
}

/// Returns true if a line is certainly the first of a sample.
fn has_sample(head: &[u8]) -> bool {
    let mut lines = Lines::new(head);
    while let Some(line) = lines.next() {
        match header::parse(line) {
            Some(Line::Record | Line::Lost(_)) => return true,
            Some(Line::Sample(header)) if header.time.is_some() && header.event.is_some() || header.frame.is_some() => {
                return true;
            }
            Some(Line::Sample(_)) if begins_with_perf_frame(lines.remaining()) => return true,
            _ if header::parse_bare(line).is_some()
                && frame::is_indented_frame(lines.remaining())
                && begins_with_perf_frame(lines.remaining()) =>
            {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// Returns true if a line is certainly the first one of a sample, and `next` begins with its frames, perhaps after a blank
/// line.
pub(in crate::collapse::formats) fn begins_sample(line: &[u8], next: &[u8]) -> bool {
    let next = next.strip_prefix(b"\n").unwrap_or(next);
    frame::is_indented_frame(next)
        && begins_with_perf_frame(next)
        && matches!(header::parse(line), Some(Line::Sample(header)) if header.time.is_some() && header.event.is_some())
}

/// Fewest digits of an address, unless the frame has a module. Listings of instructions have offsets.
const MIN_ADDRESS: usize = 6;

/// Returns true if the first line of a text is a frame as only perf prints it: with a module, an offset, or an address in
/// perf's columns. A count and a name, as `ls -s` and `uniq -c` print them, are none; neither is a frame with an index
/// (`0 [<0000557dc6e771b8>] main+0x20`).
fn begins_with_perf_frame(text: &[u8]) -> bool {
    let line = Lines::new(text).next().unwrap_or_default();
    frame::parse(line).is_some_and(|frame| {
        let symbol = frame.symbol.trim_ascii_start();
        let is_perf_line = frame.module.is_some() || frame::has_offset(line) || frame::has_columns(line);
        // Listings of instructions have small offsets, and names in parentheses that are no modules.
        let is_address = frame.address.len() >= MIN_ADDRESS || matches!(frame.module, Some([b'/' | b'[', ..]));
        !symbol.starts_with(b"[<") && is_perf_line && is_address
    })
}
