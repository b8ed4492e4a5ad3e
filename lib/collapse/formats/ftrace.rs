//! Text of the kernel's ftrace (`trace`, `trace_pipe`), of `trace-cmd report` and of Android's systrace.
//!
//! ```text
//!           <idle>-0     [001] d..3.  5501.123456: sched_switch: prev_comm=swapper/1 …
//!           <idle>-0     [001] d..4.  5501.123460: <stack trace>
//!  => schedule
//!  => do_idle
//! ```
//! An event with a kernel stack is a sample of weight 1; the thread's name is the root frame. Of several events, the
//! first with a stack counts unless `--event` names another. The function tracer's lines (`FUNCTION <-CALLER`) are
//! samples of two frames. The graph of the function_graph tracer is read as a call tree whose calls weigh their own
//! microseconds. Events without a stack are left out.

mod graph;

use std::collections::BTreeMap;

use bstr::ByteSlice as _;

use self::graph::Graphs;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::filter::args::parse_seconds;
use crate::collapse::filter::sample::{SampleInfo, filters_samples};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, most_lines_fit, parse_number, split_once, split_word, strip_offset};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::markers;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "ftrace",
    description: "ftrace text, trace-cmd report, systrace (Linux kernel)",
    tested_with: "Linux 6.18 (tracefs), published files",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    most_lines_fit(head, 70, is_line) && first_lines(head).any(|line| is_event(line) || graph::is_line(line))
}

/// Returns true for `# tracer: nop`, and for `#` alone.
fn is_comment(line: &[u8]) -> bool {
    line.strip_prefix(b"#").is_some_and(|text| text.is_empty() || text.starts_with(b" "))
}

/// True for any line of a trace.
fn is_line(line: &[u8]) -> bool {
    is_event(line)
        || is_comment(line)
        || parse_stack_frame(line).is_some()
        || graph::is_line(line)
        || graph::is_switch(line)
}

/// Returns true if a text has the heading of ftrace, or a stack as only ftrace writes it.
pub(super) fn has_stacks(head: &[u8]) -> bool {
    head.contains_str("<stack trace") || head.contains_str("# tracer: ")
}

/// The fields of an event's line.
#[derive(Debug)]
struct EventLine<'a> {
    comm: &'a [u8],
    pid: u32,
    cpu: u32,
    /// The time of the event, in nanoseconds.
    time: u64,
    name: &'a [u8],
    /// The text after the name.
    rest: &'a [u8],
}

/// Returns true for the line of an event: `COMM-PID [CPU] FLAGS TIME: EVENT: …`.
pub(super) fn is_event(line: &[u8]) -> bool {
    parse_event(line).is_some()
}

fn parse_event(line: &[u8]) -> Option<EventLine<'_>> {
    let (before, after) = find_cpu(line)?;
    // The thread group's ID may be between the thread and the CPU.
    let before = before.trim_ascii();
    let before = match before.strip_suffix(b")") {
        Some(inner) => before[..memchr::memrchr(b'(', inner)?].trim_ascii(),
        None => before,
    };
    // perf script writes `COMM -1/-1` for some threads.
    let dash = memchr::memrchr(b'-', before).filter(|dash| !before[..*dash].ends_with(b"/"))?;
    let pid = parse_number(&before[dash + 1..])?.try_into().ok()?;
    let (cpu, mut rest) = split_once(after, "]")?;
    let mut word;
    loop {
        (word, rest) = split_word(rest);
        if let Some(time) = word.strip_suffix(b":").and_then(parse_seconds) {
            let (name, rest) = match split_once(rest, ":") {
                Some((name, rest)) if !name.contains(&b' ') && !name.is_empty() => (name, rest),
                _ => (&b""[..], rest),
            };
            let cpu = parse_number(cpu)?.try_into().ok()?;
            return Some(EventLine { comm: &before[..dash], pid, cpu, time, name, rest: rest.trim_ascii() });
        }
        // Flags of up to five characters come before the time.
        (!word.is_empty() && word.len() <= 6).then_some(())?;
    }
}

/// Splits a line at the bracket before the number of a CPU.
fn find_cpu(line: &[u8]) -> Option<(&[u8], &[u8])> {
    memchr::memchr_iter(b'[', line).find_map(|bracket| {
        let rest = &line[bracket + 1..];
        let number = &rest[..rest.iter().take(6).position(|byte| *byte == b']')?];
        let is_cpu = number.len() >= 3 && parse_number(number).is_some();
        is_cpu.then(|| (&line[..bracket], &line[bracket + 1..]))
    })
}

