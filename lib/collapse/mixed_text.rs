//! Finds out which of several formats begins first in a text, as `cat` joins files.

use super::format::{Format, FormatReader};
use super::formats::{self, FORMATS, folded};
use super::{detect, document_starts, text_kind};

/// Number of parts of the text before a format at whose ends [`find_preceding`] looks.
const PARTS: usize = 8;

/// Returns the format of the text before the first line of the format that was found; the reader of that would skip the text.
/// Without the rest, it is recognized.
pub(super) fn find_preceding(head: &[u8], found: &Format) -> Option<&'static Format> {
    if text_kind::is_binary(head) || formats::is_folded(found) {
        return None;
    }
    let before = &head[..first_line(head, found).1];
    if let Some(first) = document_starts::find_first(before, found.name) {
        return FORMATS.iter().copied().find(|format| format.name == first);
    }
    if folded::find_stacks(before).is_some() {
        return Some(&folded::FORMAT);
    }
    let ends = (1..=PARTS).filter_map(|part| memchr::memrchr(b'\n', &before[..before.len() * part / PARTS]));
    // Events of ftrace look like samples of perf.
    let is_other =
        |format: &&'static Format| format.name != found.name && !matches!(format.reader, FormatReader::Blocks { .. });
    ends.filter_map(|end| detect::find_formats(&before[..=end]).first().copied()).find(is_other)
}

/// Returns the message about binary data before the first line of a text format, whose reader would skip them.
pub(super) fn describe_binary_before(head: &[u8], skipped: u64, found: &Format) -> Option<String> {
    if formats::is_folded(found) || !head.iter().any(text_kind::is_control) {
        return None;
    }
    let (line, offset) = first_line(head, found);
    let is_behind = head[..offset].iter().any(text_kind::is_control) && found.recognizes(&head[offset..]);
    let line = line + skipped;
    let what =
        || format!("binary data of unknown format, from line {line} on {}; give each file by itself", found.name);
    is_behind.then(what)
}

/// Returns the message about a text of two formats. `skipped` is the number of lines before the text.
pub(super) fn describe(head: &[u8], skipped: u64, one: &Format, other: &Format) -> String {
    let (first, second) = match first_line(head, other).0 < first_line(head, one).0 {
        true => (other, one),
        false => (one, other),
    };
    describe_in_order(head, skipped, first, second)
}

/// Like [`describe`], if it is known which format comes first.
pub(super) fn describe_in_order(head: &[u8], skipped: u64, first: &Format, second: &Format) -> String {
    let line = first_line(head, second).0 + skipped;
    let (first, second) = (first.name, second.name);
    format!(
        "text of several formats ({first}, from line {line} on {second}); give each file by itself, or name the one that counts with --format"
    )
}

/// Returns the number of the line up to which a text must be read so that a format recognizes it, and its offset.
fn first_line(text: &[u8], format: &Format) -> (u64, usize) {
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', text).map(|end| end + 1).collect();
    let index = ends.partition_point(|end| !format.recognizes(&text[..*end]));
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    (index as u64 + 1, start)
}
