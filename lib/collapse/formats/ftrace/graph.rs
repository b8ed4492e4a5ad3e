//! The graph of the function_graph tracer: for each CPU, the calls of functions and their durations.
//!
//! ```text
//!  1)               |  do_idle() {
//!  1)   0.123 us    |    tick_nohz_stop();
//!  1)   2.345 us    |  } /* do_idle */
//! ```
//! `trace-cmd report` prints the same after `funcgraph_entry:` and `funcgraph_exit:`.

use std::collections::BTreeMap;

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::line_helpers::{parse_number, parse_scaled, split_once, split_word};
use crate::collapse::sink::Sink;
use crate::collapse::stack::MAX_SHARED_DEPTH;
use crate::profile::{FrameId, Weight, Weights};

/// The open calls of all CPUs.
#[derive(Default)]
pub(super) struct Graphs {
    cpus: BTreeMap<u32, Vec<Call>>,
    /// The open calls of threads that do not run.
    waiting: BTreeMap<Vec<u8>, Vec<Call>>,
    has_calls: bool,
}

/// An open call.
struct Call {
    frame: FrameId,
    /// The time of its callees.
    inner: Weight,
}

/// A part of a graph: the end of a call if there is no function, and its duration, if the line has one.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    Call(&'a [u8], Weight),
    Enter(&'a [u8]),
    Leave(Weight),
    /// A comment, or a switch to another thread.
    Other,
}

/// Returns true for a line of a graph.
pub(super) fn is_line(line: &[u8]) -> bool {
    parse_line(line).is_some()
}

/// Returns true for a line of a switch between threads, or of dashes around it.
pub(super) fn is_switch(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"------") && line.iter().all(|byte| *byte == b'-') || parse_switch(line).is_some()
}

/// Returns the CPU and the step of a line: ` 1)  sshd-12  |   0.123 us    |  f();`.
fn parse_line(line: &[u8]) -> Option<(u32, Step<'_>)> {
    // A time may come first: `12.345678 |   1)`.
    let line = match split_once(line, " |  ") {
        Some((time, rest)) if super::parse_seconds(time.trim_ascii()).is_some() => rest,
        _ => line,
    };
    let (cpu, rest) = split_once(line.trim_ascii_start(), ")")?;
    let cpu = parse_number(cpu)?.try_into().ok()?;
    let bar = rest.rfind("|  ").or_else(|| rest.rfind("| "))?;
    let before = &rest[..bar];
    let duration = before.rsplit(|byte| *byte == b'|').next().unwrap_or(before);
    Some((cpu, parse_step(duration, &rest[bar + 1..])?))
}

/// Parses a duration, such as `+ 12.345 us`, and a call.
fn parse_step<'a>(duration: &[u8], call: &'a [u8]) -> Option<Step<'a>> {
    let duration = duration.trim_ascii().trim_start_with(|byte| "+!#*@$ ".contains(byte));
    let (number, unit) = split_word(duration);
    let duration = if unit == b"us" { parse_scaled(number, 0) } else { None };
    let call = call.trim_ascii();
    if call.starts_with(b"}") {
        return duration.map(Step::Leave);
    }
    if call.starts_with(b"/*") || call.starts_with(b"=>") || call.is_empty() {
        return Some(Step::Other);
    }
    let (name, rest) = split_once(call, "(")?;
    let name = name.trim_ascii();
    if rest.ends_with(b"{") || rest.contains_str("{ /*") {
        Some(Step::Enter(name))
    } else {
        rest.contains(&b';').then(|| Step::Call(name, duration.unwrap_or_default()))
    }
}

/// Returns the CPU of a switch between threads, and both threads: ` 1)  sshd-12  =>  bash-7 `. Idle threads of all CPUs have
/// one name, `<idle>-0`, and the CPU is a part of theirs.
fn parse_switch(line: &[u8]) -> Option<(u32, Vec<u8>, Vec<u8>)> {
    let (cpu, threads) = split_once(line, ")")?;
    let number = parse_number(cpu.trim_ascii())?;
    let (from, to) = split_once(threads, " => ")?;
    let name = |thread: &[u8]| [thread.trim_ascii(), if thread.contains_str("idle") { cpu } else { b"" }].concat();
    Some((number.try_into().ok()?, name(from), name(to)))
}

