//! Trace events, as Chrome and many others write them: an array, also under `traceEvents`, that may lack its end.
//!
//! ```text
//! [{"ph":"B","pid":1,"tid":1,"ts":0,"name":"main"},
//!  {"ph":"X","pid":1,"tid":1,"ts":10,"dur":60,"name":"work"},
//!  {"ph":"E","pid":1,"tid":1,"ts":100,"name":"main"},
//! ```
//! Where Chrome recorded JavaScript's stacks too (`ProfileChunk`), those are folded and not the events.

use std::collections::BTreeMap;

use super::chrome::Samples;
use super::forest::CYCLIC;
use super::timeline::Timeline;
use super::value::{Items, Value};
use super::{begins, parse};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::formats::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::whole;
use crate::diagnostics::plural;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "trace-event",
    description: "trace events (Chrome and others), including V8 samples",
    has_times: false,
    recognizes: |head| begins(head, |root| events(root).is_some_and(|mut events| events.any(is_event))),
    reader: FormatReader::Bytes(read),
};

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let text = whole::read(document)?;
    let tape = parse(&text, document)?;
    tape.root().map_or(Ok(()), |root| fold(root, tape.torn, document, sink))?;
    document.ends(!tape.torn, "what it began with does")
}

fn events(root: Value<'_>) -> Option<Items<'_>> {
    if root.is_object() { root.get(b"traceEvents").map(Value::items) } else { Some(root.items()) }
}

fn is_event(event: Value<'_>) -> bool {
    event.get(b"ph").is_some()
}

/// A process and a thread, as they are written.
type Id = (Vec<u8>, Vec<u8>);

#[derive(Default)]
struct Threads {
    process_names: BTreeMap<Vec<u8>, Vec<u8>>,
    thread_names: BTreeMap<Id, Vec<u8>>,
    events: BTreeMap<Id, Vec<Event>>,
    profiles: BTreeMap<(Vec<u8>, Vec<u8>), (Id, Samples)>,
    /// How many events do not say when they were.
    timeless: u64,
}

/// What begins, ends, or both; without a name if it has none. Times are in millionths of a microsecond.
#[derive(Clone, Copy)]
struct Event {
    time: i128,
    kind: Kind,
    frame: Option<FrameId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Begin,
    End,
    Lasting(i128),
}

impl Kind {
    fn duration(self) -> Option<i128> {
        match self {
            Self::Lasting(duration) => Some(duration),
            Self::Begin | Self::End => None,
        }
    }
}

fn fold(root: Value<'_>, torn: bool, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut threads = Threads::default();
    let mut timeless_before = 0;
    for event in events(root).into_iter().flatten() {
        timeless_before = threads.timeless;
        threads.take(event, document, sink);
    }
    if torn {
        // The last event lacks what the cut took.
        threads.timeless = timeless_before;
    }
    if threads.profiles.is_empty() {
        document.unit("microseconds");
        return threads.fold_events(document, sink);
    }
    let mut profiles = std::mem::take(&mut threads.profiles);
    let unit = if whole::weighs(document.options) { "microseconds" } else { "samples" };
    document.unit(&format!("{unit}, of V8's samples and not of the events"));
    let several = profiles.len() > 1;
    if profiles.values().any(|(_, samples)| samples.is_cyclic()) {
        document.damaged(CYCLIC, false)?;
    }
    for (id, samples) in profiles.values_mut() {
        let thread = threads.frame(id, several, document, sink);
        samples.fold(thread, document.options, sink)?;
    }
    Ok(())
}

fn label(event: Value<'_>, name: &[u8]) -> Vec<u8> {
    event.get(name).and_then(Value::label).unwrap_or_default().into_owned()
}

impl Threads {
    fn take(&mut self, event: Value<'_>, document: &Document<'_>, sink: &mut Sink) {
        let phase = event.get(b"ph").and_then(Value::text).unwrap_or_default();
        let id = || (label(event, b"pid"), label(event, b"tid"));
        let number = |name: &[u8]| event.get(name).and_then(Value::millionths);
        let kind = match &phase[..] {
            b"B" => Kind::Begin,
            b"E" => Kind::End,
            b"X" => match number(b"dur").or_else(|| number(b"tdur")).filter(|duration| *duration >= 0) {
                Some(duration) => Kind::Lasting(duration),
                None => return self.timeless += 1,
            },
            b"M" => return self.name(event, id()),
            _ => return self.profile(event, id(), document, sink),
        };
        let Some(time) = number(b"ts") else { return self.timeless += 1 };
        let name = event.get(b"name").and_then(Value::text);
        let frame = match name {
            Some(name) => Some(sink.intern(&name)),
            None if kind == Kind::End => None,
            None => Some(sink.intern(b"(unnamed)")),
        };
        self.events.entry(id()).or_default().push(Event { time, kind, frame });
    }

    fn name(&mut self, event: Value<'_>, id: Id) {
        let name = event.path([b"args", b"name"]).and_then(Value::text).unwrap_or_default().into_owned();
        match event.get(b"name").and_then(Value::text).as_deref() {
            Some(b"process_name") => drop(self.process_names.insert(id.0, name)),
            Some(b"thread_name") => drop(self.thread_names.insert(id, name)),
            _ => {}
        }
    }

    /// Takes a profile, or a piece of one.
    fn profile(&mut self, event: Value<'_>, id: Id, document: &Document<'_>, sink: &mut Sink) {
        let name = event.get(b"name").and_then(Value::text).unwrap_or_default();
        let Some(data) = event.path([b"args", b"data"]) else { return };
        if !matches!(&name[..], b"Profile" | b"ProfileChunk" | b"CpuProfile") {
            return;
        }
        let key = (id.0.clone(), label(event, b"id"));
        let (thread, samples) = self.profiles.entry(key).or_insert_with(|| (id.clone(), Samples::default()));
        if &name[..] == b"Profile" {
            *thread = id;
        }
        let profile = data.get(b"cpuProfile");
        let number = |name: &[u8]| data.get(name).or_else(|| profile?.get(name)).and_then(Value::millionths);
        samples.start = samples.start.or_else(|| number(b"startTime"));
        samples.end = number(b"endTime").or(samples.end);
        if let Some(profile) = profile {
            samples.add_nodes(profile, document.options, sink);
            let deltas = data.get(b"timeDeltas").or_else(|| profile.get(b"timeDeltas"));
            samples.add_after(profile.get(b"samples"), deltas);
        }
    }

    /// A thread's frame, where there are several threads or ids are asked for.
    fn frame(&self, id: &Id, several: bool, document: &Document<'_>, sink: &mut Sink) -> Option<FrameId> {
        let name = self.thread_names.get(id).or_else(|| self.process_names.get(&id.0)).filter(|name| !name.is_empty());
        let wanted = several || document.options.pid || document.options.tid;
        let name = name.map_or(&b""[..], |name| name);
        wanted.then(|| sink.intern(&whole::thread(name, &id.0, &id.1, document.options)))
    }

    fn fold_events(mut self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        let events = std::mem::take(&mut self.events);
        let several = events.len() > 1;
        let (mut ends, mut too_many) = (0, 0);
        for (id, mut events) in events {
            events.sort_by_key(|event| event.time);
            // What lasts is often written when it ends: of what begins at once, what lasts longest is outside.
            let at_once =
                |a: &Event, b: &Event| a.time == b.time && a.kind.duration().is_some() && b.kind.duration().is_some();
            for events in events.chunk_by_mut(at_once) {
                events.sort_by_key(|event| std::cmp::Reverse(event.kind.duration()));
            }
            let mut timeline = Timeline::new(self.frame(&id, several, document, sink));
            timeline.start(events.first().map_or(0, |event| event.time));
            for Event { time, kind, frame } in &events {
                timeline.advance(*time, sink)?;
                match (kind, frame) {
                    (Kind::End, frame) => ends += u64::from(!timeline.end(*frame)),
                    (_, None) => {}
                    (kind, Some(frame)) => {
                        let end = kind.duration().map(|duration| time.saturating_add(duration));
                        too_many += u64::from(!timeline.begin(*frame, end));
                    }
                }
            }
            if let Some(end) = timeline.last_end() {
                timeline.advance(end, sink)?;
            }
        }
        if ends > 0 {
            document.warn(&format!("{} without a beginning left out", plural(ends, "end")));
        }
        document.amiss(too_many, "event", "inside too many others left out")?;
        document.amiss(self.timeless, "event", "without a time or a duration left out")
    }
}
