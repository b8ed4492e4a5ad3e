//! `memleak` of bcc and of libbpf-tools: memory that was allocated and not freed, by stack, leaf first, again and again.
//!
//! ```text
//! [11:16:33] Top 2 stacks with outstanding allocations:
//!     1040384 bytes in 256 allocations from stack
//!         0x00007f1000000010    malloc+0x1a [libc.so.6]
//!         0x0000000000400512    main+0x20 [app]
//! ```
//! The program of libbpf-tools writes frames as `0 [<000055982d8ee1b8>] main+0x20 [/srv/app]`. The weight is the bytes of the
//! last list, unless `--event allocations` asks for their number. Offsets and modules are left out, and so are the
//! single allocations that `-a` adds.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, is_address, parse_number, split_once, split_word};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{Stack, intern_frame};
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "memleak",
    description: "memleak (bcc, libbpf-tools)",
    tested_with: "libbpf-tools 0.37, published output of bcc",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        let mut lines = first_lines(head);
        // A list may be empty.
        lines.any(is_heading) && lines.any(|line| parse_entry(line).is_some())
    }),
    reader: FormatReader::Lines(read),
};

fn is_heading(line: &[u8]) -> bool {
    line.starts_with(b"[") && line.contains_str(" stacks with outstanding allocations")
}

/// Returns the number of `[11:16:33] Top 2 stacks with outstanding allocations:`.
fn parse_stated(line: &[u8]) -> u64 {
    split_once(line, "] Top ").and_then(|(_, rest)| parse_number(split_word(rest).0)).unwrap_or(0)
}

/// Returns the bytes and the number of `1040384 bytes in 256 allocations from stack`.
fn parse_entry(line: &[u8]) -> Option<[u64; 2]> {
    let (bytes, rest) = split_word(line);
    let (count, rest) = split_word(rest.strip_prefix(b"bytes in ")?);
    rest.starts_with(b"allocations from stack").then_some([parse_number(bytes)?, parse_number(count)?])
}

/// Returns true for `addr = 0x557e00192b30 size = 40000`.
fn is_allocation(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"addr = ") && line.contains_str(" size = ")
}

/// Returns true for an indented frame: with an address or an index, an offset, or a module in brackets.
fn is_frame(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let (first, rest) = split_word(text);
    let is_numbered = parse_number(first).is_some() && rest.starts_with(b"[<");
    (line.starts_with(b"\t") || line.starts_with(b"    "))
        && (is_numbered || is_address(first) || text.ends_with(b"]") || text.contains_str("+0x"))
}

/// Returns true for the first line that the program writes: `Attaching to pid 7, Ctrl+C to quit.`
pub(super) fn is_start(line: &[u8]) -> bool {
    line.ends_with(b", Ctrl+C to quit.")
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let column = document.select_value(&["bytes", "allocations"], 0)?;
    document.set_unit_silently(["bytes", "allocations"][column]);
    let mut line = Vec::new();
    // The number of entries that the heading of the last list states. Only the largest ones are printed, if asked for.
    let mut stated = 0;
    let mut entries: Vec<(Weight, Vec<FrameId>)> = Vec::new();
    while document.read_line(&mut line)? {
        if is_heading(&line) {
            entries.clear();
            stated = parse_stated(&line);
        } else if let Some(values) = parse_entry(&line) {
            entries.push((Weight::new(values[column]), Vec::new()));
        } else if is_allocation(&line) {
            continue;
        } else if is_start(&line) || line.starts_with(b"Tracing outstanding ") {
            document.skip_own_line();
        } else if is_frame(&line) {
            let frame = intern_frame(&frame_name(line.trim_ascii(), document.options), sink);
            match entries.last_mut() {
                Some((_, stack)) => stack.push(frame),
                None => document.report_malformed("the frame belongs to no allocation")?,
            }
        } else {
            document.skip_line();
        }
    }
    let is_complete = entries.len() as u64 >= stated && entries.last().is_none_or(|(_, frames)| !frames.is_empty());
    let mut stack = Stack::default();
    for (weight, frames) in entries {
        stack.extend(&frames);
        stack.add_leaf_first(weight, sink)?;
    }
    document.check_end(is_complete, "the last of the stacks that the heading of its last list counts")
}

/// Returns the function of `0x00007f1000000010    malloc+0x1a [libc.so.6]`; older versions print no address.
fn frame_name(line: &[u8], options: &Options) -> Vec<u8> {
    let (word, rest) = split_word(line);
    let name = match parse_number(word) {
        // An index, and an address in brackets
        Some(_) if rest.starts_with(b"[<") => split_word(rest).1,
        _ if is_address(word) => rest,
        _ => line,
    };
    let name = if name.starts_with(b"[") { b"" } else { split_once(name, " [").map_or(name, |(name, _)| name) };
    function_name(name.trim_ascii(), options).into_owned()
}