impl Graphs {
    /// Adds a line of a graph. Returns false if it is none.
    pub(super) fn add_line(&mut self, line: &[u8], sink: &mut Sink) -> Result<bool, Error> {
        let trimmed = line.trim_ascii();
        // A switch to another thread: `1)  sshd-12  => bash-7`, between lines of dashes.
        if trimmed.starts_with(b"------") {
            return Ok(true);
        }
        if let Some((cpu, from, to)) = parse_switch(trimmed) {
            let calls = self.waiting.remove(&to).unwrap_or_default();
            let before = self.cpus.insert(cpu, calls).unwrap_or_default();
            self.waiting.insert(from, before);
            return Ok(true);
        }
        match parse_line(line) {
            Some((cpu, step)) => self.add_step(cpu, &step, sink).map(|()| true),
            None => Ok(false),
        }
    }

    /// Adds an event that `trace-cmd report` prints. Returns false if it is none of a graph.
    pub(super) fn add_event(&mut self, cpu: u32, name: &[u8], rest: &[u8], sink: &mut Sink) -> Result<bool, Error> {
        if name != b"funcgraph_entry" && name != b"funcgraph_exit" {
            return Ok(false);
        }
        let (duration, call) = split_once(rest, "|").unwrap_or((b"", rest));
        if let Some(step) = parse_step(duration, call) {
            self.add_step(cpu, &step, sink)?;
        }
        Ok(true)
    }

    fn add_step(&mut self, cpu: u32, step: &Step<'_>, sink: &mut Sink) -> Result<(), Error> {
        let calls = self.cpus.entry(cpu).or_default();
        match step {
            Step::Enter(name) => calls.push(Call { frame: sink.intern(name), inner: Weight::ZERO }),
            Step::Call(name, duration) => {
                calls.push(Call { frame: sink.intern(name), inner: Weight::ZERO });
                leave(calls, *duration, sink)?;
            }
            // The trace may begin within the call.
            Step::Leave(duration) => leave(calls, *duration, sink)?,
            Step::Other => return Ok(()),
        }
        self.has_calls = true;
        Ok(())
    }

    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }
}

/// Ends the innermost call and adds its own time.
fn leave(calls: &mut Vec<Call>, duration: Weight, sink: &mut Sink) -> Result<(), Error> {
    let Some(Call { frame, inner }) = calls.pop() else { return Ok(()) };
    let own = duration.saturating_sub(inner);
    if let Some(caller) = calls.last_mut() {
        caller.inner = caller.inner.checked_add(duration).ok_or(Error::Overflow)?;
    }
    if own.is_zero() {
        return Ok(());
    }
    let kept = calls.len().saturating_sub(MAX_SHARED_DEPTH);
    let mut stack: Vec<FrameId> = calls[kept..].iter().map(|call| call.frame).collect();
    stack.push(frame);
    sink.add(&stack, Weights::plain(own))
}

#[cfg(test)]
mod tests {
    use super::{Step, parse_line};
    use crate::profile::Weight;

    fn weight(text: &str) -> Weight {
        Weight::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn parses_calls_with_their_durations() {
        for (line, expected) in [
            (" 1)               |  do_idle() {", Some((1, Step::Enter(b"do_idle")))),
            (" 1)   0.123 us    |    f();", Some((1, Step::Call(b"f", weight("0.123"))))),
            (" 0) + 12.5 us     |  } /* do_idle */", Some((0, Step::Leave(weight("12.5"))))),
            (" 3)  sshd-12  |   0.5 us    |  f();", Some((3, Step::Call(b"f", weight("0.5"))))),
            ("  12.345678 |   1)   0.5 us    |  f();", Some((1, Step::Call(b"f", weight("0.5"))))),
            (" 1)               |  /* sched_switch: x */", Some((1, Step::Other))),
            ("a;b 1", None),
        ] {
            assert_eq!(parse_line(line.as_bytes()), expected, "{line}");
        }
    }
}
