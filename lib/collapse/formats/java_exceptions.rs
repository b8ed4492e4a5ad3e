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
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::line_helpers::{first_lines, indentation, parse_number};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "java-exceptions",
    description: "Java exceptions in a log",
    tried_with: "JDK 17, published files",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(|line| line.starts_with(b"\tat ") && java::parse_call(line).is_some())
        && !jstack::recognizes(head)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut previous) = (Vec::new(), Stack::default(), Vec::<FrameId>::new());
    document.set_unit("exceptions");
    while document.read_line(&mut line)? {
        let trimmed = line.trim_ascii();
        if let Some(frame) = java::parse_frame(trimmed, document.options).filter(|_| indentation(&line) > 0) {
            stack.push(frame, sink);
        } else if let Some(count) = parse_shared_count(trimmed).filter(|_| !stack.is_empty()) {
            let shared = previous.len().checked_sub(count).map(|start| &previous[start..]);
            stack.extend(shared.unwrap_or_default());
            if shared.is_none() {
                stack.push(markers::TRUNCATED, sink);
            }
        } else if !trimmed.starts_with(b"- ") {
            if !stack.is_empty() {
                previous = stack.frames().to_vec();
            }
            stack.add_leaf_first(Weight::ONE, sink)?;
            document.skip_line();
        }
    }
    stack.add_leaf_first(Weight::ONE, sink)
}

/// Returns the number of `... 5 more`.
fn parse_shared_count(line: &[u8]) -> Option<usize> {
    let count = line.strip_prefix(b"... ")?.strip_suffix(b" more")?;
    usize::try_from(parse_number(count)?).ok()
}
