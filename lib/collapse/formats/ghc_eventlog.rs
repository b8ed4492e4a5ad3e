//! Event logs of GHC (`PROGRAM +RTS -l`, file `PROGRAM.eventlog`) of a program that was built for profiling: samples of
//! its time (`-p`), and heap profiles (`-hc`, `-hy` and others; `-hT` needs no such build).
//!
//! A sample of time weighs 1 (`time`). Of a heap profile, the census with the most bytes counts (`heap`); its stacks are
//! cost centres with `-hc`, else one frame for each type, closure and so on. If a log has both, time counts, unless
//! `--event` names `heap`. Frames are named `MODULE.COST-CENTRE`, with `--srcline` followed by their place. The root
//! `MAIN`, which all stacks share, is not in a log. With `--time`, the largest census of the span counts. All numbers are big-endian. Source: `rts/EventLogFormat.h` of GHC.

use rustc_hash::FxHashMap;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, read_bytes};
use crate::collapse::filter::sample::{SampleInfo, filters_samples};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "ghc-eventlog",
    description: "GHC event log (.eventlog, +RTS -l with -p or -h)",
    tested_with: "GHC 9.0",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| head.starts_with(MAGIC)),
    reader: FormatReader::Bytes(read),
};

/// The beginnings of the header and of the list of types of events, the ends of both, and the beginning of the events.
const MAGIC: &[u8] = b"hdrbhetb";
const TYPE_BEGIN: &[u8] = b"etb\0";
const TYPE_END: &[u8] = b"ete\0";
const HEADER_END: &[u8] = b"hetehdredatb";

/// The size of events whose size precedes each of them.
const VARIABLE: u16 = u16::MAX;

/// The type after the last event.
const END: u16 = u16::MAX;

/// The root of all stacks.
const ROOT: &[u8] = b"MAIN.MAIN";

/// Types of events.
mod kind {
    pub const COST_CENTRE: u16 = 161;
    pub const CENSUS_BEGIN: u16 = 162;
    pub const HEAP_STACK: u16 = 163;
    pub const HEAP_STRING: u16 = 164;
    pub const BIOGRAPHICAL_CENSUS_BEGIN: u16 = 166;
    pub const TIME_STACK: u16 = 167;
}

/// The events of a log.
#[derive(Clone)]
struct Events<'a> {
    /// The sizes of events by type.
    sizes: FxHashMap<u16, u16>,
    rest: Bytes<'a>,
    end: LogEnd,
    /// The bytes after the end of the events.
    after: &'a [u8],
}

/// The end of the events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LogEnd {
    /// It is not known yet, or the log ends within an event.
    Cut,
    Marked,
    /// An event has a type that is not in the header.
    UnknownType,
}

/// An event.
struct Event<'a> {
    kind: u16,
    /// Nanoseconds since the program began.
    time: u64,
    data: Bytes<'a>,
}

/// Bytes of numbers and strings. Methods return `None` at their end.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

/// A census of the heap: stacks or names, leaf first, and their bytes.
#[derive(Default)]
struct Census {
    time: u64,
    stacks: Vec<(Vec<FrameId>, u64)>,
    bytes: u128,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    let Some(events) = Events::new(&bytes) else {
        return Err(document.unreadable("damaged: its header is not complete"));
    };
    let (mut has_time, mut has_heap) = (false, false);
    for event in events.clone() {
        has_time |= event.kind == kind::TIME_STACK;
        has_heap |= matches!(event.kind, kind::HEAP_STACK | kind::HEAP_STRING);
    }
    let mut names = Vec::new();
    names.extend(has_time.then_some("time"));
    names.extend(has_heap.then_some("heap"));
    if names.is_empty() {
        let mut events = events;
        events.by_ref().for_each(drop);
        if events.end == LogEnd::Cut {
            return Err(document.unreadable("cut short, or still being written: it ends before the first sample"));
        }
        let what = "an event log without a profile; build with -prof, and run with +RTS -l -p or +RTS -l -hc";
        return Err(document.unreadable(what));
    }
    let wants_time = names[document.select_value(&names, 0)?] == "time";
    document.set_unit(if wants_time { "samples" } else { "bytes" });
    if !wants_time {
        check_conditions(document.options)?;
    }
    let mut reader = Reader::new(document.options);
    let mut events = events;
    for event in events.by_ref() {
        if reader.add(&event, wants_time, sink)?.is_none() {
            reader.malformed += 1;
        }
    }
    reader.finish(document, sink)?;
    document.check_nothing_follows((bytes.len() - events.after.len()) as u64, events.after)?;
    match events.end {
        LogEnd::UnknownType => document.report_damage("damaged: an event has an unknown type", false),
        end => document.check_end(end == LogEnd::Marked, "its last event does"),
    }
}

/// Returns an error if an option selects parts of a census.
fn check_conditions(options: &Options) -> Result<(), Error> {
    let conditions = Options { time: None, ..options.clone() };
    match filters_samples(&conditions) {
        true => Err(Error::Invalid("heap profiles have no threads; select a census by --time alone".to_owned())),
        false => Ok(()),
    }
}

/// The state of the reader.
struct Reader<'a> {
    options: &'a Options,
    samples: TimedSamples,
    /// The frames of cost centres, by their IDs.
    cost_centres: FxHashMap<u64, FrameId>,
    census: Census,
    largest: Census,
    /// The time of the first census.
    first_census: Option<u64>,
    malformed: u64,
}

impl<'a> Reader<'a> {
    fn new(options: &'a Options) -> Self {
        Self {
            options,
            samples: TimedSamples::new(options),
            cost_centres: FxHashMap::default(),
            census: Census::default(),
            largest: Census::default(),
            first_census: None,
            malformed: 0,
        }
    }

