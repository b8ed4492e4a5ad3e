//! speedscope's own JSON, which py-spy, rbspy and many others write too: profiles over one table of frames, sampled or
//! as what opens and closes.
//!
//! ```text
//! {"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"main"},{"name":"work"}]},
//!  "profiles":[{"type":"sampled","unit":"milliseconds","samples":[[0,1],[0]],"weights":[20,10],…},
//!              {"type":"evented","unit":"none","events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":9}],…}]}
//! ```

use super::timeline::Timeline;
use super::value::Value;
use super::weights::{WEIGHTLESS, Weights};
use super::{begins, read};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::formats::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::whole;
use crate::diagnostics::plural;
use crate::markers;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "speedscope",
    description: "speedscope JSON (speedscope, py-spy, rbspy)",
    has_times: false,
    recognizes: |head| begins(head, recognizes),
    reader: FormatReader::Bytes(|document, sink| read(document, sink, fold)),
};

fn recognizes(root: Value<'_>) -> bool {
    let schema = root.get(b"$schema").and_then(Value::text).unwrap_or_default();
    schema.starts_with(b"https://www.speedscope.app/") || root.path([b"shared", b"frames"]).is_some()
}

fn fold(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let shared = root.path([b"shared", b"frames"]).into_iter().flat_map(Value::items);
    let frames: Vec<FrameId> = shared.map(|frame| sink.intern(&name(frame, document))).collect();
    let profiles: Vec<Value<'_>> = root.get(b"profiles").into_iter().flat_map(Value::items).collect();
    let unit = |profile: &Value<'_>| profile.get(b"unit").and_then(Value::text).unwrap_or_default().into_owned();
    let mut units: Vec<String> = Vec::new();
    for profile in &profiles {
        let unit = String::from_utf8_lossy(&unit(profile)).into_owned();
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    let known: Vec<&str> = units.iter().map(String::as_str).collect();
    let Some(wanted) = known.get(document.column(&known, 0)?) else { return Ok(()) };
    if *wanted != "none" {
        document.unit(wanted);
    }
    let chosen = |profile: &&Value<'_>| unit(profile) == wanted.as_bytes();
    let left_out = profiles.len() - profiles.iter().filter(chosen).count();
    if left_out > 0 {
        let what = "weights of different units do not add up";
        document.warn(&format!(
            "{} left out, {what}: {wanted} of {}; --event chooses",
            plural(left_out as u64, "profile"),
            known.join(", ")
        ));
    }
    let several = profiles.iter().filter(chosen).count() > 1;
    for profile in profiles.iter().filter(chosen) {
        let name = profile.get(b"name").and_then(Value::text).filter(|_| several);
        let thread = name.map(|name| sink.intern(&name));
        match profile.get(b"events") {
            Some(events) => evented(*profile, events, &frames, thread, document, sink)?,
            None => sampled(*profile, &frames, thread, document, sink)?,
        }
    }
    Ok(())
}

fn name(frame: Value<'_>, document: &Document<'_>) -> Vec<u8> {
    let text = |name: &[u8]| frame.get(name).and_then(Value::text).unwrap_or_default();
    let line = frame.get(b"line").and_then(Value::whole);
    whole::located(&text(b"name"), &text(b"file"), line, document.options)
}

fn frame_of(index: Option<Value<'_>>, frames: &[FrameId], sink: &mut Sink) -> FrameId {
    let found = index.and_then(Value::index).and_then(|index| frames.get(index));
    found.copied().unwrap_or_else(|| sink.intern(markers::UNKNOWN))
}

fn sampled(
    profile: Value<'_>,
    frames: &[FrameId],
    thread: Option<FrameId>,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let mut weights = Weights::new(profile.get(b"weights").filter(|_| whole::weighs(document.options)));
    let mut stack = Vec::new();
    for sample in profile.get(b"samples").into_iter().flat_map(Value::items) {
        stack.clear();
        stack.extend(sample.items().map(|index| frame_of(Some(index), frames, sink)));
        whole::add(thread, &stack, weights.next(), sink)?;
    }
    document.amiss(weights.missing, "sample", WEIGHTLESS)
}

fn evented(
    profile: Value<'_>,
    events: Value<'_>,
    frames: &[FrameId],
    thread: Option<FrameId>,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let mut clock = Clock { now: profile.get(b"startValue").and_then(Value::millionths).unwrap_or(0), amiss: 0 };
    let mut timeline = Timeline::new(thread);
    timeline.start(clock.now);
    let (mut unknown, mut unopened) = (0, 0);
    for event in events.items() {
        timeline.advance(clock.go_to(event.get(b"at")), sink)?;
        let frame = frame_of(event.get(b"frame"), frames, sink);
        match event.get(b"type").and_then(Value::text).as_deref() {
            Some(b"O") => drop(timeline.begin(frame, None)),
            Some(b"C") => unopened += u64::from(!timeline.end(Some(frame))),
            _ => unknown += 1,
        }
    }
    if let Some(end) = profile.get(b"endValue") {
        timeline.advance(clock.go_to(Some(end)), sink)?;
    }
    document.amiss(unknown, "event", "of no known type left out")?;
    document.amiss(unopened, "close", "without an open left out")?;
    document.amiss(clock.amiss, "time", "missing, too large or out of order taken as the one before")
}

/// A clock that only goes on.
struct Clock {
    now: i128,
    /// How many times could not be gone to.
    amiss: u64,
}

impl Clock {
    fn go_to(&mut self, time: Option<Value<'_>>) -> i128 {
        match time.and_then(Value::millionths).filter(|time| *time >= self.now) {
            Some(time) => self.now = time,
            None => self.amiss += 1,
        }
        self.now
    }
}
