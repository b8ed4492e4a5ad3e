//! Events of tracks: slices, which begin and end on a track and can be inside each other.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::threads::{Threads, to_id};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::thread_name;
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::formats::json::call_stack::{CallStack, sort_events};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::slice_filter::SliceFilter;
use crate::diagnostics::plural;
use crate::markers;
use crate::profile::FrameId;
use crate::protobuf::{Fields, Value, read_numbers};

/// The fields of an event that matter here. Negative durations are 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrackEvent<'a> {
    kind: u64,
    pub(super) track: Option<u64>,
    name: Option<&'a [u8]>,
    /// The key of the name in the tables of the sequence.
    name_id: u64,
    /// The time since the event before, or since 1970 or so, in microseconds.
    pub(super) elapsed: Option<u64>,
    pub(super) absolute: Option<u64>,
    /// The stack, by its key or in the event.
    pub(super) stack: u64,
    pub(super) inline_stack: Option<&'a [u8]>,
    /// The weight of the stack.
    pub(super) weight: Option<f64>,
    legacy: LegacyEvent,
}

/// The fields of an event in the Trace Event Format.
#[derive(Clone, Copy, Debug, Default)]
struct LegacyEvent {
    name_id: u64,
    phase: u64,
    /// The duration in microseconds.
    duration: u64,
    pid: u64,
    tid: u64,
}

/// The part of a slice that an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SliceKind {
    Begin,
    End,
    /// A whole slice, with its duration in nanoseconds.
    Complete(u64),
}

/// The track of an event: one with an ID, or that of a process and a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TrackKey {
    Id(u64),
    Thread(u64, u64),
}

/// A track, and the process and thread of which it is a part.
#[derive(Clone, Copy, Debug, Default)]
struct Track<'a> {
    parent: u64,
    name: &'a [u8],
    thread: Option<(u64, u64)>,
}

/// An event of a slice, with its time in nanoseconds.
struct SliceEvent {
    time: u64,
    kind: SliceKind,
    frame: FrameId,
}

/// The tracks of a trace and the slices on them.
#[derive(Default)]
pub(super) struct Tracks<'a> {
    tracks: FxHashMap<u64, Track<'a>>,
    slices: BTreeMap<TrackKey, Vec<SliceEvent>>,
}

impl<'a> TrackEvent<'a> {
    /// Parses an event. Returns `None` if it is malformed.
    pub(super) fn parse(message: &'a [u8]) -> Option<Self> {
        let mut event = Self::default();
        for field in Fields::new(message) {
            match field? {
                (1, value) => event.elapsed = value.number(),
                (6, value) => event.legacy = LegacyEvent::parse(value.bytes()?)?,
                (9, value) => event.kind = value.number()?,
                (10, value) => event.name_id = value.number()?,
                (11, value) => event.track = value.number(),
                (16, value) => event.absolute = value.number(),
                (23, value) => event.name = value.bytes(),
                (55, value) => event.inline_stack = value.bytes(),
                (56, value) => event.stack = value.number()?,
                (57, Value::Fixed(bits)) => event.weight = Some(f64::from_bits(bits)),
                _ => {}
            }
        }
        Some(event)
    }

    pub(super) fn has_stack(&self) -> bool {
        self.stack != 0 || self.inline_stack.is_some()
    }

    /// Returns true if the event begins or ends a slice.
    pub(super) fn is_slice(&self) -> bool {
        self.slice_kind().is_some()
    }

    /// Returns the kind of the slice, by the type of the event or its phase in the Trace Event Format.
    fn slice_kind(&self) -> Option<SliceKind> {
        match (self.kind, u8::try_from(self.legacy.phase)) {
            (1, _) | (0, Ok(b'B')) => Some(SliceKind::Begin),
            (2, _) | (0, Ok(b'E')) => Some(SliceKind::End),
            (0, Ok(b'X')) => Some(SliceKind::Complete(self.legacy.duration.saturating_mul(1000))),
            _ => None,
        }
    }

    /// Returns the track of the event. `default` is that of the sequence, and `thread` its thread.
    pub(super) fn track(&self, default: Option<u64>, thread: (u64, u64)) -> TrackKey {
        match (self.legacy.tid, self.track.or(default)) {
            (0, Some(track)) => TrackKey::Id(track),
            (0, None) => TrackKey::Thread(thread.0, thread.1),
            (tid, _) => TrackKey::Thread(if self.legacy.pid == 0 { thread.0 } else { self.legacy.pid }, tid),
        }
    }
}

impl LegacyEvent {
    fn parse(message: &[u8]) -> Option<Self> {
        let [name_id, phase, duration, pid, tid] = read_numbers(message, [1, 2, 3, 18, 19])?;
        let duration = u64::try_from(duration.cast_signed()).unwrap_or(0);
        Some(Self { name_id, phase, duration, pid, tid })
    }
}

