//! Function traces of Xdebug for PHP (`xdebug.trace_format=1`, file formats 1 to 4): when each function was entered and
//! left. Fields, separated by tabs: level, function number, kind (0 entry, 1 exit), time in seconds, memory, name.
//!
//! ```text
//! TRACE START [2026-01-01 00:00:00]
//! 1       0       0       0.010   114112  {main}  1               a.php   0
//! 2       1       0       0.032   114272  work    1               a.php   8
//! 2       1       1       0.052   116632
//! TRACE END   [2026-01-01 00:00:01]
//! ```
//! The weight is the time until the next line, in microseconds, which goes to the stack of functions that run. With
//! `--event calls`, each call weighs 1. Memory, arguments, return values, files and lines are left out.
//! Specification: <https://xdebug.org/docs/trace>.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, parse_scaled};
use crate::collapse::sink::Sink;
use crate::collapse::stack::{self, MAX_SHARED_DEPTH, Stack};
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "xdebug",
    description: "Xdebug function trace (PHP)",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).take(20).any(|line| line.starts_with(b"TRACE START ["))
}

/// The state of a trace while it is read.
#[derive(Default)]
struct Trace {
    /// The functions that run, root first.
    stack: Vec<FrameId>,
    /// The time of the last line, in microseconds.
    last_time: Option<Weight>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let calls = document.select_value(&["time", "calls"], 0)? == 1;
    document.set_unit(if calls { "calls" } else { "microseconds" });
    let (mut line, mut trace, mut in_trace) = (Vec::new(), Trace::default(), false);
    while document.read_line(&mut line)? {
        if line.starts_with(b"TRACE ") {
            (trace, in_trace) = (Trace::default(), line.starts_with(b"TRACE START"));
        } else if in_trace && line.contains_str(" -> ") && line.starts_with(b" ") {
            return Err(document.unreadable("a human-readable Xdebug trace; write it with xdebug.trace_format=1"));
        } else if in_trace && !trace.add_line(&line, calls, sink)? {
            document.report_malformed("expected a level, a number, a kind, a time and a name, separated by tabs")?;
        } else if !in_trace && [&b"Version: "[..], b"File format: "].iter().any(|start| line.starts_with(start)) {
            document.skip_own_line();
        } else if !in_trace && !line.is_empty() {
            document.skip_line();
        }
    }
    document.check_end(!in_trace, "TRACE END")
}

impl Trace {
    /// Adds the time since the last line, then enters or leaves a function. Returns false if the line is malformed.
    fn add_line(&mut self, line: &[u8], calls: bool, sink: &mut Sink) -> Result<bool, Error> {
        let fields: Vec<&[u8]> = line.split_str("\t").collect();
        // The last line of a trace has only a time and memory; lines of return values (R) and assignments (A) have no
        // time.
        let kind = fields.get(2).copied().unwrap_or_default();
        if line.is_empty() || kind == b"R" || kind == b"A" {
            return Ok(true);
        }
        let level = fields.first().and_then(|level| parse_number(level));
        let time = fields.get(3).and_then(|time| parse_scaled(time, 6));
        let (Some(time), true) = (time, level.is_some() || kind.is_empty()) else { return Ok(false) };
        let elapsed = time.saturating_sub(self.last_time.unwrap_or(time));
        self.last_time = Some(time);
        if !calls {
            self.add_stack(elapsed, sink)?;
        }
        match (kind, level.and_then(|level| usize::try_from(level).ok())) {
            (b"0", Some(level @ 1..=MAX_SHARED_DEPTH)) => {
                let Some(name) = fields.get(5).filter(|name| !name.is_empty()) else { return Ok(false) };
                self.stack.truncate(level - 1);
                self.stack.push(stack::intern_frame(name, sink));
                if calls {
                    self.add_stack(Weight::ONE, sink)?;
                }
            }
            (b"1", Some(level @ 1..)) => self.stack.truncate(level - 1),
            (b"", _) => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add_stack(&self, weight: Weight, sink: &mut Sink) -> Result<(), Error> {
        let mut stack = Stack::default();
        stack.extend(&self.stack);
        stack.add(weight, sink)
    }
}
