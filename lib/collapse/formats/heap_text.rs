//! Heap and contention profiles as text: `jeprof` files of jemalloc (`heap_v2`), heap profiles of gperftools, and what
//! Go's `net/http/pprof` returns with `debug=1`.
//!
//! ```text
//! heap profile:    150:  4500000 [   350:  6500000] @ heapprofile
//!     50:  2500000 [    50:  2500000] @ 0x55fb51385178 0x55fb513851d6
//! MAPPED_LIBRARIES:
//! 55fb51385000-55fb51386000 r-xp 00001000 00:00 10043441    /usr/bin/app
//! ```
//! The weight is the bytes in use (`inuse_space`), unless `--event` names another value: `inuse_objects`, `alloc_space` or
//! `alloc_objects`. Values of sampled profiles are scaled to all allocations, as `pprof` and `jeprof` do. Contention
//! profiles have `delay` in nanoseconds, and `contentions`.
//!
//! Heap profiles end with mapped files, or with Go's statistics of memory. Contention profiles have no end mark: of one that
//! was cut after a line, nothing tells so.
//!
//! Addresses are named by the files that the profile lists, and those below `--symfs`; names that the profile contains are
//! preferred. Specification: `doc/heap_format.md` of `github.com/google/pprof`.

mod scale;

use self::scale::Sampling;
use super::go_frames::{self, GoFrame};
use super::mapped::{Addresses, parse_hex};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_once, split_word};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{Stack, intern_frame};
use crate::markers;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "heap-text",
    description: "heap and contention profiles as text (jemalloc, gperftools, Go debug=1)",
    tested_with: "jemalloc 5.3, gperftools 2.10, Go 1.19",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| first_lines(head).next().is_some_and(is_heading)),
    reader: FormatReader::Lines(read),
};

/// Returns true for the first line of a profile.
pub(super) fn is_heading(line: &[u8]) -> bool {
    Sampling::parse(line).is_some()
}

/// The names of the values of heap profiles.
const HEAP_VALUES: [&str; 4] = ["inuse_space", "inuse_objects", "alloc_space", "alloc_objects"];
/// The names of the values of contention profiles.
const DELAY_VALUES: [&str; 2] = ["delay", "contentions"];

/// A stack and its values.
struct Entry {
    /// In the order of the names.
    values: [u64; 4],
    /// Addresses, leaf first.
    addresses: Vec<u64>,
    /// The names that the profile contains, leaf first.
    names: Vec<FrameId>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut line = Vec::new();
    let (mut entries, mut sampling) = (Vec::<Entry>::new(), Sampling::default());
    let (mut addresses, mut in_mappings) = (Addresses::new(document.options), false);
    let (mut has_statistics, mut has_mappings) = (false, false);
    while document.read_line(&mut line)? {
        let text = line.trim_ascii();
        if let Some(found) = Sampling::parse(text) {
            sampling = found;
        } else if in_mappings || text.starts_with(b"MAPPED_LIBRARIES:") || text.starts_with(b"--- Memory map:") {
            let is_mapping = !text.contains(&0) && addresses.add_mapping(text) || !in_mappings || is_build(text);
            has_mappings |= in_mappings;
            in_mappings = true;
            if !is_mapping {
                document.report_malformed("expected a mapped file")?;
            }
        } else if text.starts_with(b"# runtime.MemStats") {
            has_statistics = true;
        } else if let Some(frame) = go_frames::parse(text) {
            let frame = intern_frame(&comment_name(&frame, document.options), sink);
            entries.last_mut().into_iter().for_each(|entry| entry.names.push(frame));
        } else if let Some(entry) = parse_entry(text).filter(|_| !has_statistics && is_entry_of(text, &sampling)) {
            entries.push(entry);
        } else if let Some(values) = parse_thread_values(text) {
            // The values of all threads; those of each thread follow.
            if text.starts_with(b"t*:")
                && let Some(entry) = entries.last_mut()
            {
                entry.values = values;
            }
        } else if !sampling.add_setting(text) && !text.is_empty() && !text.starts_with(b"#") {
            document.report_malformed("expected values and addresses")?;
        }
    }
    let is_contention = sampling.is_contention;
    let is_cut = in_mappings && !has_mappings;
    add_entries(entries, &sampling, addresses, document, sink)?;
    if !is_contention && !in_mappings && !has_statistics {
        let what = "may be cut short: neither mapped files nor Go's statistics of memory follow the stacks";
        return document.report_damage(what, sink.is_input_empty());
    }
    document.check_end(!is_cut, "its list of mapped files")?;
    document.check_last_line()
}

