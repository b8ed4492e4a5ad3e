//! Texts that follow one without a line end.

use super::frame;
use super::header::{self, Line};
use crate::collapse::detect;
use crate::collapse::formats::headings;

/// Splits a frame from the first line of a sample behind it, from a heading, or from JSON or XML, as `cat` joins two texts if
/// the first one has no line end.
pub(super) fn split_joined(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if !is_indented(line) || ends_with_module(line) {
        return None;
    }
    if matches!(line.last(), Some(b'}' | b']' | b'>'))
        && let Some((start, _)) = detect::find_markup_within(line)
    {
        return Some(line.split_at(start));
    }
    let (frame, header) = line.split_at(memchr::memrchr(b')', line)? + 1);
    let is_sample =
        matches!(header::parse(header), Some(Line::Sample(header)) if header.time.is_some() && header.event.is_some());
    let is_start = is_sample || headings::find(header, header).is_some();
    (is_start && frame::is_frame(frame)).then_some((frame, header))
}

fn is_indented(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

fn ends_with_module(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b")")
}
