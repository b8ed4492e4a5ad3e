//! `faulthandler` of Python: one stack per thread, leaf first.
//!
//! ```text
//! Thread 0x00007e (most recent call first):
//!   File "app.py", line 12 in work
//!   File "app.py", line 30 in main
//! ```
//! Each stack has weight 1. A frame is named `FILE:LINE:FUNCTION`. Everything else, such as the fatal error, is left
//! out.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_once, starts_with_any};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "faulthandler",
    description: "Python faulthandler",
    tested_with: "Python 3.11, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(is_thread_heading)
}

fn is_thread_heading(line: &[u8]) -> bool {
    line.ends_with(b"(most recent call first):")
}

/// Returns the frame as `FILE:LINE:FUNCTION`, which distinguishes functions of the same name.
fn parse_frame(line: &[u8]) -> Option<Vec<u8>> {
    let (file, rest) = split_once(line.strip_prefix(b"  File \"")?, "\", line ")?;
    let (number, function) = split_once(rest, " in ")?;
    parse_number(number)?;
    Some([file, number, function].join(&b':'))
}

/// Returns true for what the interpreter says of the error, and where it says that a thread has no frames.
fn is_message(line: &[u8]) -> bool {
    let starts: [&[u8]; 6] = [
        b"Fatal Python error: ",
        b"  <",
        b"Extension modules: ",
        b"Python runtime state: ",
        b"Timeout (",
        b"  Garbage-",
    ];
    starts_with_any(line, &starts)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut in_thread) = (Vec::new(), Stack::default(), false);
    // True if a frame, or what is in its place, follows the heading of the last thread.
    let mut has_text = false;
    while document.read_line(&mut line)? {
        has_text = !is_thread_heading(&line);
        if let Some(frame) = parse_frame(&line).filter(|_| in_thread) {
            stack.push(&frame, sink);
        } else if line == b"  ..." && !stack.is_empty() {
            stack.push(markers::TRUNCATED, sink);
        } else {
            if in_thread && line.starts_with(b"  File ") {
                document.report_malformed("expected a file, a line and a function")?;
                continue;
            }
            // The program itself may write between the frames.
            let is_text = !line.trim_ascii().is_empty() && !is_thread_heading(&line) && !is_message(&line);
            if in_thread && is_text && document.skip_line_in_stack() {
                continue;
            }
            stack.add_leaf_first(Weight::ONE, sink)?;
            in_thread = is_thread_heading(&line);
            if in_thread || is_message(&line) {
                document.skip_own_line();
            } else if line.trim().starts_with(b"File \"") {
                document.report_malformed("the frame belongs to no thread")?;
            } else {
                document.skip_line();
            }
        }
    }
    let is_complete = !in_thread || has_text;
    stack.add_leaf_first(Weight::ONE, sink)?;
    document.check_end(is_complete, "the stack of its last thread")
}
