//! Adds the events of chunks to the sink.

use rustc_hash::FxHashMap;

use super::chunk::{CHECKPOINT, Chunk};
use super::constants::Constants;
use super::events::{EVENTS, Event, EventType, EventTypes, Label};
use super::metadata::Schema;
use super::source::Window;
use super::stacks::{FrameDetails, StackFrame, StackTraces};
use super::sums::Sums;
use super::wire::Cursor;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{thread_name, uses_input_weights};
use crate::collapse::filter::args::EventChoice;
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::formats::java;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::markers;
use crate::profile::{FrameId, Weight};

/// The state of the reader between chunks.
pub(super) struct Reader<'a> {
    options: &'a Options,
    samples: TimedSamples,
    /// The unit of the events that were counted, and the first of them.
    unit: Option<(&'static str, Vec<u8>)>,
    /// Number of events that could not be decoded.
    malformed: u64,
    /// Number of checkpoints that could be decoded in part only.
    damaged_checkpoints: u64,
}

/// A chunk whose tables have been read, and the frames of its constants.
struct ChunkTables<'a> {
    chunk: &'a Chunk,
    schema: Schema,
    constants: Constants,
    /// The names of the distinct frames.
    frames: Vec<FrameId>,
    /// The frames of the last stack, root first.
    stack: Vec<FrameId>,
    /// The root frames of threads, by key.
    threads: FxHashMap<u64, FrameId>,
    roots: Vec<FrameId>,
}

/// What is known of a chunk before its constants are read.
struct Findings {
    /// The types with stacks, and whether the events of each are selected.
    types: EventTypes,
    is_selected: Vec<bool>,
    /// The events that are not selected, by type.
    left_out: Vec<LeftOut>,
    /// True if all events with stacks are selected, so that the others are left out.
    selects_all: bool,
    /// The offsets of the checkpoints.
    checkpoints: Vec<u64>,
    /// The stacks of selected events. Others are not decoded.
    stacks: StackTraces,
    /// True if equal events are added up: nothing depends on the time or the order of a single one.
    adds_up: bool,
    sums: Sums,
    /// The earliest start of an event with a stack, in ticks, unless equal events are added up.
    earliest: Option<u64>,
    /// The offset after the last event.
    end: u64,
}

/// Events of a type that is not selected.
#[derive(Clone, Copy, Default)]
struct LeftOut {
    count: u64,
    /// True if the message about what is left out names the type.
    is_listed: bool,
}

impl Findings {
    fn new(types: EventTypes, details: FrameDetails, adds_up: bool, document: &Document<'_>) -> Self {
        Self {
            is_selected: types.list().iter().map(|class| document.events.selects(&class.name)).collect(),
            left_out: vec![LeftOut::default(); types.list().len()],
            selects_all: document.options.event == EventChoice::All,
            types,
            checkpoints: Vec::new(),
            stacks: StackTraces::new(details),
            adds_up,
            sums: Sums::default(),
            earliest: None,
            end: 0,
        }
    }

