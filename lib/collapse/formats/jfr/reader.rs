//! Adds the events of chunks to the sink.

use rustc_hash::FxHashMap;

use super::chunk::Chunk;
use super::constants::{Constants, StackFrame};
use super::events::{Event, EventType, Label, find_event_types, group_names};
use super::metadata::Schema;
use super::source::Window;
use super::wire::Cursor;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{thread_name, uses_input_weights};
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
    /// The unit of the events that were counted.
    unit: Option<&'static str>,
    /// Number of events that could not be decoded.
    malformed: u64,
}

/// A chunk whose tables have been read, and the frames of its constants.
struct ChunkTables<'a> {
    chunk: &'a Chunk,
    schema: Schema,
    constants: Constants,
    frames: FxHashMap<StackFrame, FrameId>,
    /// The ranges of stacks in `stack_frames`, by key.
    stacks: FxHashMap<u64, std::ops::Range<usize>>,
    /// The frames of stacks, root first.
    stack_frames: Vec<FrameId>,
    /// The root frames of threads, by key.
    threads: FxHashMap<u64, FrameId>,
    roots: Vec<FrameId>,
}

/// The events of a chunk, added up by type, thread and stack.
#[derive(Default)]
struct Sums {
    /// In the order of the first event of each.
    list: Vec<Sum>,
    /// Indices in `list`.
    numbers: FxHashMap<(u64, u64, u64), usize>,
}

/// Events with the same type, thread and stack.
struct Sum {
    /// The ID of the type.
    kind: u64,
    /// The first of the events.
    event: Event,
    count: u64,
    weight: Weight,
}

impl Sums {
    fn add(&mut self, kind: u64, event: Event, weight: Weight) -> Result<(), Error> {
        let number = *self.numbers.entry((kind, event.thread, event.stack)).or_insert(self.list.len());
        match self.list.get_mut(number) {
            Some(sum) => {
                sum.count += 1;
                sum.weight = sum.weight.checked_add(weight).ok_or(Error::Overflow)?;
            }
            None => self.list.push(Sum { kind, event, count: 1, weight }),
        }
        Ok(())
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(document: &Document<'a>) -> Self {
        let options = document.options;
        Self { options, samples: TimedSamples::new(options), unit: None, malformed: 0 }
    }

    /// Adds the events of a chunk.
    pub(super) fn read_chunk(
        &mut self,
        chunk: &Chunk,
        window: &mut Window<'_>,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let Some((schema, constants)) = chunk.read_tables(window, !self.options.labels.is_empty())? else {
            return document.report_damage("a chunk without metadata, whose events are left out", false);
        };
        let types = find_event_types(&schema, &self.options.labels);
        let mut tables = ChunkTables::new(chunk, schema, constants);
        let is_sum = self.samples.ignores_times() && self.options.labels.is_empty();
        let mut sums = (is_sum && !sink.keeps_times() && !sink.is_in_order()).then(Sums::default);
        let offset = self.read_events(chunk, &types, window, &mut sums, &mut tables, document, sink)?;
        for sum in sums.into_iter().flat_map(|sums| sums.list) {
            if let Some(class) = types.get(&sum.kind) {
                self.add_events(&sum.event, sum.count, sum.weight, class, &mut tables, document, sink)?;
            }
        }
        if offset < chunk.end && !chunk.is_cut {
            document.report_damage(&format!("damaged at byte {offset}; the rest of the chunk is left out"), false)?;
        }
        Ok(())
    }

    /// Decodes the events of a chunk: adds them up, or adds each to the sink. Returns the offset after the last one.
    #[expect(clippy::too_many_arguments, reason = "the state of a chunk and that of the input")]
    fn read_events(
        &mut self,
        chunk: &Chunk,
        types: &FxHashMap<u64, EventType>,
        window: &mut Window<'_>,
        sums: &mut Option<Sums>,
        tables: &mut ChunkTables<'_>,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<u64, Error> {
        let mut offset = chunk.first_event();
        while let Some(event) = chunk.event_at(window, offset)? {
            if let Some(class) = types.get(&event.kind) {
                let values = event.read_values(window)?;
                match (class.decode(&mut Cursor::new(values, chunk.has_varints)), &mut *sums) {
                    (Some(values), Some(sums)) => {
                        let weight = class.weight(&values, chunk.ticks_per_second);
                        sums.add(event.kind, values, Weight::new(weight))?;
                    }
                    (Some(values), None) => {
                        let weight = Weight::new(class.weight(&values, chunk.ticks_per_second));
                        self.add_events(&values, 1, weight, class, tables, document, sink)?;
                    }
                    (None, _) => self.malformed += 1,
                }
            }
            offset = event.end();
        }
        Ok(offset)
    }

    /// Reports the unit, and what was left out.
    pub(super) fn finish(&self, document: &mut Document<'_>) -> Result<(), Error> {
        document.report_problems(self.malformed, "event", "left out: malformed")
    }

