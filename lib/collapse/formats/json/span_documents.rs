//! OpenTelemetry traces as files of spans: JSON, one document or one in each line, as the collector's file exporter writes them,
//! or protobuf, one message or several after their lengths.
//!
//! ```text
//! {"resourceSpans":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"12"}}]},"scopeSpans":[{"spans":[
//!  {"name":"GET /","startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000500000000",
//!   "attributes":[{"key":"thread.id","value":{"intValue":"13"}}]}]}]}]}
//! ```
//! A span belongs to the thread that its attribute `thread.id` names. Times are in nanoseconds since 1970. Specification:
//! <https://opentelemetry.io/docs/specs/otlp/>.

use std::collections::BTreeSet;

use super::otlp::parse_attribute;
use super::spans::parse_number;
use super::start::root_matches;
use super::tape::Tape;
use super::value::Value;
use crate::Error;
use crate::collapse::spans::Span;
use crate::diagnostics::{Diagnostics, plural, printable};
use crate::markers::UNKNOWN;
use crate::otlp::{Dictionary, PROCESS_ID, THREAD_ID, TraceSpan, parse_traces};

/// The number of processes that a message names at most.
const MAX_NAMED: usize = 4;

/// The tag of the first field of a request: a message.
const FIRST_TAG: u8 = 0x0a;

/// Returns true if a file begins like a protobuf message, or like one after its length of four bytes: text begins with neither, or
/// contains no control characters.
pub(super) fn is_protobuf(head: &[u8]) -> bool {
    let is_length = head.first().is_some_and(|byte| *byte < 0x20 && !byte.is_ascii_whitespace());
    is_length && head.get(4) == Some(&FIRST_TAG)
        || head.first() == Some(&FIRST_TAG)
            && head.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
}

/// Returns true if the first document of a file is a request to export traces.
pub(super) fn is_trace_document(head: &[u8]) -> bool {
    root_matches(head, |root| root.get(b"resourceSpans").is_some())
}

/// The spans of traces, and what is left out.
pub(super) struct TraceFile {
    name: String,
    spans: Vec<Span>,
    without_thread: u64,
    /// Spans whose thread has no number of at most 32 bits, and one such thread.
    other_threads: u64,
    other_thread: Vec<u8>,
    /// The processes of the spans without a thread.
    processes: BTreeSet<Vec<u8>>,
    without_times: u64,
}

