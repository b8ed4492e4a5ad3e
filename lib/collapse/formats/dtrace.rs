//! DTrace aggregations by `stack()` and `ustack()`: leaf first, then the count on a line of its own.
//!
//! ```text
//!               libc.so.1`memcpy+0x1f
//!               app`main+0x4
//!                12
//! ```

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::{Options, text};
use crate::markers;
use crate::markers::INLINED;
use crate::profile::Weight;
use crate::symbol_name::simplify;

pub(super) static FORMAT: Format = Format {
    name: "dtrace",
    description: "DTrace stack() and ustack()",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

/// DTrace's heading, or frames with a module and a backtick, and behind them a count.
fn recognizes(head: &[u8]) -> bool {
    let mut lines = text::lines(head).peekable();
    if lines.peek().is_some_and(|line| is_heading(line)) {
        return true;
    }
    let mut framed = false;
    for line in lines.map(<[u8]>::trim_ascii) {
        match text::number(line) {
            Some(_) if framed => return true,
            _ if line.is_empty() => {}
            _ => framed = line.contains(&b'`') && !line.contains(&b';') || framed && text::is_address(line),
        }
    }
    false
}

fn is_heading(line: &[u8]) -> bool {
    text::words(line).take(2).eq([&b"CPU"[..], b"ID"])
}

/// A CPU, a number and a probe: `2  81201  :tick-20s`.
fn is_probe(line: &[u8]) -> bool {
    let mut words = text::words(line);
    let numbers = words.by_ref().take(2).filter_map(text::number).count() == 2;
    numbers && words.next().is_some_and(|probe| probe.contains(&b':')) && words.next().is_none()
}

fn is_frame(line: &[u8]) -> bool {
    line.contains(&b'`') || text::is_address(text::without_offset(line))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut stack, mut key, mut begun) = (Vec::new(), Stack::default(), Vec::new(), false);
    while document.line(&mut line)? {
        let trimmed = line.trim_ascii();
        begun |= trimmed.is_empty() || is_frame(trimmed);
        if trimmed.is_empty() || !begun {
            continue;
        }
        match text::number(trimmed) {
            Some(count) if !stack.is_empty() => {
                if !key.is_empty() {
                    stack.push(&key, sink);
                    key.clear();
                }
                stack.add_leaf_first(Weight::new(count), sink)?;
            }
            Some(_) => document.malformed("a count without a stack")?,
            // A probe that fires every so often says so before each of its aggregations.
            None if stack.is_empty() && (is_heading(trimmed) || is_probe(trimmed)) => {}
            // What else the aggregation is keyed by stands before the stack.
            None if stack.is_empty() && !is_frame(trimmed) => {
                key = text::words(trimmed).collect::<Vec<_>>().join(&b' ');
            }
            None => push(trimmed, document.options, &mut stack, sink),
        }
    }
    if stack.is_empty() { Ok(()) } else { document.malformed("the input ends within a stack") }
}

/// Takes a frame, which may list inlined functions: leaf first, as the frames around it.
fn push(frame: &[u8], options: &Options, stack: &mut Stack, sink: &mut Sink) {
    if options.verbatim {
        return stack.push(frame, sink);
    }
    let name = text::without_suffix(text::without_offset(frame));
    let module = memchr::memchr(b'`', name).map_or(0, |backtick| backtick + 1);
    let parts: Vec<_> = simplify::frames(&name[module..], true).collect();
    for (number, part) in parts.into_iter().enumerate().rev() {
        match number {
            0 => stack.push(&[&name[..module], &part].concat(), sink),
            _ => stack.push(&markers::with_suffix(part, INLINED), sink),
        }
    }
}