    /// Adds a number of events with one type, thread and stack, whose weights add up to `weight`.
    #[expect(clippy::too_many_arguments, reason = "the state of a chunk and that of the input")]
    fn add_events(
        &mut self,
        event: &Event,
        count: u64,
        weight: Weight,
        class: &EventType,
        tables: &mut ChunkTables<'_>,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        // Many types of events can have a stack, but rarely or never do.
        if event.stack == 0 && !document.events.selects(&class.name) || !document.events.accept_many(&class.name, count)
        {
            return Ok(());
        }
        let (thread, tid) = tables.constants.thread(event.thread);
        let time = Some(tables.chunk.time(event.start));
        let info = SampleInfo { time, comm: thread, tid: u32::try_from(tid).ok(), ..SampleInfo::default() };
        if !self.samples.accept(&info)? {
            return Ok(());
        }
        let weight = if uses_input_weights(self.options) { weight } else { Weight::new(count) };
        self.check_unit(class, document)?;
        document.events.add_weights(count, weight);
        // Copied, because the tables that the thread borrows from gain frames.
        let (thread, tid) = (thread.to_vec(), info.tid);
        tables.find_roots(event, &thread, tid, self.options, sink);
        let is_truncated = tables.add_stack(event.stack, self.options, sink);
        let frames = tables.stacks.get(&event.stack).map_or(&[][..], |range| &tables.stack_frames[range.clone()]);
        let info = SampleInfo { time, comm: &thread, tid, ..SampleInfo::default() };
        self.samples.add(&TimedSample { info, roots: &tables.roots, is_truncated, frames, weight }, sink)
    }

    /// Sets the unit of the weights.
    ///
    /// # Errors
    /// [`Error::Invalid`] if events were counted whose weights have another unit.
    fn check_unit(&mut self, class: &EventType, document: &mut Document<'_>) -> Result<(), Error> {
        let unit = if uses_input_weights(self.options) { class.unit } else { "samples" };
        match self.unit {
            Some(known) if known == unit => Ok(()),
            Some(known) => {
                let groups = group_names();
                Err(Error::Invalid(format!(
                    "{}: the events have weights in {known} and in {unit}, which cannot be added up; name one with \
                     --event ({groups}), or use --weight samples",
                    document.name()
                )))
            }
            None => {
                self.unit = Some(unit);
                document.set_unit(unit);
                Ok(())
            }
        }
    }
}

impl<'a> ChunkTables<'a> {
    fn new(chunk: &'a Chunk, schema: Schema, constants: Constants) -> Self {
        Self {
            chunk,
            schema,
            constants,
            frames: FxHashMap::default(),
            stacks: FxHashMap::default(),
            stack_frames: Vec::new(),
            threads: FxHashMap::default(),
            roots: Vec::new(),
        }
    }

    /// Sets `roots` to the frames of an event's labels and its thread.
    fn find_roots(&mut self, event: &Event, thread: &[u8], tid: Option<u32>, options: &Options, sink: &mut Sink) {
        self.roots.clear();
        for (key, value) in options.labels.iter().zip(&event.labels) {
            let value = self.describe(value);
            if !value.is_empty() {
                self.roots.push(sink.intern(&[key, &b"="[..], &value].concat()));
            }
        }
        let frame = *self.threads.entry(event.thread).or_insert_with(|| {
            let tid = tid.map_or_else(String::new, |tid| tid.to_string());
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

    /// Adds the frames of a stack unless they are known. Returns true if the stack is truncated.
    fn add_stack(&mut self, key: u64, options: &Options, sink: &mut Sink) -> bool {
        let Some(stack) = self.constants.stack(key) else { return false };
        if !self.stacks.contains_key(&key) {
            let start = self.stack_frames.len();
            for frame in self.constants.frames(stack).iter().rev() {
                let found = self.frames.get(frame).copied();
                let id = found.unwrap_or_else(|| intern_frame(&frame_name(*frame, &self.constants, options), sink));
                self.frames.insert(*frame, id);
                self.stack_frames.push(id);
            }
            self.stacks.insert(key, start..self.stack_frames.len());
        }
        stack.is_truncated
    }
}

/// Returns the name of a frame, with the suffix and the line that the options ask for.
fn frame_name(frame: StackFrame, constants: &Constants, options: &Options) -> Vec<u8> {
    let mut name = constants.method_name(frame.method);
    if options.srcline && frame.line > 0 && !name.is_empty() {
        name.extend_from_slice(format!(":{}", frame.line).as_bytes());
    }
    let suffix = match constants.frame_kind(frame.kind) {
        b"Kernel" if options.kernel => markers::KERNEL,
        b"Inlined" if options.jit => markers::INLINED,
        b"JIT compiled" | b"C1 compiled" if options.jit => markers::JIT,
        _ => b"",
    };
    name.extend_from_slice(suffix);
    name
}
