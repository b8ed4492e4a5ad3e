//! Stack traces of Java exceptions, as `printStackTrace` and logging frameworks write them: leaf first.
//!
//! ```text
//! java.lang.RuntimeException: boom
//!         at com.acme.A.f(A.java:3)
//!         at com.acme.A.main(A.java:1)
//! Caused by: java.io.IOException
//!         at com.acme.B.g(B.java:9)
//!         ... 1 more
//! ```
//! Each exception, and each of its causes, has weight 1. `... N more` is replaced by the N frames nearest to the root of
//! the stack before it. Messages, files and lines are left out.

use super::{java, jstack};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, indentation, parse_number};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "java-exceptions",
    description: "Java exceptions in a log",
    tested_with: "JDK 17, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(|line| line.starts_with(b"\tat ") && java::parse_call(line).is_some())
        && !jstack::recognizes(head)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut previous) = (Vec::new(), Stack::default(), Vec::<FrameId>::new());
    // True if the last frame is the root of a thread.
    let mut is_at_root = false;
    document.set_unit("exceptions");
    while document.read_line(&mut line)? {
        let trimmed = line.trim_ascii();
        if let Some(frame) = java::parse_frame(trimmed, document.options).filter(|_| indentation(&line) > 0) {
            is_at_root =
                frame.ends_with(b".main") || frame == b"java/lang/Thread.run" || frame == b"java.lang.Thread.run";
            stack.push(frame, sink);
        } else if let Some(count) = parse_shared_count(trimmed).filter(|_| !stack.is_empty()) {
            let shared = previous.len().checked_sub(count).map(|start| &previous[start..]);
            stack.extend(shared.unwrap_or_default());
            if shared.is_none() {
                stack.push(markers::TRUNCATED, sink);
            }
            is_at_root = true;
        } else if !trimmed.starts_with(b"- ") {
            let is_header = names_exception(trimmed);
            if is_header {
                document.skip_own_line();
            }
            // A line of another thread within a stack does not end it.
            if !is_header && !is_at_root && !stack.is_empty() && document.skip_line_in_stack() {
                continue;
            }
            if !is_header {
                document.skip_line();
            }
            if !stack.is_empty() {
                previous = stack.frames().to_vec();
            }
            stack.add_leaf_first(Weight::ONE, sink)?;
            is_at_root = false;
        }
    }
    stack.add_leaf_first(Weight::ONE, sink)
}

/// Returns true for a line that names an exception: `Caused by: java.io.IOException: disk`.
pub(super) fn names_exception(line: &[u8]) -> bool {
    line.starts_with(b"Caused by: ")
        || line.starts_with(b"Suppressed: ")
        || line.starts_with(b"Exception in thread ")
        || line.split(|byte| !is_part_of_name(*byte)).any(|word| {
            let class = word.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
            let is_class = class.first().is_some_and(u8::is_ascii_uppercase) && class.len() < word.len();
            is_class || [&b"Exception"[..], b"Error", b"Throwable"].iter().any(|end| word.ends_with(end))
        })
}

fn is_part_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._$".contains(&byte) || !byte.is_ascii()
}

/// Returns the number of `... 5 more`.
fn parse_shared_count(line: &[u8]) -> Option<usize> {
    let count = line.strip_prefix(b"... ")?.strip_suffix(b" more")?;
    usize::try_from(parse_number(count)?).ok()
}
