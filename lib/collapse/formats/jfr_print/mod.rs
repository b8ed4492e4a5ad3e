//! Output of `jfr print`: the events of a Java Flight Recorder recording as text.
//!
//! ```text
//! jdk.ExecutionSample {
//!   startTime = 23:49:17.712 (2026-11-23)
//!   sampledThread = "main" (javaThreadId = 1)
//!   state = "STATE_RUNNABLE"
//!   stackTrace = [
//!     Small.fib(int) line: 4
//!     Small.main(String[]) line: 11
//!     ...
//!   ]
//! }
//! ```
//! Events, weights, labels and threads are those of the format `jfr`. The text has less than the recording: stacks end
//! after `--stack-depth` frames (5 unless it is given) with `...`, which becomes `[truncated]`; sizes and durations are
//! rounded; frames of hidden classes are left out. A full stack of exactly that depth has the dots, too. JDK 17 and older
//! print the time of the day only.

pub(super) mod samples;
pub(super) mod values;

use bstr::ByteSlice as _;

use self::samples::{Printed, PrintedEvent, Samples};
use self::values::{parse_amount, parse_time};
use super::jfr::printed_weight;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_once};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_STACK_LENGTH, intern_frame};
use crate::profile::FrameId;
use crate::symbol_name::java::class_name;

pub(super) static FORMAT: Format = Format {
    name: "jfr-print",
    description: "jfr print (Java Flight Recorder as text)",
    tested_with: "JDK 17 and 25",
    has_times: true,
    has_labels: true,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    // Events may contain whole thread dumps, which other formats recognize.
    reader: FormatReader::Bytes(read),
};

/// Most lines before the first event: the JVM may report options of its environment, such as `JAVA_TOOL_OPTIONS`.
const MAX_NOTICES: usize = 16;

/// Returns true if one of the first lines begins an event, and its time follows.
fn recognizes(head: &[u8]) -> bool {
    let lines: Vec<&[u8]> =
        first_lines(head).filter(|line| !line.trim_ascii().is_empty()).take(MAX_NOTICES + 2).collect();
    lines.windows(2).any(|pair| event_name(pair[0]).is_some() && pair[1].starts_with(b"  startTime = "))
}

/// Returns the name of `jdk.ExecutionSample {`.
fn event_name(line: &[u8]) -> Option<&[u8]> {
    let name = line.strip_suffix(b" {")?;
    let is_name = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._$".contains(byte));
    (is_name && name.contains(&b'.')).then_some(name)
}

/// The part of an event that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Fields,
    Stack,
    /// A structure or a list at this depth.
    Nested(usize),
    /// A text of several lines.
    Text,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut samples = Samples::new(document.options, sink);
    let (mut line, mut place, mut event) = (Vec::new(), Place::Outside, PrintedEvent::default());
    let mut has_begun = false;
    while document.read_line(&mut line)? {
        let text = line.trim_ascii();
        place = match place {
            Place::Outside => match event_name(&line) {
                Some(name) => {
                    has_begun = true;
                    event = PrintedEvent::new(name);
                    Place::Fields
                }
                None if text.is_empty() => Place::Outside,
                None if !has_begun => {
                    document.skip_line();
                    Place::Outside
                }
                None => {
                    document.report_malformed("expected the name of an event and {")?;
                    Place::Outside
                }
            },
            Place::Text if text.ends_with(b"\"") => {
                document.set_in_text(false);
                Place::Fields
            }
            Place::Text => Place::Text,
            _ if line == b"}" => {
                samples.add(std::mem::take(&mut event), Printed::Rounded)?;
                Place::Outside
            }
            Place::Fields => parse_field(text, &mut event, document)?,
            Place::Stack if text == b"]" => Place::Fields,
            Place::Stack if !is_frame(text) => {
                document.report_malformed("expected a method")?;
                Place::Stack
            }
            Place::Stack => {
                add_frame(text, &mut event, document.options, sink);
                Place::Stack
            }
            Place::Nested(depth) => match nesting(text) {
                0 => Place::Nested(depth),
                1 => Place::Nested(depth + 1),
                _ if depth > 1 => Place::Nested(depth - 1),
                _ => Place::Fields,
            },
        };
    }
    samples.finish(document, sink)?;
    document.check_end(place == Place::Outside, "its last event does")
}

