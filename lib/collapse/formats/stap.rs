//! Backtraces that SystemTap scripts print with `print_backtrace()`, `print_ubacktrace()` or `print_stack()`: frames,
//! leaf first, then the count on a line of its own.
//!
//! ```text
//!  0xffffffff8155ab24 : __brk+0x4/0x1b0 [kernel]
//!  0x400512 : main+0x22/0x90 [/bin/app]
//!         17
//! ```
//! The count is the weight. Addresses, offsets and modules are left out; a frame without a symbol is named by its
//! module.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    NO_COUNT, first_lines, function_name, is_address, is_no_count, parse_number, split_once,
};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "systemtap",
    description: "SystemTap print_backtrace() and print_stack()",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(|line| parse_frame(line).is_some())
}

/// Returns the text after the address of ` 0xADDR : name+0xOFF/0xSIZE [module]`.
fn parse_frame(line: &[u8]) -> Option<&[u8]> {
    let (address, name) = split_once(line.trim_ascii(), " : ")?;
    is_address(address.trim_ascii()).then_some(name)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack) = (Vec::new(), Stack::default());
    while document.read_line(&mut line)? {
        let trimmed = line.trim_ascii();
        if let Some(frame) = parse_frame(trimmed) {
            let (name, module) = match frame.strip_suffix(b"]").and_then(|frame| split_once(frame, " [")) {
                Some((name, module)) => (name.trim_ascii(), Some(module)),
                None => (frame.strip_suffix(b"(inexact)").unwrap_or(frame).trim_ascii(), None),
            };
            match module {
                Some(module) if is_address(name) => {
                    let file = module.rsplit(|byte| *byte == b'/').next().unwrap_or(module);
                    stack.push(&[b"[", file, b"]"].concat(), sink);
                }
                _ => stack.push(&function_name(name, document.options), sink),
            }
        } else if let Some(count) = parse_number(trimmed) {
            match stack.is_empty() {
                true => document.report_malformed("expected a frame, found a count")?,
                false => stack.add_leaf_first(Weight::new(count), sink)?,
            }
        } else if is_no_count(trimmed) {
            document.report_malformed(NO_COUNT)?;
            stack.clear();
        } else if !trimmed.is_empty() {
            document.report_malformed("expected a frame or a count")?;
        }
    }
    if stack.is_empty() { Ok(()) } else { document.report_malformed("the input ends within a stack") }
}