    /// Adds an event of the type with an index.
    #[inline]
    fn add(&mut self, class: usize, event: &Event, ticks_per_second: u64) -> Result<(), Error> {
        if !self.adds_up && event.stack != 0 {
            self.earliest = Some(self.earliest.map_or(event.start, |earliest| earliest.min(event.start)));
        }
        if !self.is_selected[class] {
            self.left_out[class].count += 1;
            // Many types of events can have a stack, but never do. Of all events, those that do are selected.
            self.left_out[class].is_listed |= event.stack != 0 || self.selects_all;
            return Ok(());
        }
        // Not `ok_or`: each event would drop an error that did not occur.
        let Some(stack) = self.stacks.want(event.stack) else { return Err(Error::Overflow) };
        match self.adds_up {
            true => {
                let weight = Weight::new(self.types.list()[class].weight(event, ticks_per_second));
                self.sums.add(class, event.thread, stack, weight)
            }
            false => Ok(()),
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(document: &Document<'a>) -> Self {
        let options = document.options;
        Self { options, samples: TimedSamples::new(options), unit: None, malformed: 0, damaged_checkpoints: 0 }
    }

    /// Adds the events of a chunk.
    pub(super) fn read_chunk(
        &mut self,
        chunk: &Chunk,
        window: &mut Window<'_>,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let Some(schema) = chunk.read_schema(window)? else {
            return document.report_damage("a chunk without metadata, whose events are left out", false);
        };
        let types = EventTypes::new(&schema, &self.options.labels);
        let is_sum = self.samples.ignores_times() && self.options.labels.is_empty();
        let adds_up = is_sum && !sink.needs_times() && !sink.is_in_order();
        // Frames are named after how they were compiled with some options only.
        let details = FrameDetails { line: self.options.srcline, kind: self.options.kernel || self.options.jit };
        let mut found = Findings::new(types, details, adds_up, document);
        self.search_events(chunk, window, &mut found)?;
        sink.note_time(found.earliest.map(|ticks| chunk.time(ticks)));
        let mut constants = Constants::new(found.stacks, !self.options.labels.is_empty());
        for offset in found.checkpoints {
            let is_whole = chunk.add_checkpoint(offset, &schema, &mut constants, window)?;
            self.damaged_checkpoints += u64::from(!is_whole);
        }
        let mut tables = ChunkTables::new(chunk, schema, constants, self.options, sink);
        for sum in found.sums.list() {
            let event = Event { thread: sum.thread, ..Event::default() };
            let class = &found.types.list()[sum.class];
            self.add_events(&event, sum.stack, sum.count, sum.weight, class, &mut tables, document, sink)?;
        }
        if !found.adds_up {
            self.add_each_event(&found.types, &found.is_selected, window, &mut tables, document, sink)?;
        }
        for (class, left_out) in
            found.types.list().iter().zip(found.left_out).filter(|(_, left_out)| left_out.is_listed)
        {
            document.events.accept_many(&class.name, left_out.count);
        }
        if found.end < chunk.end && !chunk.is_cut {
            let what = format!("damaged at byte {}; the rest of the chunk is left out", found.end);
            document.report_damage(&what, false)?;
        }
        Ok(())
    }

    /// Searches a chunk for checkpoints and for the stacks of the selected events; adds events up if that is enough.
    fn search_events(&mut self, chunk: &Chunk, window: &mut Window<'_>, found: &mut Findings) -> Result<(), Error> {
        found.end = chunk.first_event();
        while let Some(event) = chunk.event_at(window, found.end)? {
            if event.kind == CHECKPOINT {
                found.checkpoints.push(found.end);
            } else if let Some(class) = found.types.find(event.kind) {
                let values = event.read_values(window)?;
                match found.types.list()[class].decode(&mut Cursor::new(values, chunk.has_varints)) {
                    Some(values) => found.add(class, &values, chunk.ticks_per_second)?,
                    None => self.malformed += 1,
                }
            }
            found.end = event.end();
        }
        Ok(())
    }

    /// Adds each selected event of a chunk to the sink, in the order of the file.
    fn add_each_event(
        &mut self,
        types: &EventTypes,
        is_selected: &[bool],
        window: &mut Window<'_>,
        tables: &mut ChunkTables<'_>,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let chunk = tables.chunk;
        let mut offset = chunk.first_event();
        while let Some(event) = chunk.event_at(window, offset)? {
            if let Some(index) = types.find(event.kind).filter(|index| is_selected[*index]) {
                let (class, values) = (&types.list()[index], event.read_values(window)?);
                if let Some(values) = class.decode(&mut Cursor::new(values, chunk.has_varints))
                    && let Some(stack) = tables.constants.stacks.find(values.stack)
                {
                    let weight = Weight::new(class.weight(&values, chunk.ticks_per_second));
                    self.add_events(&values, stack, 1, weight, class, tables, document, sink)?;
                }
            }
            offset = event.end();
        }
        Ok(())
    }

    /// Reports the unit, and what was left out.
    pub(super) fn finish(&self, document: &mut Document<'_>) -> Result<(), Error> {
        document.report_problems(self.damaged_checkpoints, "checkpoint", "damaged: names and stacks may be missing")?;
        document.report_problems(self.malformed, "event", "left out: malformed")
    }

    /// Adds a number of events with one type, thread and stack, whose weights add up to `weight`. `stack` is the number
    /// of the stack.
    #[expect(clippy::too_many_arguments, reason = "the state of a chunk and that of the input")]
    fn add_events(
        &mut self,
        event: &Event,
        stack: u32,
        count: u64,
        weight: Weight,
        class: &EventType,
        tables: &mut ChunkTables<'_>,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        if !document.events.accept_many(&class.name, count) {
            return Ok(());
        }
        let needs_info = !self.samples.ignores_times() || sink.needs_times();
        let (thread, info) = if needs_info { tables.describe_sample(event) } else { Default::default() };
        let info = SampleInfo { comm: &thread, ..info };
        if !self.samples.accept(&info, sink)? {
            return Ok(());
        }
        let weight = if uses_input_weights(self.options) { weight } else { Weight::new(count) };
        self.check_unit(class, document)?;
        document.events.add_weights(count, weight);
        tables.find_roots(event, self.options, sink);
        let is_truncated = tables.find_stack(stack);
        let (roots, frames) = (&tables.roots[..], &tables.stack[..]);
        self.samples.add(&TimedSample { info, roots, is_truncated, frames, weight }, sink)
    }