    /// Adds an event. Returns `None` if it is malformed.
    fn add(&mut self, event: &Event<'_>, wants_time: bool, sink: &mut Sink) -> Result<Option<()>, Error> {
        let mut data = event.data;
        match event.kind {
            kind::COST_CENTRE => return Ok(self.add_cost_centre(data, sink)),
            kind::TIME_STACK if wants_time => {
                // The capability and the number of the tick precede the stack.
                let Some(mut frames) = data.take(12).and_then(|_| self.read_stack(&mut data, sink)) else {
                    return Ok(None);
                };
                frames.reverse();
                let info = SampleInfo { time: Some(event.time), ..SampleInfo::default() };
                if self.samples.accept(&info, sink)? {
                    let (frames, weight) = (&frames[..], Weight::ONE);
                    self.samples.add(&TimedSample { info, roots: &[], is_truncated: false, frames, weight }, sink)?;
                }
            }
            kind::CENSUS_BEGIN | kind::BIOGRAPHICAL_CENSUS_BEGIN => self.begin_census(event.time, sink),
            kind::HEAP_STACK | kind::HEAP_STRING if !wants_time => return Ok(self.add_to_census(event, sink)),
            _ => {}
        }
        Ok(Some(()))
    }

    fn add_cost_centre(&mut self, mut data: Bytes<'_>, sink: &mut Sink) -> Option<()> {
        let (id, label, module, place) = (data.number(4)?, data.string()?, data.string()?, data.string()?);
        let mut name = [module, b".", label].concat();
        if self.options.srcline && !place.starts_with(b"<") && !place.is_empty() {
            name.extend_from_slice(&[b":", place].concat());
        }
        self.cost_centres.insert(id, intern_frame(&name, sink));
        Some(())
    }

    /// Reads a stack of cost centres, leaf first. An empty one is that of the root.
    fn read_stack(&self, data: &mut Bytes<'_>, sink: &mut Sink) -> Option<Vec<FrameId>> {
        let depth = data.number(1)?;
        if depth == 0 {
            return Some(vec![sink.intern(ROOT)]);
        }
        (0..depth)
            .map(|_| {
                let id = data.number(4)?;
                Some(self.cost_centres.get(&id).copied().unwrap_or_else(|| sink.missing_frame()))
            })
            .collect()
    }

    fn add_to_census(&mut self, event: &Event<'_>, sink: &mut Sink) -> Option<()> {
        let mut data = event.data;
        // The number of the profile precedes the bytes.
        data.take(1)?;
        let bytes = data.number(8)?;
        let frames = match event.kind {
            kind::HEAP_STACK => self.read_stack(&mut data, sink)?,
            _ => vec![intern_frame(data.string()?, sink)],
        };
        self.census.bytes += u128::from(bytes);
        self.census.stacks.push((frames, bytes));
        Some(())
    }

    fn begin_census(&mut self, time: u64, sink: &mut Sink) {
        self.end_census(sink);
        self.census.time = time;
        self.first_census.get_or_insert(time);
    }

    /// Keeps the census that has ended if it is the largest one of the span of time.
    fn end_census(&mut self, sink: &mut Sink) {
        let census = std::mem::take(&mut self.census);
        let first = self.first_census.unwrap_or(census.time);
        if self.options.time.is_some_and(|span| !span.contains(census.time, first)) {
            sink.note_left_out();
        } else if census.bytes > self.largest.bytes {
            self.largest = census;
        }
    }

    /// Adds the largest census, and reports what was left out.
    fn finish(&mut self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        self.end_census(sink);
        for (mut frames, bytes) in std::mem::take(&mut self.largest).stacks {
            frames.reverse();
            add_stack(None, &frames, Weight::new(bytes), sink)?;
        }
        document.report_problems(self.malformed, "event", "left out: malformed")
    }
}

impl<'a> Events<'a> {
    /// Reads the header. Returns `None` if it is malformed.
    fn new(log: &'a [u8]) -> Option<Self> {
        let mut rest = Bytes(log.strip_prefix(MAGIC)?);
        let mut sizes = FxHashMap::default();
        while let Some(inner) = rest.0.strip_prefix(TYPE_BEGIN) {
            rest = Bytes(inner);
            let (kind, size) = (rest.number(2)? as u16, rest.number(2)? as u16);
            // A description and more information.
            for _ in 0..2 {
                let length = usize::try_from(rest.number(4)?).ok()?;
                rest.take(length)?;
            }
            rest = Bytes(rest.0.strip_prefix(TYPE_END)?);
            sizes.insert(kind, size);
        }
        let rest = Bytes(rest.0.strip_prefix(HEADER_END)?);
        Some(Self { sizes, rest, end: LogEnd::Cut, after: b"" })
    }

    fn read_event(&mut self) -> Option<Event<'a>> {
        let kind = self.rest.number(2)? as u16;
        if kind == END {
            self.end = LogEnd::Marked;
            self.after = self.rest.0;
            return None;
        }
        let time = self.rest.number(8)?;
        let size = match self.sizes.get(&kind) {
            Some(&VARIABLE) => self.rest.number(2)? as u16,
            Some(size) => *size,
            None => {
                self.end = LogEnd::UnknownType;
                return None;
            }
        };
        Some(Event { kind, time, data: Bytes(self.rest.take(size.into())?) })
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let event = self.read_event();
        if event.is_none() {
            // Nothing that follows is read.
            self.rest = Bytes(b"");
        }
        event
    }
}

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a number of up to eight bytes.
    fn number(&mut self, size: usize) -> Option<u64> {
        Some(self.take(size)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads bytes up to a zero, which is skipped.
    fn string(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }
}
