//! Xdebug's trace of PHP functions (format 1 to 4): when each was entered and left. Time goes to the stack in which it
//! passed.
//!
//! ```text
//! TRACE START [2026-01-01 00:00:00]
//! 1       0       0       0.010   114112  {main}  1               a.php   0
//! 2       1       0       0.032   114272  work    1               a.php   8
//! 2       1       1       0.052   116632
//! TRACE END   [2026-01-01 00:00:01]
//! ```

use bstr::ByteSlice as _;

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{self, Stack};
use crate::collapse::text;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "xdebug",
    description: "Xdebug function trace (PHP)",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

/// So many frames a stack may have.
const DEEPEST: usize = 1024;

fn recognizes(head: &[u8]) -> bool {
    text::lines(head).take(20).any(|line| line.starts_with(b"TRACE START ["))
}

/// The calls that are not left, and when the last thing happened.
#[derive(Default)]
struct Trace {
    open: Vec<FrameId>,
    last: Option<Weight>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let calls = document.column(&["time", "calls"], 0)? == 1;
    document.unit(if calls { "calls" } else { "microseconds" });
    let (mut line, mut trace, mut within) = (Vec::new(), Trace::default(), false);
    while document.line(&mut line)? {
        if line.starts_with(b"TRACE ") {
            (trace, within) = (Trace::default(), line.starts_with(b"TRACE START"));
        } else if within && line.contains_str(" -> ") && line.starts_with(b" ") {
            return Err(document.unreadable("Xdebug's trace for people: have it written with xdebug.trace_format=1"));
        } else if within && !trace.event(&line, calls, sink)? {
            document.malformed("expected a level, a number, a kind, a time and a name between tabs")?;
        }
    }
    document.ends(!within, "TRACE END")
}

impl Trace {
    /// Takes a line; `false` if it is of another form.
    fn event(&mut self, line: &[u8], calls: bool, sink: &mut Sink) -> Result<bool, Error> {
        let fields: Vec<&[u8]> = line.split_str("\t").collect();
        // The last line has a time and memory alone, and a line of a returned value no time.
        let kind = fields.get(2).copied().unwrap_or_default();
        if line.is_empty() || kind == b"R" || kind == b"A" {
            return Ok(true);
        }
        let level = fields.first().and_then(|level| text::number(level));
        let time = fields.get(3).and_then(|time| text::scaled(time, 6));
        let (Some(time), true) = (time, level.is_some() || kind.is_empty()) else { return Ok(false) };
        let passed = time.saturating_sub(self.last.unwrap_or(time));
        self.last = Some(time);
        if !calls {
            self.add(passed, sink)?;
        }
        match (kind, level.and_then(|level| usize::try_from(level).ok())) {
            (b"0", Some(level @ 1..=DEEPEST)) => {
                let Some(name) = fields.get(5).filter(|name| !name.is_empty()) else { return Ok(false) };
                self.open.truncate(level - 1);
                self.open.push(stack::frame(name, sink));
                if calls {
                    self.add(Weight::ONE, sink)?;
                }
            }
            (b"1", Some(level @ 1..)) => self.open.truncate(level - 1),
            (b"", _) => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add(&self, weight: Weight, sink: &mut Sink) -> Result<(), Error> {
        let mut stack = Stack::default();
        stack.extend(&self.open);
        stack.add(weight, sink)
    }
}
