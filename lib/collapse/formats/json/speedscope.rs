//! JSON of speedscope, which py-spy, rbspy and many others also write: profiles that share a table of frames. A profile
//! has samples and their weights, or events that open and close frames.
//!
//! ```text
//! {"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"main"},{"name":"work"}]},
//!  "profiles":[{"type":"sampled","unit":"milliseconds","samples":[[0,1],[0]],"weights":[20,10],…},
//!              {"type":"evented","unit":"none","events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":9}],…}]}
//! ```
//! The weight is the sample's weight, or 1 with `--weight samples`; with events, the time for which a stack is the
//! same. If profiles have different units, those with the unit of the first count, or with the unit that `--event`
//! names. Of several profiles, the name is the root frame. Files and lines are left out unless `--srcline` asks for
//! them. Specification: <https://www.speedscope.app/file-format-schema.json>.

use super::call_stack::CallStack;
use super::value::Value;
use super::weights::{INVALID_WEIGHT, WeightList};
use super::{frame_name, read_root};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, uses_input_weights};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::diagnostics::plural;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "speedscope",
    description: "speedscope JSON (speedscope, py-spy, rbspy)",
    tested_with: "py-spy 0.4, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get_string(b"$schema").starts_with(b"https://www.speedscope.app/")
        || root.get_path([b"shared", b"frames"]).is_some()
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let shared = root.get_path([b"shared", b"frames"]).into_iter().flat_map(Value::items);
    let frames: Vec<FrameId> =
        shared.map(|frame| sink.intern(&frame_name(frame, [b"name", b"file", b"line"], document.options))).collect();
    let profiles = choose_profiles(root.get_items(b"profiles").collect(), document)?;
    let (has_several, mut open) = (profiles.len() > 1, 0);
    for profile in profiles {
        let name = profile.get(b"name").and_then(Value::as_string).filter(|_| has_several);
        let thread = name.map(|name| sink.intern(&name));
        match profile.get(b"events") {
            Some(events) => open += fold_events(profile, events, &frames, thread, document, sink)?,
            None => fold_samples(profile, &frames, thread, document, sink)?,
        }
    }
    if open > 0 {
        document.warn(&format!("{} without a close event: open until the profile ends", plural(open, "frame")));
    }
    Ok(())
}

/// Returns the profiles with the chosen unit: weights of different units must not be added.
fn choose_profiles<'t>(mut profiles: Vec<Value<'t>>, document: &mut Document<'_>) -> Result<Vec<Value<'t>>, Error> {
    let mut units: Vec<String> = Vec::new();
    for profile in &profiles {
        let unit = String::from_utf8_lossy(&profile.get_string(b"unit")).into_owned();
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    let known: Vec<&str> = units.iter().map(String::as_str).collect();
    let Some(chosen) = known.get(document.select_value(&known, 0)?) else { return Ok(Vec::new()) };
    let has_events = profiles.iter().any(|profile| profile.get(b"events").is_some());
    if *chosen != "none" {
        document.set_unit(if has_events || uses_input_weights(document.options) { chosen } else { "samples" });
    }
    let count = profiles.len();
    profiles.retain(|profile| *profile.get_string(b"unit") == *chosen.as_bytes());
    if profiles.len() < count {
        document.warn(&format!(
            "left out {} whose unit is not {chosen}: the input has {}; --event chooses",
            plural((count - profiles.len()) as u64, "profile"),
            known.join(", ")
        ));
    }
    Ok(profiles)
}

/// Returns the frame at an index of the table, or one in its place.
fn find_frame(index: Option<Value<'_>>, frames: &[FrameId], sink: &mut Sink) -> FrameId {
    let found = index.and_then(Value::as_index).and_then(|index| frames.get(index));
    found.copied().unwrap_or_else(|| sink.missing_frame())
}

/// Adds the stacks of a sampled profile.
fn fold_samples(
    profile: Value<'_>,
    frames: &[FrameId],
    thread: Option<FrameId>,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let mut weights = WeightList::new(profile.get(b"weights").filter(|_| uses_input_weights(document.options)));
    let mut stack = Vec::new();
    for sample in profile.get_items(b"samples") {
        stack.clear();
        stack.extend(sample.items().map(|index| find_frame(Some(index), frames, sink)));
        add_stack(thread, &stack, weights.next(), sink)?;
    }
    document.report_problems(weights.invalid, "sample", INVALID_WEIGHT)
}

/// Adds the stacks of a profile with events. Returns the number of frames that no event closes.
fn fold_events(
    profile: Value<'_>,
    events: Value<'_>,
    frames: &[FrameId],
    thread: Option<FrameId>,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<u64, Error> {
    let start = profile.get(b"startValue").and_then(Value::as_millionths).unwrap_or(0);
    let exact = profile.get(b"startValue").and_then(Value::as_float).unwrap_or(0.0);
    let mut clock = Clock { now: start, exact, invalid: 0, too_close: 0 };
    let mut stack = CallStack::new(thread);
    stack.set_start(start);
    let (mut unknown, mut unopened) = (0, 0);
    for event in events.items() {
        stack.advance(clock.advance(event.get(b"at")), sink)?;
        let mut find = || find_frame(event.get(b"frame"), frames, sink);
        match event.get(b"type").and_then(Value::as_string).as_deref() {
            Some(b"O") => drop(stack.begin(find(), None)),
            Some(b"C") => unopened += u64::from(!stack.end(Some(find()))),
            _ => unknown += 1,
        }
    }
    if let Some(end) = profile.get(b"endValue") {
        stack.advance(clock.advance(Some(end)), sink)?;
    }
    document.report_problems(unknown, "event", "left out: the type is not O or C")?;
    document.report_problems(unopened, "close event", "left out: no open event before it")?;
    document.report_problems(
        clock.invalid,
        "time",
        "replaced by the one before: missing, too large or out of order",
    )?;
    document.report_problems(
        clock.too_close,
        "time",
        "read as equal to the one before: they differ in the seventh decimal or later, and weights have six",
    )?;
    Ok(stack.count_open() as u64)
}

/// A clock that never goes back.
struct Clock {
    now: i128,
    exact: f64,
    /// Number of times that were missing or before the current time.
    invalid: u64,
    /// Number of times that are later than the one before, but not by a millionth.
    too_close: u64,
}

/// The relative difference of numbers that differ by the rounding of a computation.
const ROUNDING: f64 = 1e-12;

impl Clock {
    /// Advances to a time, if it is valid, and returns the current time.
    fn advance(&mut self, time: Option<Value<'_>>) -> i128 {
        match time.and_then(Value::as_millionths).filter(|time| *time >= self.now) {
            Some(now) => {
                let exact = time.and_then(Value::as_float).unwrap_or(self.exact);
                self.too_close += u64::from(now == self.now && exact - self.exact > exact.abs() * ROUNDING);
                (self.now, self.exact) = (now, exact);
            }
            None => self.invalid += 1,
        }
        self.now
    }
}
