//! Output of `jfr print --json`: the events of a Java Flight Recorder recording.
//!
//! ```text
//! {"recording":{"events":[{"type":"jdk.ThreadSleep","values":{"startTime":"2026-11-23T23:49:17.7Z",
//!  "duration":"PT0.03S","eventThread":{"javaName":"main","osThreadId":7},"stackTrace":{"truncated":false,
//!  "frames":[{"method":{"type":{"name":"Small"},"name":"wait"},"lineNumber":7,"type":"Interpreted"}]}}}]}}
//! ```
//! Events, weights, labels and threads are those of the format `jfr`. Stacks end after `--stack-depth` frames (5 unless it
//! is given), of which nothing in the document tells: if no stack has more than 5, those that have 5 begin with
//! `[truncated]`.

use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::formats::jfr::{kind_suffix, printed_weight};
use crate::collapse::formats::jfr_print::samples::{Printed, PrintedEvent, Samples};
use crate::collapse::formats::jfr_print::values::{parse_amount, parse_iso_duration, parse_iso_time};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_STACK_LENGTH, intern_frame};
use crate::profile::FrameId;
use crate::symbol_name::java::class_name;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "jfr-json",
    description: "jfr print --json (Java Flight Recorder)",
    tested_with: "JDK 17 and 25",
    has_times: true,
    has_labels: true,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get(b"recording").is_some_and(|recording| recording.get(b"events").is_some())
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let options = document.options;
    let mut samples = Samples::new(options, sink);
    let mut malformed = 0;
    let recording = root.get(b"recording");
    for item in recording.iter().flat_map(|recording| recording.get_items(b"events")) {
        let Some(values) = item.get(b"values") else {
            malformed += 1;
            continue;
        };
        let mut event = PrintedEvent::new(&item.get_string(b"type"));
        event.time = parse_iso_time(&values.get_string(b"startTime"));
        read_thread(values, &mut event);
        read_stack(values, &mut event, options, sink);
        if let Some(weight) = printed_weight(&event.name).0.and_then(|field| values.get(field.as_bytes())) {
            let text = weight.as_label().unwrap_or_default();
            event.weight = parse_iso_duration(&text).or_else(|| parse_amount(&text));
            malformed += u64::from(event.weight.is_none());
        }
        for label in &options.labels {
            let value = values.get(label).map(describe).unwrap_or_default();
            event.labels.push((label.clone(), value));
        }
        samples.add(event, Printed::Exact)?;
    }
    samples.mark_cut_stacks();
    samples.finish(document, sink)?;
    document.report_problems(malformed, "event", "malformed: its values or its weight are missing")
}

/// Sets the thread of an event.
fn read_thread(values: Value<'_>, event: &mut PrintedEvent) {
    let thread = values.get(b"eventThread").or_else(|| values.get(b"sampledThread"));
    let Some(thread) = thread.filter(|thread| thread.is_object()) else { return };
    let java_name = thread.get_string(b"javaName");
    event.thread = if java_name.is_empty() { thread.get_string(b"osName") } else { java_name }.into_owned();
    event.tid = thread.get_integer(b"osThreadId").and_then(|tid| u64::try_from(tid).ok());
}

/// Sets the stack of an event.
fn read_stack(values: Value<'_>, event: &mut PrintedEvent, options: &Options, sink: &mut Sink) {
    let Some(stack) = values.get(b"stackTrace") else { return };
    (event.has_stack_field, event.has_stack) = (true, stack.is_object());
    event.is_truncated = stack.get(b"truncated").is_some_and(Value::is_true);
    let frames = stack.get_items(b"frames").take(MAX_STACK_LENGTH);
    event.frames = frames.map(|frame| read_frame(frame, options, sink)).collect();
}

fn read_frame(frame: Value<'_>, options: &Options, sink: &mut Sink) -> FrameId {
    let method = frame.get(b"method");
    let class = method.and_then(|method| method.get(b"type")).map(|class| class_name(&class.get_string(b"name")));
    let mut name = class.unwrap_or_default();
    if !name.is_empty() {
        name.push(b'.');
    }
    name.extend_from_slice(&method.map(|method| method.get_string(b"name")).unwrap_or_default());
    if let Some(line) = frame.get_integer(b"lineNumber").filter(|line| options.srcline && *line > 0 && !name.is_empty())
    {
        name.extend_from_slice(format!(":{line}").as_bytes());
    }
    name.extend_from_slice(kind_suffix(&frame.get_string(b"type"), options));
    intern_frame(&name, sink)
}

/// Returns the value of a label: a text, a number, or the name of a class or a thread.
fn describe(value: Value<'_>) -> Vec<u8> {
    if let Some(text) = value.as_label() {
        return text.into_owned();
    }
    let java_name = value.get_string(b"javaName");
    if java_name.is_empty() { class_name(&value.get_string(b"name")) } else { java_name.into_owned() }
}