/// Returns 1 for a line that begins a structure or a list, -1 for one that ends it.
fn nesting(text: &[u8]) -> i32 {
    match text {
        [b'}' | b']', ..] => -1,
        _ if text.ends_with(b"{") || text.ends_with(b"[") => 1,
        _ => 0,
    }
}

/// Parses a field of an event: `duration = 30.1 ms`.
fn parse_field(text: &[u8], event: &mut PrintedEvent, document: &mut Document<'_>) -> Result<Place, Error> {
    let Some((key, value)) = split_once(text, " = ") else {
        document.skip_line();
        return Ok(Place::Fields);
    };
    match (key, value) {
        (b"stackTrace", _) => {
            (event.has_stack_field, event.has_stack) = (true, true);
            return Ok(if value == b"[" { Place::Stack } else { Place::Fields });
        }
        (_, b"[" | b"{") => return Ok(Place::Nested(1)),
        // Such as a thread dump.
        (_, [b'"', text @ ..]) if !text.contains(&b'"') => {
            document.set_in_text(true);
            return Ok(Place::Text);
        }
        (b"startTime", _) => event.time = parse_time(value),
        (b"eventThread" | b"sampledThread", _) => (event.thread, event.tid) = parse_thread(value),
        _ => {}
    }
    if printed_weight(&event.name).0.is_some_and(|field| field.as_bytes() == key) {
        event.weight = parse_amount(value);
        if event.weight.is_none() {
            document.report_malformed("expected a number, a size or a duration")?;
        }
    }
    if document.options.labels.iter().any(|label| label == key) {
        event.labels.push((key.to_vec(), label_value(value)));
    }
    Ok(Place::Fields)
}

/// Returns the name and the ID of `"worker-1" (javaThreadId = 15)`.
fn parse_thread(value: &[u8]) -> (Vec<u8>, Option<u64>) {
    let Some((name, ids)) = value.strip_prefix(b"\"").and_then(|rest| rest.rsplit_once_str("\" (")) else {
        return (value.trim_with(|character| character == '"').as_bytes().to_vec(), None);
    };
    let number = ids.split_once_str("hreadId = ").map(|(_, number)| number);
    let digits = number.map(|number| &number[..number.iter().take_while(|byte| byte.is_ascii_digit()).count()]);
    (name.to_vec(), digits.and_then(parse_number))
}

/// Returns a value without quotes, and without the class loader of a class: `byte[] (classLoader = bootstrap)`.
fn label_value(value: &[u8]) -> Vec<u8> {
    let value = split_once(value, " (classLoader = ").map_or(value, |(class, _)| class);
    let inner = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    inner.unwrap_or(value).to_vec()
}

/// Returns true for `Small.fib(int) line: 4`, `Small.fib(int)` and the dots that end a stack.
fn is_frame(text: &[u8]) -> bool {
    let method = text.rsplit_once_str(" line: ").map_or(text, |(method, _)| method);
    text == b"..." || method.ends_with(b")") && method.contains(&b'(')
}

/// Adds the frame `Small.fib(int) line: 4`, or the dots that end a stack.
fn add_frame(text: &[u8], event: &mut PrintedEvent, options: &Options, sink: &mut Sink) {
    if text == b"..." {
        event.is_truncated = true;
    } else if event.frames.len() < MAX_STACK_LENGTH {
        event.frames.push(parse_frame(text, options, sink));
    }
}

fn parse_frame(text: &[u8], options: &Options, sink: &mut Sink) -> FrameId {
    let (method, line) = text.rsplit_once_str(" line: ").unwrap_or((text, b""));
    let method = match method.strip_suffix(b")").and_then(|_| method.rfind_byte(b'(')) {
        Some(arguments) => &method[..arguments],
        None => method,
    };
    let mut name = match method.rsplit_once_str(".") {
        Some((b"", function)) => function.to_vec(),
        Some((class, function)) => [&class_name(class)[..], b".", function].concat(),
        None => method.to_vec(),
    };
    if options.srcline && parse_number(line).is_some() && !name.is_empty() {
        name.extend_from_slice(&[b":", line].concat());
    }
    intern_frame(&name, sink)
}
