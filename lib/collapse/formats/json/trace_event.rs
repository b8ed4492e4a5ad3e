//! The Trace Event Format of Chrome (`chrome://tracing`), which many other tools write: an array of events, also as the
//! member `traceEvents` of an object. The array may lack its end.
//!
//! ```text
//! [{"ph":"B","pid":1,"tid":1,"ts":0,"name":"main"},
//!  {"ph":"X","pid":1,"tid":1,"ts":10,"dur":60,"name":"work"},
//!  {"ph":"E","pid":1,"tid":1,"ts":100,"name":"main"},
//! ```
//! The weight is the microseconds for which a stack of events is the same on its thread, from begin (`B`), end (`E`)
//! and complete (`X`) events (`slices`). If V8's CPU profiler recorded JavaScript stacks (`ProfileChunk`), those are read as in
//! [`cpuprofile`](super::cpuprofile) (`samples`), and all events are left out, unless `--event slices` asks for them. With several threads, the thread is the root frame.
//! All other types of events are left out. If the trace has `samples` with stacks in `stackFrames`, as Hermes and
//! catapult write them, those are read and all events are left out. Specification:
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

use std::collections::BTreeMap;

use super::call_stack::{CallStack, sort_events};
use super::forest::CYCLIC;
use super::trace_samples;
use super::v8_samples::{PER_NANOSECOND, Samples, nanoseconds};
use super::value::{Items, Value};
use super::{parse, report_too_small};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{read_bytes, thread_name, uses_input_weights};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::parse_number;
use crate::collapse::sink::Sink;
use crate::collapse::slice_filter::SliceFilter;
use crate::diagnostics::plural;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "trace-event",
    description: "trace events (Chrome and others), including V8 samples",
    tested_with: "published files",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(read),
};

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let text = read_bytes(document)?;
    let tape = parse(&text, document)?;
    let is_truncated = tape.is_truncated_in_value;
    let Some(root) = Value::root(&tape) else { return Ok(()) };
    let foreign = match root.get_items(b"samples").next().filter(|_| root.get(b"stackFrames").is_some()) {
        Some(_) => trace_samples::fold_samples(root, document, sink).map(|()| None),
        None => fold_document(root, is_truncated, document, sink),
    }?;
    report_too_small(&tape, document)?;
    match foreign {
        Some(offset) => document.check_nothing_follows(offset as u64, &text[offset..]),
        None => document.check_end(!is_truncated, "the end of its first value"),
    }
}

fn find_events(root: Value<'_>) -> Option<Items<'_>> {
    if root.is_object() { root.get(b"traceEvents").map(Value::items) } else { Some(root.items()) }
}

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    let has_samples = root.get_items(b"samples").any(|sample| sample.get(b"sf").is_some());
    let is_empty = root.is_object() && root.get(b"traceEvents").is_some_and(|events| events.items().next().is_none());
    has_samples || is_empty || find_events(root).is_some_and(|mut events| events.any(is_event))
}

fn is_event(event: Value<'_>) -> bool {
    event.get(b"ph").is_some()
}

/// A process ID and a thread ID, as text.
type ThreadId = (Vec<u8>, Vec<u8>);

/// The events and profiles of a trace.
#[derive(Default)]
struct Trace {
    process_names: BTreeMap<Vec<u8>, Vec<u8>>,
    thread_names: BTreeMap<ThreadId, Vec<u8>>,
    events: BTreeMap<ThreadId, Vec<Event>>,
    /// The profiles of V8 and their threads, by process ID and profile ID.
    profiles: BTreeMap<(Vec<u8>, Vec<u8>), (ThreadId, Samples)>,
    /// Number of events without a time or a duration.
    without_time: u64,
}

