//! Texts that are cut, and texts that follow one that was.

use super::frame;
use super::header::{self, Line};
use crate::collapse::detect;
use crate::collapse::formats::headings;

/// Returns the text without a truncated last line: blanks without a line end, or a frame without one and without the
/// `(MODULE)` that the frame before it has. A truncated symbol would look like another function.
pub(super) fn strip_truncated_frame(text: &[u8]) -> &[u8] {
    let Some(end) = memchr::memrchr(b'\n', text).map(|end| end + 1) else { return text };
    let (before, last) = text.split_at(end);
    if !is_indented(last) {
        return text;
    }
    let is_blank = last.trim_ascii().is_empty();
    let mut earlier = before.rsplit(|byte| *byte == b'\n').take(MAX_LINES_BETWEEN_FRAMES);
    let is_truncated = !ends_with_module(last) && earlier.find(|line| is_indented(line)).is_some_and(ends_with_module);
    if is_blank || is_truncated { before } else { text }
}

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

/// Most lines between the last frame of a sample and the first one of the next, with both.
const MAX_LINES_BETWEEN_FRAMES: usize = 5;

fn is_indented(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

fn ends_with_module(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b")")
}
