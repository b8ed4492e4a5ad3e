//! `py-spy dump`: the stacks of all threads of a Python process at one moment, leaf first.
//!
//! ```text
//! Process 7: python3 a.py
//! Python v3.11.7 (/usr/bin/python3.11)
//!
//! Thread 7 (active+gil): "MainThread"
//!     work (a.py:3)
//!     <module> (a.py:9)
//! ```
//! Each thread has weight 1, and its name as its root frame. All threads count, unless `--event` names a state:
//! `active`, `active+gil` or `idle`. Files and lines are left out unless `--srcline` asks for them; so are arguments and
//! locals (`--locals`).

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::thread_name;
use crate::collapse::filter::args::EventChoice;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, indentation, parse_number, split_once, split_word};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "py-spy",
    description: "py-spy dump (Python)",
    tested_with: "py-spy 0.4",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let mut lines = first_lines(head);
    lines.any(|line| parse_thread(line).is_some())
        && lines.next().is_some_and(|line| indentation(line) == 4 && parse_frame(line, &Options::default()).is_some())
}

/// A thread's heading: its ID, its state and its name.
struct Thread<'a> {
    id: &'a [u8],
    state: &'a [u8],
    name: &'a [u8],
}

/// Parses `Thread 7 (active+gil): "MainThread"`; the name may be missing, and the ID may be hexadecimal.
fn parse_thread(line: &[u8]) -> Option<Thread<'_>> {
    let (id, rest) = split_word(line.strip_prefix(b"Thread ")?);
    let (state, name) = split_once(rest.strip_prefix(b"(")?, ")")?;
    let digits = id.strip_prefix(b"0x").unwrap_or(id);
    let is_state = state.starts_with(b"idle") || state.starts_with(b"active");
    let is_id = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let name = name.strip_prefix(b":").map_or(name, <[u8]>::trim_ascii).trim_with(|byte| byte == '"');
    (is_state && is_id).then_some(Thread { id, state, name })
}

/// Returns true if a text begins with a process and the version of Python.
pub(super) fn begins(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let (process, version) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    process.starts_with(b"Process ") && version.starts_with(b"Python v")
}

/// Parses `    work (a.py:3)`.
fn parse_frame(line: &[u8], options: &Options) -> Option<Vec<u8>> {
    let (name, place) = line.trim_ascii().strip_suffix(b")")?.rsplit_once_str(" (")?;
    let (_, number) = place.rsplit_once_str(":").unwrap_or((place, b"0"));
    parse_number(number)?;
    Some(if options.srcline { [name, b":", place].concat() } else { name.to_vec() })
}

/// Returns true for a blank line, the version of Python, and the arguments and locals of a function.
fn is_detail(line: &[u8]) -> bool {
    line.is_empty() || line.starts_with(b"Python v") || indentation(line) > 4
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    count_threads(document);
    let (mut line, mut stack, mut process) = (Vec::new(), Stack::default(), Vec::new());
    let mut thread: Option<(Vec<u8>, Vec<u8>)> = None;
    loop {
        let more = document.read_line(&mut line)?;
        if (!more || line.is_empty() || parse_thread(&line).is_some())
            && let Some((state, name)) = thread.take()
        {
            add_thread(&mut stack, &state, &name, document, sink)?;
        }
        if !more {
            return Ok(());
        }
        if let Some(Thread { id, state, name }) = parse_thread(&line) {
            let name = thread_name(name, &process, id, document.options);
            thread = Some((state.to_vec(), name));
        } else if let Some(rest) = line.strip_prefix(b"Process ") {
            process = split_once(rest, ":").map_or(rest, |(pid, _)| pid).to_vec();
        } else if indentation(&line) == 4 && thread.is_some() {
            match parse_frame(&line, document.options) {
                Some(frame) => stack.push(&frame, sink),
                None => document.report_malformed("expected a function and its file")?,
            }
        } else if !is_detail(&line) {
            document.report_malformed("expected a process, a thread or a function")?;
        }
    }
}

/// Makes all threads count, in any state, unless `--event` names one.
pub(super) fn count_threads(document: &mut Document<'_>) {
    document.set_unit("threads");
    if document.options.event == EventChoice::First {
        document.events = EventFilter::new(EventChoice::All);
    }
}

/// Adds the stack of a thread, leaf first, and clears it. A thread without a stack does not count.
pub(super) fn add_thread(
    stack: &mut Stack,
    state: &[u8],
    name: &[u8],
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    if stack.is_empty() || !document.events.accept(state) {
        stack.clear();
        return Ok(());
    }
    document.events.add_weight(Weight::ONE);
    stack.push(name, sink);
    stack.add_leaf_first(Weight::ONE, sink)
}