/// An event. Times are in millionths of a microsecond.
#[derive(Clone, Copy)]
struct Event {
    time: i128,
    kind: EventKind,
    /// The event's name. An end event may lack it.
    frame: Option<FrameId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EventKind {
    Begin,
    End,
    /// An event with this duration.
    Complete(i128),
}

impl EventKind {
    fn duration(self) -> Option<i128> {
        match self {
            Self::Complete(duration) => Some(duration),
            Self::Begin | Self::End => None,
        }
    }
}

/// Returns true for an element of the list of events that is no event, but another document: a list may lack its end.
fn is_document(element: Value<'_>) -> bool {
    element.is_array() || element.get(b"ph").is_none() && element.members().next().is_some()
}

/// Names of the values of a trace.
const SAMPLES: &str = "samples";
const SLICES: &str = "slices";

/// Returns which values count: the samples of V8, or the slices of the events.
fn select_values(trace: &Trace, document: &mut Document<'_>) -> Result<&'static str, Error> {
    let mut names = Vec::new();
    names.extend((!trace.profiles.is_empty()).then_some(SAMPLES));
    names.extend((!trace.events.is_empty() || names.is_empty()).then_some(SLICES));
    Ok(names[document.select_value(&names, 0)?])
}

/// Adds the events. Returns the offset of another document within their list, at which they end.
fn fold_document(
    root: Value<'_>,
    is_truncated: bool,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<Option<usize>, Error> {
    let (mut trace, mut foreign) = (Trace::default(), None);
    let mut without_time_before = 0;
    let mut events = find_events(root).into_iter().flatten().peekable();
    while let Some(event) = events.next() {
        let is_cut = is_truncated && !event.is_array() && events.peek().is_none();
        if !is_cut && is_document(event) {
            foreign = Some(event.start());
            break;
        }
        without_time_before = trace.without_time;
        trace.add(event, document, sink);
    }
    if is_truncated {
        // The last event may lack its time because it is truncated.
        trace.without_time = without_time_before;
    }
    if select_values(&trace, document)? == SLICES {
        document.set_unit("microseconds");
        return trace.fold_events(document, sink).map(|()| foreign);
    }
    let mut profiles = std::mem::take(&mut trace.profiles);
    let unit = if uses_input_weights(document.options) { "microseconds" } else { "samples" };
    document.set_unit(&format!("{unit}, of V8's samples and not of the events"));
    let has_several = profiles.len() > 1;
    if profiles.values().any(|(_, samples)| samples.is_cyclic()) {
        document.report_damage(CYCLIC, false)?;
    }
    for (id, samples) in profiles.values_mut() {
        let thread = trace.thread_frame(id, has_several, document, sink);
        samples.fold_samples(trace.thread_info(id), thread, document.options, sink)?;
    }
    Ok(foreign)
}

fn get_label(event: Value<'_>, key: &[u8]) -> Vec<u8> {
    event.get_label(key).into_owned()
}

fn thread_id(event: Value<'_>) -> ThreadId {
    (get_label(event, b"pid"), get_label(event, b"tid"))
}

fn get_time(event: Value<'_>, key: &[u8]) -> Option<i128> {
    event.get_millionths(key)
}

fn get_duration(event: Value<'_>) -> Option<i128> {
    get_time(event, b"dur").or_else(|| get_time(event, b"tdur"))
}

impl Trace {
    /// Adds an event.
    fn add(&mut self, event: Value<'_>, document: &Document<'_>, sink: &mut Sink) {
        let kind = match &event.get_string(b"ph")[..] {
            b"B" => EventKind::Begin,
            b"E" => EventKind::End,
            b"X" => match get_duration(event).filter(|duration| *duration >= 0) {
                Some(duration) => EventKind::Complete(duration),
                None => return self.without_time += 1,
            },
            b"M" => return self.add_name(event),
            _ => return self.add_profile(event, document, sink),
        };
        let Some(time) = get_time(event, b"ts") else { return self.without_time += 1 };
        let name = event.get(b"name").and_then(Value::as_string);
        let frame = match name {
            Some(name) => Some(sink.intern(&name)),
            None if kind == EventKind::End => None,
            None => Some(sink.intern(b"(unnamed)")),
        };
        self.events.entry(thread_id(event)).or_default().push(Event { time, kind, frame });
    }

    /// Adds the name of a process or thread from a metadata event.
    fn add_name(&mut self, event: Value<'_>) {
        let id = thread_id(event);
        let name = event.get_path([b"args", b"name"]).and_then(Value::as_string).unwrap_or_default().into_owned();
        match event.get(b"name").and_then(Value::as_string).as_deref() {
            Some(b"process_name") => drop(self.process_names.insert(id.0, name)),
            Some(b"thread_name") => drop(self.thread_names.insert(id, name)),
            _ => {}
        }
    }

    /// Adds a profile of V8, or a chunk of one, if the event has one.
    fn add_profile(&mut self, event: Value<'_>, document: &Document<'_>, sink: &mut Sink) {
        let name = event.get_string(b"name");
        let Some(data) = event.get_path([b"args", b"data"]) else { return };
        if !matches!(&name[..], b"Profile" | b"ProfileChunk" | b"CpuProfile") {
            return;
        }
        let id = thread_id(event);
        let key = (id.0.clone(), get_label(event, b"id"));
        let (thread, samples) = self.profiles.entry(key).or_insert_with(|| (id.clone(), Samples::default()));
        if &name[..] == b"Profile" {
            *thread = id;
        }
        let profile = data.get(b"cpuProfile");
        let find_time = |key: &[u8]| data.get(key).or_else(|| profile?.get(key)).and_then(Value::as_millionths);
        samples.start = samples.start.or_else(|| find_time(b"startTime"));
        samples.end = find_time(b"endTime").or(samples.end);
        if let Some(profile) = profile {
            samples.add_nodes(profile, document.options, sink);
            let deltas = data.get(b"timeDeltas").or_else(|| profile.get(b"timeDeltas"));
            samples.add_with_deltas(profile.get_items(b"samples"), deltas.into_iter().flat_map(Value::items));
        }
    }

    /// Returns the root frame of a thread, if there are several threads or `--pid` or `--tid` asks for it.
    fn thread_frame(
        &self,
        id: &ThreadId,
        has_several: bool,
        document: &Document<'_>,
        sink: &mut Sink,
    ) -> Option<FrameId> {
        let is_wanted = has_several || document.options.pid || document.options.tid;
        is_wanted.then(|| sink.intern(&thread_name(self.thread_name(id), &id.0, &id.1, document.options)))
    }

    /// Returns the name of a thread, or of its process; empty if both are unknown.
    fn thread_name(&self, id: &ThreadId) -> &[u8] {
        let name = self.thread_names.get(id).or_else(|| self.process_names.get(&id.0));
        name.map_or(&b""[..], |name| name)
    }

    /// Returns the thread as the options select it.
    fn thread_info(&self, id: &ThreadId) -> SampleInfo<'_> {
        let number = |text: &[u8]| parse_number(text).and_then(|number| u32::try_from(number).ok());
        let (pid, tid) = (number(&id.0), number(&id.1));
        SampleInfo { comm: self.thread_name(id), pid, tid, ..SampleInfo::default() }
    }

    /// Adds the stacks of begin, end and complete events.
    fn fold_events(mut self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        let threads = std::mem::take(&mut self.events);
        let has_several = threads.len() > 1;
        let (mut unmatched_ends, mut too_deep) = (0, 0);
        let earliest = threads.values().flatten().map(|event| event.time).min();
        let filter = SliceFilter::new(document.options, earliest.and_then(nanoseconds))?;
        for (id, mut events) in threads {
            if !filter.accepts(&self.thread_info(&id)) {
                sink.note_left_out();
                continue;
            }
            sort_events(&mut events, |event| event.time, |event| event.kind.duration());
            let root = self.thread_frame(&id, has_several, document, sink);
            let mut stack = CallStack::new(root).with_window(filter.window(PER_NANOSECOND));
            stack.set_start(events.first().map_or(0, |event| event.time));
            for Event { time, kind, frame } in &events {
                stack.advance(*time, sink)?;
                match (kind, frame) {
                    (EventKind::End, frame) => unmatched_ends += u64::from(!stack.end(*frame)),
                    (_, None) => {}
                    (kind, Some(frame)) => {
                        let end = kind.duration().map(|duration| time.saturating_add(duration));
                        too_deep += u64::from(!stack.begin(*frame, end));
                    }
                }
            }
            if let Some(end) = stack.last_end() {
                stack.advance(end, sink)?;
            }
        }
        if unmatched_ends > 0 {
            document.warn(&format!("left out {} without a begin event", plural(unmatched_ends, "end event")));
        }
        document.report_problems(too_deep, "event", "left out: inside too many other events")?;
        document.report_problems(self.without_time, "event", "left out: without a time or a duration")
    }
}