impl<'a> Tracks<'a> {
    /// Adds the description of a track.
    pub(super) fn add_track(&mut self, message: &'a [u8]) {
        // Numbers and messages are mixed, so no helper reads all.
        let (mut id, mut track) = (0, Track::default());
        for (number, value) in Fields::new(message).flatten() {
            match (number, value) {
                (1, Value::Number(number)) => id = number,
                (5, Value::Number(number)) => track.parent = number,
                (2 | 10 | 13, Value::Bytes(name)) => track.name = name,
                (3, Value::Bytes(process)) if track.thread.is_none() => {
                    track.thread = read_numbers(process, [1]).map(|[pid]| (pid, 0));
                }
                (4, Value::Bytes(thread)) => track.thread = Some(super::threads::parse_thread(thread)),
                _ => {}
            }
        }
        self.tracks.insert(id, track);
    }

    /// Returns the process and the thread of a track: its own, or those of a track that contains it.
    pub(super) fn thread(&self, key: TrackKey) -> (u64, u64) {
        match key {
            TrackKey::Id(id) => self.find(id, |track| track.thread).unwrap_or_default(),
            TrackKey::Thread(pid, tid) => (pid, tid),
        }
    }

    /// Returns the first value that is found for a track or those that contain it.
    fn find<T>(&self, mut id: u64, value: impl Fn(&Track<'a>) -> Option<T>) -> Option<T> {
        // Tracks might contain each other.
        for _ in 0..16 {
            let track = self.tracks.get(&id)?;
            if let Some(value) = value(track) {
                return Some(value);
            }
            id = track.parent;
        }
        None
    }

    /// Adds an event. Others than those of slices are ignored.
    pub(super) fn add(&mut self, key: TrackKey, event: &TrackEvent<'_>, time: u64, names: &Names<'_>, sink: &mut Sink) {
        let Some(kind) = event.slice_kind() else { return };
        let known = [event.name_id, event.legacy.name_id].into_iter().find_map(|id| names.get(&id).copied());
        let name = event.name.or(known).filter(|name| !name.is_empty()).unwrap_or(b"(unnamed)");
        self.slices.entry(key).or_default().push(SliceEvent { time, kind, frame: sink.intern(name) });
    }

    /// Adds the stacks of slices, weighted by the nanoseconds for which they are the same on their track.
    pub(super) fn add_stacks(
        mut self,
        threads: &Threads<'_>,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        if self.slices.is_empty() {
            return Ok(());
        }
        let (mut unmatched, mut too_deep) = (0, 0);
        let earliest = self.slices.values().flatten().map(|event| event.time).min();
        let filter = SliceFilter::new(document.options, earliest)?;
        for (key, mut events) in std::mem::take(&mut self.slices) {
            let (pid, tid) = self.thread(key);
            let comm = threads.name(pid, tid);
            if !filter.accepts(&SampleInfo { comm, pid: to_id(pid), tid: to_id(tid), ..SampleInfo::default() }) {
                sink.note_left_out();
                continue;
            }
            sort_events(&mut events, |event| event.time, |event| event.kind.duration());
            let root = sink.intern(&self.root_name(key, threads, document.options));
            let mut stack = CallStack::new(Some(root)).with_window(filter.window(MILLIONTHS));
            stack.set_start(events.first().map_or(0, SliceEvent::millionths));
            for event in &events {
                stack.advance(event.millionths(), sink)?;
                let end = event.kind.duration().map(|length| millionths(event.time.saturating_add(length)));
                match event.kind {
                    SliceKind::End => unmatched += u64::from(!stack.end(None)),
                    _ => too_deep += u64::from(!stack.begin(event.frame, end)),
                }
            }
            if let Some(end) = stack.last_end() {
                stack.advance(end, sink)?;
            }
        }
        if unmatched > 0 {
            document.warn(&format!("left out {} without a beginning", plural(unmatched, "end event")));
        }
        document.report_problems(too_deep, "slice", "left out: inside too many others")
    }

    /// Returns the name of a track, or of its thread or process.
    fn root_name(&self, key: TrackKey, threads: &Threads<'_>, options: &Options) -> Vec<u8> {
        let (pid, tid) = self.thread(key);
        let name = match key {
            TrackKey::Id(id) => self.find(id, |track| Some(track.name).filter(|name| !name.is_empty())),
            TrackKey::Thread(..) => None,
        };
        let name = name.unwrap_or_else(|| threads.name(pid, tid));
        match (name, pid, tid) {
            (b"", 0, 0) => markers::UNKNOWN.to_vec(),
            _ => thread_name(name, pid.to_string().as_bytes(), tid.to_string().as_bytes(), options),
        }
    }
}

impl SliceKind {
    fn duration(self) -> Option<u64> {
        match self {
            Self::Complete(duration) => Some(duration),
            Self::Begin | Self::End => None,
        }
    }
}

impl SliceEvent {
    fn millionths(&self) -> i128 {
        millionths(self.time)
    }
}

/// Number of units of the stack's weights in a nanosecond.
const MILLIONTHS: i128 = 1_000_000;

fn millionths(number: u64) -> i128 {
    i128::from(number) * MILLIONTHS
}

/// Names of events, by their keys.
pub(super) type Names<'a> = FxHashMap<u64, &'a [u8]>;
