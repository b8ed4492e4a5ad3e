//! elfutils' `eu-stack`: one snapshot a thread, leaf first.
//!
//! ```text
//! PID 42 - process
//! TID 42:
//! #0  0x00007f1000000010 poll
//! #1  0x0000000000400512 main
//! ```

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::text;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "eu-stack",
    description: "elfutils eu-stack",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let mut lines = text::lines(head);
    lines.any(|line| tid(line).is_some()) && lines.next().is_some_and(|line| frame(line).is_some())
}

fn tid(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"TID ")?.strip_suffix(b":").filter(|tid| text::number(tid).is_some())
}

fn pid(line: &[u8]) -> Option<&[u8]> {
    text::split_once(line.strip_prefix(b"PID ")?, " - ").map(|(pid, _)| pid)
}

/// What stands behind the address.
fn frame(line: &[u8]) -> Option<&[u8]> {
    let (number, rest) = text::split_word(line.strip_prefix(b"#")?);
    text::number(number)?;
    let (address, name) = text::split_word(rest);
    text::is_address(address).then(|| name.strip_prefix(b"- 1").unwrap_or(name).trim_ascii())
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack) = (Vec::new(), Stack::default());
    let (mut process, mut thread) = (Vec::new(), Vec::new());
    loop {
        let more = document.line(&mut line)?;
        if !more || pid(&line).is_some() || tid(&line).is_some() {
            if !stack.is_empty() {
                for (wanted, root) in [(document.options.tid, &thread), (document.options.pid, &process)] {
                    if wanted && !root.is_empty() {
                        stack.push(root, sink);
                    }
                }
                stack.add_leaf_first(Weight::ONE, sink)?;
            }
            if let Some(pid) = pid(&line) {
                process = [b"PID=", pid].concat();
            } else if let Some(tid) = tid(&line) {
                thread = [b"TID=", tid].concat();
            }
        } else if let Some(frame) = frame(&line) {
            // With -m the module follows, with -s the place in the source stands on a line of its own.
            let name = text::split_once(frame, " - ").map_or(frame, |(name, _)| name);
            stack.push(&text::function(name, document.options), sink);
        } else if !line.is_empty() && text::indentation(&line) == 0 && !is_remark(&line) {
            document.malformed("expected a process, a thread or a frame")?;
        }
        if !more {
            return Ok(());
        }
    }
}

/// What eu-stack says of frames that it cannot read, and its note that a stack is cut.
fn is_remark(line: &[u8]) -> bool {
    line.starts_with(b"eu-stack: ") || line.starts_with(b"/")
}
