//! `eu-stack` of elfutils: a snapshot of a process, one stack per thread, leaf first.
//!
//! ```text
//! PID 42 - process
//! TID 42:
//! #0  0x00007f1000000010 poll
//! #1  0x0000000000400512 main
//! ```
//! Each stack has weight 1. Addresses, modules (`-m`) and source lines (`-s`) are left out. With `--tid` and `--pid`,
//! the thread's and the process's number become the root frames.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    first_lines, function_name, indentation, is_address, parse_number, split_once, split_word,
};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "eu-stack",
    description: "elfutils eu-stack",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let mut lines = first_lines(head);
    lines.any(|line| parse_tid(line).is_some()) && lines.next().is_some_and(|line| parse_frame(line).is_some())
}

/// Returns the thread ID of `TID 42:`.
fn parse_tid(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"TID ")?.strip_suffix(b":").filter(|tid| parse_number(tid).is_some())
}

/// Returns the process ID of `PID 42 - process`.
fn parse_pid(line: &[u8]) -> Option<&[u8]> {
    split_once(line.strip_prefix(b"PID ")?, " - ").map(|(pid, _)| pid)
}

/// Returns the text after the address of `#0  0x00007f1000000010 poll`. `- 1`, which marks return addresses with `-a`,
/// is left out.
fn parse_frame(line: &[u8]) -> Option<&[u8]> {
    let (number, rest) = split_word(line.strip_prefix(b"#")?);
    parse_number(number)?;
    let (address, name) = split_word(rest);
    is_address(address).then(|| name.strip_prefix(b"- 1").unwrap_or(name).trim_ascii())
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack) = (Vec::new(), Stack::default());
    let (mut process, mut thread, mut is_open) = (Vec::new(), Vec::new(), false);
    loop {
        let more = document.read_line(&mut line)?;
        if !more || parse_pid(&line).is_some() || parse_tid(&line).is_some() {
            if !stack.is_empty() {
                for (wanted, root) in [(document.options.tid, &thread), (document.options.pid, &process)] {
                    if wanted && !root.is_empty() {
                        stack.push(root, sink);
                    }
                }
                stack.add_leaf_first(Weight::ONE, sink)?;
            }
            if let Some(pid) = parse_pid(&line) {
                process = [b"PID=", pid].concat();
            } else if let Some(tid) = parse_tid(&line) {
                thread = [b"TID=", tid].concat();
            }
        } else if let Some(frame) = parse_frame(&line) {
            // With -m the module follows; with -s the source line is on a line of its own.
            let name = split_once(frame, " - ").map_or(frame, |(name, _)| name);
            stack.push(&function_name(name, document.options), sink);
        } else if !line.is_empty() && indentation(&line) == 0 && !is_note(&line) {
            document.report_malformed("expected a PID line, a TID line or a frame")?;
        }
        if !more {
            return document.check_end(!is_open, "the stack of its last thread");
        }
        if !line.trim_ascii().is_empty() {
            is_open = parse_tid(&line).is_some();
        }
    }
}

/// Returns true for messages of eu-stack itself: frames that it cannot read, stacks that it truncated, and source
/// lines.
fn is_note(line: &[u8]) -> bool {
    line.starts_with(b"eu-stack: ") || line.starts_with(b"/")
}
