//! Recognizes `perf script` text, and what people did to its lines.

use super::header::{self, Line};
use super::split::Lines;
use super::{frame, one_line};
use crate::collapse::filter::args::parse_seconds;
use crate::collapse::formats::{folded, ftrace, perf_report};
use crate::collapse::line_helpers::{first_lines, is_double_spaced, most_lines_fit};
use crate::collapse::text_kind::has_line_numbers;

/// Returns true if a line is the first of a sample, and most lines are what perf prints; or if the text begins with the
/// comments of `perf script --header`.
pub(super) fn recognizes(head: &[u8]) -> bool {
    // `perf report --header` begins with the same comments.
    if folded::is_certain(head) || perf_report::recognizes(head) {
        return false;
    }
    has_sample(head)
        && explain_edit(head).is_none()
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
    let missing = "perf script text without thread IDs and times; add tid and time to the fields of perf's -F";
    explain_edit(head).filter(|_| has_sample(head)).or_else(|| is_perf.then_some(missing))
}

/// Returns what was done to the lines of a text so that its samples cannot be told from each other any more.
fn explain_edit(head: &[u8]) -> Option<&'static str> {
    let has_lines = |is_edited: fn(&[u8]) -> bool| first_lines(head).any(is_edited);
    if has_line_numbers(head) {
        Some("perf script text with a number before each line; give the lines without it")
    } else if has_lines(has_several_frames) {
        Some("perf script text with several frames on a line; give it with its line ends")
    } else if most_lines_fit(head, 2, has_decimal_comma) {
        Some("perf script text with a comma in its times; give it with a point")
    } else if is_double_spaced(head) && has_neighbouring_frames(head) {
        Some("perf script text with a blank line behind each line; give it without them: sed 'n;d'")
    } else {
        None
    }
}

/// Returns true if a thread's ID or CPU precedes a time with a decimal comma.
fn has_decimal_comma(line: &[u8]) -> bool {
    memchr::memchr(b',', line).is_some_and(|comma| {
        let start = header::digits_start(line, comma);
        let fraction = &line[comma + 1..];
        let end = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_time = start < comma && end >= MIN_FRACTION && fraction.get(end) == Some(&b':');
        is_time && !header::parse_thread(&line[..start]).id.is_empty()
    })
}

/// Fewest digits of the fraction of a time that perf prints.
const MIN_FRACTION: usize = 6;

/// Returns true for the first line of a sample and its frames, joined. Data and the instruction that reads them have two
/// addresses.
fn has_several_frames(line: &[u8]) -> bool {
    line.len() > MIN_JOINED && memchr::memmem::find(line, b": ").is_some() && {
        let ends = memchr::memchr_iter(b')', line).filter(|end| begins_with_address(&line[end + 1..]));
        ends.take(2).count() == 2 && matches!(header::parse(line), Some(Line::Sample(header)) if header.is_certain())
    }
}

/// Fewest bytes of a line with three frames.
const MIN_JOINED: usize = 64;

/// Returns true for blanks, or the separator of frames, and an address before a blank.
fn begins_with_address(text: &[u8]) -> bool {
    let digits = &text[text.iter().take_while(|byte| b" \t;|".contains(byte)).count()..];
    let end = digits.iter().take_while(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte)).count();
    digits.len() < text.len() && end >= MIN_ADDRESS && digits.get(end) == Some(&b' ')
}

/// Returns true for frames that follow each other, but for blank lines.
fn has_neighbouring_frames(head: &[u8]) -> bool {
    let is_frame = |line: &[u8]| line[0].is_ascii_whitespace() && begins_with_perf_frame(line);
    let mut lines = first_lines(head).filter(|line| !line.trim_ascii().is_empty()).map(is_frame);
    let mut last = false;
    lines.any(|is_frame| std::mem::replace(&mut last, is_frame) && is_frame)
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

/// Returns true for the times that `--deltatime` prints: the first one is 0, as with `--reltime`, but not all of them rise. Where
/// the beginning is missing, many of them fall, and all are short: perf sorts times, and recordings that were joined or sorted
/// otherwise have those since the start of the machine.
pub(in crate::collapse::formats) fn has_time_differences(head: &[u8]) -> bool {
    let times: Vec<u64> = first_lines(head).filter_map(header::find_time).filter_map(parse_seconds).collect();
    let falling = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let are_short = times.iter().all(|time| *time < LONG_DIFFERENCE);
    falling > 0 && (times.first() == Some(&0) || are_short && falling > MAX_JOINED && falling * 5 > times.len())
}

/// Most times that fall where recordings were joined.
const MAX_JOINED: usize = 4;

/// A time between two samples that is longer than any, in nanoseconds.
const LONG_DIFFERENCE: u64 = 100_000_000_000;

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