/// Returns the function of a stack's line: ` => schedule`, or `=> schedule+0x12 (ffffffff81a)`.
fn parse_stack_frame(line: &[u8]) -> Option<&[u8]> {
    line.trim_ascii().strip_prefix(b"=> ").map(|name| split_word(name).0)
}

/// The last event of a CPU, whose stack may follow.
#[derive(Default)]
struct Pending {
    comm: Vec<u8>,
    pid: u32,
    cpu: u32,
    time: u64,
    name: Vec<u8>,
    stack: Stack,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut graphs) = (Vec::new(), Graphs::default());
    // Between an event and its stack there may be events of other CPUs.
    let (mut pending, mut in_stack) = (BTreeMap::<u32, Pending>::new(), None);
    let mut samples = TimedSamples::new(document.options);
    while document.read_line(&mut line)? {
        if line.trim_ascii().is_empty() || is_comment(&line) || line.starts_with(b"CPU ") || line.starts_with(b"cpus=")
        {
            continue;
        }
        if let Some(event) = parse_event(&line) {
            if graphs.add_event(event.cpu, event.name, event.rest, sink)? {
                continue;
            }
            let is_stack =
                event.name == b"kernel_stack" || event.name.is_empty() && event.rest.starts_with(b"<stack trace");
            let pending = pending.entry(event.cpu).or_default();
            if is_stack {
                in_stack = Some(event.cpu);
                continue;
            }
            in_stack = None;
            pending.finish(&mut samples, document, sink)?;
            pending.begin(&event, document.options, sink);
        } else if let Some(function) = parse_stack_frame(&line) {
            match in_stack.and_then(|cpu| pending.get_mut(&cpu)) {
                Some(pending) => pending.stack.push(&function_name(function, document.options), sink),
                None => document.report_malformed("the function belongs to no stack")?,
            }
        } else if !graphs.add_line(&line, sink)? {
            document.report_malformed("expected an event or a function of a stack")?;
        }
    }
    pending.values_mut().try_for_each(|pending| pending.finish(&mut samples, document, sink))?;
    if graphs.has_calls() {
        if filters_samples(document.options) {
            return Err(Error::Invalid("calls of function_graph cannot be selected by time, thread or CPU".to_owned()));
        }
        document.set_unit("microseconds");
    }
    Ok(())
}

fn function_name(name: &[u8], options: &Options) -> Vec<u8> {
    let name = strip_offset(name);
    if options.kernel { [name, markers::KERNEL].concat() } else { name.to_vec() }
}

impl Pending {
    fn begin(&mut self, event: &EventLine<'_>, options: &Options, sink: &mut Sink) {
        self.comm = event.comm.to_vec();
        (self.pid, self.cpu, self.time) = (event.pid, event.cpu, event.time);
        self.name = event.name.to_vec();
        // The function tracer: `FUNCTION <-CALLER`. trace-cmd prints `function: FUNCTION`.
        let call = split_once(event.rest, " <-").or_else(|| split_once(event.rest, " <--"));
        if let Some((function, caller)) = call.filter(|_| event.name.is_empty() || event.name == b"function") {
            self.name = b"function".to_vec();
            self.stack.push(&function_name(function.trim(), options), sink);
            self.stack.push(&function_name(caller.trim_start_with(|byte| byte == '-').trim(), options), sink);
        }
    }

    /// Adds the event if it has a stack.
    fn finish(
        &mut self,
        samples: &mut TimedSamples,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        if self.stack.is_empty() {
            return Ok(());
        }
        let info =
            SampleInfo { time: Some(self.time), comm: &self.comm, pid: None, tid: Some(self.pid), cpu: Some(self.cpu) };
        if document.events.accept(&self.name) && samples.accept(&info, sink)? {
            document.events.add_weight(Weight::ONE);
            let mut name = self.comm.replace(" ", "_");
            if document.options.pid || document.options.tid {
                name.extend_from_slice(format!("-{}", self.pid).as_bytes());
            }
            let root = sink.intern(if name.is_empty() { markers::UNKNOWN } else { &name });
            let frames: Vec<_> = self.stack.frames().iter().rev().copied().collect();
            let sample =
                TimedSample { info, roots: &[root], is_truncated: false, frames: &frames, weight: Weight::ONE };
            samples.add(&sample, sink)?;
        }
        self.stack.clear();
        Ok(())
    }
}