    /// Sets the unit of the weights.
    ///
    /// # Errors
    /// [`Error::Invalid`] if events were counted whose weights have another unit.
    fn check_unit(&mut self, class: &EventType, document: &mut Document<'_>) -> Result<(), Error> {
        let unit = if uses_input_weights(self.options) { class.unit } else { "samples" };
        match &self.unit {
            Some((known, _)) if *known == unit => Ok(()),
            Some((known, name)) => Err(Error::Invalid(format!(
                "{}: weights of {} are {known} and those of {} {unit}, which cannot be added up; name one of them with \
                 --event, or use --weight samples",
                document.name(),
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(&class.name)
            ))),
            None => {
                self.unit = Some((unit, class.name.clone()));
                document.set_unit(unit);
                if unit == EVENTS {
                    document.warn(&describe_untimed(&class.name));
                }
                Ok(())
            }
        }
    }
}

impl<'a> ChunkTables<'a> {
    fn new(chunk: &'a Chunk, schema: Schema, constants: Constants, options: &Options, sink: &mut Sink) -> Self {
        let distinct = constants.stacks.distinct_frames().iter();
        Self {
            frames: distinct.map(|frame| intern_frame(&frame_name(*frame, &constants, options), sink)).collect(),
            chunk,
            schema,
            constants,
            stack: Vec::new(),
            threads: FxHashMap::default(),
            roots: Vec::new(),
        }
    }

    /// Returns the name of an event's thread, and its time and thread ID.
    fn describe_sample(&self, event: &Event) -> (Vec<u8>, SampleInfo<'static>) {
        let (thread, tid) = self.constants.thread(event.thread);
        let time = Some(self.chunk.time(event.start));
        (thread.to_vec(), SampleInfo { time, tid: u32::try_from(tid).ok(), ..SampleInfo::default() })
    }

    /// Sets `roots` to the frames of an event's labels and its thread.
    fn find_roots(&mut self, event: &Event, options: &Options, sink: &mut Sink) {
        self.roots.clear();
        for (key, value) in options.labels.iter().zip(&event.labels) {
            let value = self.describe(value);
            if !value.is_empty() {
                self.roots.push(sink.intern(&[key, &b"="[..], &value].concat()));
            }
        }
        let constants = &self.constants;
        let frame = *self.threads.entry(event.thread).or_insert_with(|| {
            let (thread, tid) = constants.thread(event.thread);
            let tid = u32::try_from(tid).map_or_else(|_| String::new(), |tid| tid.to_string());
            let name = java::pool_name(thread, options);
            let name = if name.is_empty() { markers::UNKNOWN } else { name };
            sink.intern(&thread_name(name, b"", tid.as_bytes(), options))
        });
        self.roots.push(frame);
    }

    fn describe(&self, label: &Label) -> Vec<u8> {
        match label {
            Label::Number(number) => number.cast_signed().to_string().into_bytes(),
            Label::Text(text) => text.clone(),
            Label::String(key) => self.constants.string(*key).to_vec(),
            Label::Constant(kind, key) => self.constants.describe(&self.schema, *kind, *key),
            Label::Missing => Vec::new(),
        }
    }

    /// Sets `stack` to the frames of the stack trace with a number. Returns true if it is truncated.
    #[inline]
    fn find_stack(&mut self, number: u32) -> bool {
        self.stack.clear();
        let Some(trace) = self.constants.stacks.get(number) else { return false };
        let numbers = self.constants.stacks.frames(trace);
        self.stack.extend(numbers.iter().rev().map(|number| self.frames[*number as usize]));
        trace.is_truncated
    }
}

/// Says that events of a type, which have a stack, have no duration.
pub(in crate::collapse::formats) fn describe_untimed(name: &[u8]) -> String {
    format!("events of {} have no duration: each weighs 1", String::from_utf8_lossy(name))
}

/// Returns the name of a frame, with the suffix and the line that the options ask for.
fn frame_name(frame: StackFrame, constants: &Constants, options: &Options) -> Vec<u8> {
    let mut name = constants.method_name(frame.method);
    if options.srcline && frame.line > 0 && !name.is_empty() {
        name.extend_from_slice(format!(":{}", frame.line).as_bytes());
    }
    name.extend_from_slice(kind_suffix(constants.frame_kind(frame.kind.into()), options));
    name
}

/// Returns the suffix for a type of frames that the options ask for.
pub(in crate::collapse::formats) fn kind_suffix(kind: &[u8], options: &Options) -> &'static [u8] {
    match kind {
        b"Kernel" if options.kernel => markers::KERNEL,
        b"Inlined" if options.jit => markers::INLINED,
        b"JIT compiled" | b"C1 compiled" if options.jit => markers::JIT,
        _ => b"",
    }
}