impl TraceFile {
    /// Creates a file without spans; `name` is that for messages.
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            spans: Vec::new(),
            without_thread: 0,
            other_threads: 0,
            other_thread: Vec::new(),
            processes: BTreeSet::new(),
            without_times: 0,
        }
    }

    /// Adds the spans of protobuf messages.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if a message is damaged.
    pub(super) fn add_protobuf(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.first() == Some(&FIRST_TAG)
            && let Some(spans) = parse_traces(bytes)
        {
            spans.into_iter().for_each(|span| self.add(span));
            return Ok(());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let message = rest
                .split_first_chunk::<4>()
                .and_then(|(length, after)| after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?));
            let spans = message.and_then(|(message, after)| Some((parse_traces(message)?, after)));
            let Some((spans, after)) = spans else {
                return Err(self.unreadable("OpenTelemetry traces that are truncated or damaged".to_owned()));
            };
            spans.into_iter().for_each(|span| self.add(span));
            rest = after;
        }
        Ok(())
    }

    /// Adds the spans of JSON documents.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if one is malformed, cut short or no request to export traces.
    pub(super) fn add_documents(&mut self, text: &[u8]) -> Result<(), Error> {
        let mut start = 0;
        loop {
            start += text[start..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if start == text.len() {
                return Ok(());
            }
            let line = memchr::memchr_iter(b'\n', &text[..start]).count() + 1;
            let tape = match Tape::parse(&text[start..]) {
                Ok(tape) if !tape.is_truncated => tape,
                Ok(_) => return Err(self.unreadable(format!("JSON that begins at line {line} is cut short"))),
                Err(error) => {
                    return Err(self.unreadable(format!("malformed JSON after line {line}: {}", error.message)));
                }
            };
            let root = Value::root(&tape).filter(|root| root.get(b"resourceSpans").is_some());
            let Some(root) = root else {
                return Err(self.unreadable(format!("line {line}: expected an object with resourceSpans")));
            };
            self.add_document(root);
            start += tape.end.max(1);
        }
    }

    fn add_document(&mut self, root: Value<'_>) {
        for resource in root.get_items(b"resourceSpans") {
            let attributes = resource.get_path([b"resource", b"attributes"]);
            let process = attributes.and_then(|attributes| find_attribute(attributes, PROCESS_ID));
            for span in resource.get_items(b"scopeSpans").flat_map(|scope| scope.get_items(b"spans")) {
                let [start, end] = [&b"startTimeUnixNano"[..], b"endTimeUnixNano"]
                    .map(|key| span.get(key).and_then(parse_time).unwrap_or(0));
                self.add(TraceSpan {
                    name: span.get_string(b"name").into_owned(),
                    thread: span.get(b"attributes").and_then(|attributes| find_attribute(attributes, THREAD_ID)),
                    process: process.clone(),
                    start,
                    end,
                });
            }
        }
    }

    fn add(&mut self, TraceSpan { name, thread, process, start, end }: TraceSpan) {
        let Some(thread) = thread else {
            self.without_thread += 1;
            if self.processes.len() <= MAX_NAMED {
                self.processes.extend(process);
            }
            return;
        };
        let Some(tid) = parse_id(&thread) else {
            self.other_threads += 1;
            self.other_thread = thread;
            return;
        };
        if start == 0 || start > end {
            self.without_times += 1;
            return;
        }
        let name = if name.is_empty() { UNKNOWN.to_vec() } else { name };
        self.spans.push(Span { name, tid, pid: process.and_then(|process| parse_id(&process)), start, end });
    }

    /// True if spans are left out.
    pub(super) fn has_left_out(&self) -> bool {
        self.without_thread + self.other_threads + self.without_times > 0
    }

    fn warn(&self, diagnostics: &mut Diagnostics, count: u64, why: &str) {
        diagnostics.warn(&format!("{}: {} left out: {why}", self.name, plural(count, "span")));
    }

    /// Returns the spans. Warns of those that are left out.
    pub(super) fn into_spans(self, diagnostics: &mut Diagnostics) -> Vec<Span> {
        if self.without_thread > 0 {
            let why = "without the attribute thread.id, the thread id that gettid returns";
            self.warn(diagnostics, self.without_thread, &format!("{why}{}", self.name_processes()));
        }
        if self.other_threads > 0 {
            let thread = printable(&String::from_utf8_lossy(&self.other_thread));
            let why = format!(
                "their attribute thread.id is not the thread id that gettid returns, but another, such as that of pthread_self: \
                 {thread}"
            );
            self.warn(diagnostics, self.other_threads, &why);
        }
        if self.without_times > 0 {
            self.warn(diagnostics, self.without_times, "without a start, or with an end before it");
        }
        self.spans
    }

    /// Returns the processes whose spans have no thread, as part of a message.
    fn name_processes(&self) -> String {
        if self.processes.is_empty() {
            return String::new();
        }
        let names = self.processes.iter().take(MAX_NAMED).map(|process| String::from_utf8_lossy(process).into_owned());
        let more = if self.processes.len() > MAX_NAMED { ", …" } else { "" };
        format!(" (process.pid {}{more})", names.collect::<Vec<_>>().join(", "))
    }

    fn unreadable(&self, what: String) -> Error {
        Error::Unreadable { name: self.name.clone(), what }
    }
}

/// Returns the value of the attribute with this key, as text.
fn find_attribute(attributes: Value<'_>, key: &[u8]) -> Option<Vec<u8>> {
    let mut attributes = attributes.items().filter_map(|attribute| parse_attribute(attribute, &Dictionary::default()));
    attributes.find(|(other, _)| other == key).map(|(_, value)| value)
}

fn parse_id(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses a time exactly. It is a string or a number, which may have an exponent.
fn parse_time(value: Value<'_>) -> Option<u64> {
    parse_number(value).or_else(|| u64::try_from(value.as_millionths()? / 1_000_000).ok())
}
