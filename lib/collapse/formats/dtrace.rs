//! DTrace aggregations keyed by `stack()` or `ustack()`: frames, leaf first, then the count on a line of its own.
//!
//! ```text
//!               libc.so.1`memcpy+0x1f
//!               app`main+0x4
//!                12
//! ```
//! The count is the weight. Other keys of the aggregation precede the stack and become the root frame. Offsets and the
//! lines of probes that fire are left out.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    NO_COUNT, first_lines, is_address, is_no_count, parse_number, split_words, strip_llvm_suffix, strip_offset,
};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::markers::INLINED;
use crate::profile::Weight;
use crate::symbol_name::inlined;

/// Least number of blanks before a frame.
const INDENTATION: usize = 10;

pub(super) static FORMAT: Format = Format {
    name: "dtrace",
    description: "DTrace stack() and ustack()",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

/// Returns true if the text begins with DTrace's heading, or has frames (``module`function``) that a count follows.
fn recognizes(head: &[u8]) -> bool {
    let mut lines = first_lines(head).peekable();
    if lines.peek().is_some_and(|line| is_heading(line)) {
        return true;
    }
    let mut in_stack = false;
    for line in lines.map(<[u8]>::trim_ascii) {
        match parse_number(line) {
            Some(_) if in_stack => return true,
            _ if line.is_empty() => {}
            _ => in_stack = line.contains(&b'`') && !line.contains(&b';') || in_stack && is_address(line),
        }
    }
    false
}

/// Returns true for the heading `CPU     ID                    FUNCTION:NAME`.
fn is_heading(line: &[u8]) -> bool {
    split_words(line).take(2).eq([&b"CPU"[..], b"ID"])
}

/// Returns true for a CPU, a number and a probe: `2  81201  :tick-20s`.
fn is_probe(line: &[u8]) -> bool {
    let mut words = split_words(line);
    let begins_with_numbers = words.by_ref().take(2).filter_map(parse_number).count() == 2;
    begins_with_numbers && words.next().is_some_and(|probe| probe.contains(&b':')) && words.next().is_none()
}

/// Returns true for ``module`function+0x1f``, or an address. A module has no blank in its name.
fn is_frame(line: &[u8]) -> bool {
    let module = memchr::memchr(b'`', line).map(|end| &line[..end]);
    module.is_some_and(|module| !module.is_empty() && !module.iter().any(u8::is_ascii_whitespace))
        || is_address(strip_offset(line))
}

/// Returns true for a line that is indented as frames are: the symbols of the Java virtual machine have no module.
fn is_indented(line: &[u8]) -> bool {
    line.iter().take_while(|byte| **byte == b' ').count() >= INDENTATION
}

/// Returns true for a line that may have the other keys of an aggregation: all of its output is indented.
fn is_key(line: &[u8]) -> bool {
    line.starts_with(b" ") && !is_frame(line.trim_ascii())
}

/// Returns true if the first line of a text that is not blank is a frame.
fn begins_with_frame(text: &[u8]) -> bool {
    text.trim_ascii_start().lines().next().is_some_and(|line| is_frame(line.trim_ascii()))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut key, mut has_begun) = (Vec::new(), Stack::default(), Vec::new(), false);
    while document.read_line(&mut line)? {
        let trimmed = line.trim_ascii();
        has_begun |= trimmed.is_empty() || is_frame(trimmed);
        if trimmed.is_empty() {
            continue;
        }
        if !has_begun && (is_heading(trimmed) || is_probe(trimmed)) {
            document.skip_own_line();
            continue;
        }
        if !has_begun {
            document.skip_line();
            continue;
        }
        match parse_number(trimmed) {
            Some(count) if !stack.is_empty() => {
                if !key.is_empty() {
                    stack.push(&key, sink);
                    key.clear();
                }
                stack.add_leaf_first(Weight::new(count), sink)?;
            }
            Some(_) => document.report_malformed("expected a frame, found a count")?,
            None if is_no_count(trimmed) => {
                if !stack.is_empty() {
                    document.report_malformed(NO_COUNT)?;
                }
                stack.clear();
                key.clear();
            }
            // A probe that fires periodically prints this before each of its aggregations.
            None if stack.is_empty() && (is_heading(trimmed) || is_probe(trimmed)) => {}
            // The other keys of the aggregation precede the stack.
            None if stack.is_empty() && is_key(&line) && document.next_lines().is_none_or(begins_with_frame) => {
                key = split_words(trimmed).collect::<Vec<_>>().join(&b' ');
            }
            None if !is_frame(trimmed) && (stack.is_empty() || !is_indented(&line)) => {
                document.report_unindented("expected a frame, a count or the key of a stack")?
            }
            None => push_frame(trimmed, document.options, &mut stack, sink),
        }
    }
    if stack.is_empty() { Ok(()) } else { document.report_malformed("the input ends within a stack") }
}

/// Pushes a frame. One that lists inlined functions becomes several, leaf first like the frames around it.
fn push_frame(frame: &[u8], options: &Options, stack: &mut Stack, sink: &mut Sink) {
    if options.verbatim {
        return stack.push(frame, sink);
    }
    let name = strip_llvm_suffix(strip_offset(frame));
    let (module, function) = name.split_at(memchr::memchr(b'`', name).map_or(0, |backtick| backtick + 1));
    let parts: Vec<_> = inlined::split_frames(function, true).collect();
    for (number, part) in parts.into_iter().enumerate().rev() {
        match number {
            0 => stack.push(&[module, &part].concat(), sink),
            _ => stack.push(&markers::with_suffix(part, INLINED), sink),
        }
    }
}