/// Returns true if an entry has the values of the profile's kind.
fn is_entry_of(text: &[u8], sampling: &Sampling) -> bool {
    text.starts_with(b"@ ") || text.contains(&b'[') != sampling.is_contention
}

/// Returns true for a blank line, and for the variables of gperftools: `build=/usr/bin/app`.
fn is_build(text: &[u8]) -> bool {
    text.is_empty() || text.starts_with(b"build=")
}

fn add_entries(
    mut entries: Vec<Entry>,
    sampling: &Sampling,
    mut addresses: Addresses,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    entries.iter_mut().for_each(|entry| entry.values = sampling.scale(entry.values));
    let names: &[&str] = if sampling.is_contention { &DELAY_VALUES } else { &HEAP_VALUES };
    let default = (0..names.len()).find(|column| entries.iter().any(|entry| entry.values[*column] > 0)).unwrap_or(0);
    let column = document.select_value(names, default)?;
    document.set_unit_silently(match names[column] {
        "delay" => "nanoseconds",
        name if name.ends_with("space") => "bytes",
        _ => "count",
    });
    // Return addresses: the call is before them.
    let numbers: Vec<Vec<usize>> = entries
        .iter()
        .map(|entry| match entry.names.is_empty() {
            true => entry.addresses.iter().map(|address| addresses.number(address.saturating_sub(1))).collect(),
            false => Vec::new(),
        })
        .collect();
    let names = addresses.name(document.options, sink);
    names.warnings.iter().for_each(|warning| document.warn(warning));
    let mut stack = Stack::default();
    for (entry, numbers) in entries.iter().zip(numbers) {
        stack.extend(&entry.names);
        numbers.iter().for_each(|number| names.frames[*number].iter().rev().for_each(|frame| stack.extend(&[*frame])));
        if stack.is_empty() {
            stack.push(markers::UNKNOWN, sink);
        }
        stack.add_leaf_first(Weight::new(entry.values[column]), sink)?;
    }
    Ok(())
}

/// Parses `50: 2500000 [50: 2500000] @ 0x55fb51385178`, `1234 5 @ 0x55`, or `@ 0x55`, whose values follow.
fn parse_entry(text: &[u8]) -> Option<Entry> {
    let (before, addresses) = match text.strip_prefix(b"@ ") {
        Some(addresses) => (&b""[..], addresses),
        None => split_once(text, " @")?,
    };
    let addresses = addresses.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let addresses = addresses.map(|word| word.starts_with(b"0x").then(|| parse_hex(word)).flatten());
    let values = if before.is_empty() { Some([0; 4]) } else { parse_values(before).or_else(|| parse_delay(before)) };
    Some(Entry { values: values?, addresses: addresses.collect::<Option<_>>()?, names: Vec::new() })
}

/// Parses `50: 2500000 [50: 2500000]`.
fn parse_values(text: &[u8]) -> Option<[u64; 4]> {
    let (in_use, allocated) = split_once(text, "[")?;
    let (count, size) = parse_pair(in_use)?;
    let (all_count, all_size) = parse_pair(allocated.trim_ascii().strip_suffix(b"]")?)?;
    Some([size, count, all_size, all_count])
}

/// Parses `50: 2500000`.
fn parse_pair(text: &[u8]) -> Option<(u64, u64)> {
    let (count, size) = split_once(text, ":")?;
    Some((parse_number(count.trim_ascii())?, parse_number(size.trim_ascii())?))
}

/// Parses the cycles and the number of contentions of `1234 5`.
fn parse_delay(text: &[u8]) -> Option<[u64; 4]> {
    let (cycles, count) = split_word(text);
    Some([parse_number(cycles)?, parse_number(count.trim_ascii())?, 0, 0])
}

/// Parses `t*: 98: 2027986 [0: 0]` of jemalloc.
fn parse_thread_values(text: &[u8]) -> Option<[u64; 4]> {
    let (thread, values) = split_once(text.strip_prefix(b"t")?, ": ")?;
    (thread == b"*" || parse_number(thread).is_some()).then(|| parse_values(values)).flatten()
}

/// Returns the name of a frame in a comment, with `--srcline` also its file and line.
fn comment_name(frame: &GoFrame<'_>, options: &Options) -> Vec<u8> {
    let name = frame.function.unwrap_or_default();
    match options.srcline && !frame.position.is_empty() {
        true => [name, b":", frame.position].concat(),
        false => name.to_vec(),
    }
}
