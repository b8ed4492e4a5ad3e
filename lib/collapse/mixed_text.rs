//! Finds out which of several formats begins first in a text, as `cat` joins files.

use super::detect;
use super::format::{Format, FormatReader};
use super::{formats, text_kind};

/// Number of parts of the text before a format at whose ends [`find_preceding`] looks.
const PARTS: usize = 8;

/// Returns the format of text before the first line of the format that was found, whose reader would skip that text.
/// Without the rest, it is recognized.
pub(super) fn find_preceding(head: &[u8], found: &Format) -> Option<&'static Format> {
    if text_kind::is_binary(head) || formats::is_folded(found) {
        return None;
    }
    let before = &head[..first_line(head, found).1];
    let ends = (1..=PARTS).filter_map(|part| memchr::memrchr(b'\n', &before[..before.len() * part / PARTS]));
    // Events of ftrace look like samples of perf.
    let is_other =
        |format: &&'static Format| format.name != found.name && !matches!(format.reader, FormatReader::Blocks { .. });
    ends.filter_map(|end| detect::find_formats(&before[..=end]).first().copied()).find(is_other)
}

/// Returns the message about a text of two formats. `skipped` is the number of lines before the text.
pub(super) fn describe(head: &[u8], skipped: u64, one: &Format, other: &Format) -> String {
    let [mut first, mut second] = [one, other].map(|format| (first_line(head, format).0, format.name));
    if second.0 < first.0 {
        std::mem::swap(&mut first, &mut second);
    }
    let ((_, first), (line, second)) = (first, second);
    let line = line + skipped;
    format!(
        "text of several formats ({first}, from line {line} on {second}); give each file by itself, or name the one that counts with --format"
    )
}

/// Returns the number of the line up to which a text must be read so that a format recognizes it, and its offset.
fn first_line(text: &[u8], format: &Format) -> (u64, usize) {
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', text).map(|end| end + 1).collect();
    let index = ends.partition_point(|end| !(format.recognizes)(&text[..*end]));
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    (index as u64 + 1, start)
}
