//! Samples of Instruments (macOS), as `xctrace export --xpath …` writes them: XML in which each value has an `id` where
//! it first occurs, and later occurrences refer to it.
//!
//! ```text
//! <trace-query-result><node …><row><thread id="2" fmt="main …"/><weight id="9" fmt="1.00 ms">1000000</weight>
//! <backtrace id="10"><frame id="11" name="leaf"/><frame id="12" name="main"/></backtrace></row>
//! <row><thread ref="2"/><weight ref="9"/><backtrace ref="10"/></row></node></trace-query-result>
//! ```
//! The weight is the row's `weight` in nanoseconds or its `cycle-weight` in cycles, or 1 with `--weight samples`. The
//! thread becomes the root frame if `--pid` or `--tid` asks for it. Times (`sample-time`) are in nanoseconds. All other columns are
//! left out.
//!
//! The document is read as a stream.

use std::borrow::Cow;

use quick_xml::events::{BytesStart, Event};
use rustc_hash::FxHashMap;

use super::xml::{self, ParseError, find_attribute, parse};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{count_truncated_frames, uses_input_weights};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::parse_number;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::markers;
use crate::profile::{FrameId, Weight};
use crate::symbol_name::demangle;

pub(super) static FORMAT: Format = Format {
    name: "xctrace",
    description: "Instruments, xctrace export (XML)",
    tested_with: "published files",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Bytes(read),
};

fn recognizes(head: &[u8]) -> bool {
    xml::begins(head) && memchr::memmem::find(head, b"<trace-query-result").is_some()
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let options = document.options;
    let weighs = uses_input_weights(options);
    let mut rows = Rows::new(options);
    match parse(&mut *document, |event| rows.handle(&event, options, weighs, sink)) {
        Ok(()) => {}
        Err(ParseError::Xml(what)) => return Err(document.unreadable(what)),
        Err(ParseError::Handler(error)) => return Err(error),
    }
    document.set_unit(match (weighs, rows.has_cycles) {
        (false, _) => "samples",
        (true, false) => "nanoseconds",
        (true, true) => "cycles",
    });
    if rows.defines_entities {
        document.warn("it defines entities, which are not replaced");
    }
    document.check_end(rows.is_complete, "</trace-query-result>")
}

type Id = String;

/// The values that have been defined, and the current row.
struct Rows {
    frames: FxHashMap<Id, FrameId>,
    /// Stacks of backtraces, leaf first.
    stacks: FxHashMap<Id, Vec<FrameId>>,
    weights: FxHashMap<Id, Weight>,
    threads: FxHashMap<Id, Thread>,
    /// The IDs of processes.
    processes: FxHashMap<Id, u32>,
    /// Times and CPUs.
    numbers: FxHashMap<Id, u64>,
    samples: TimedSamples,
    /// The thread and the process that are being defined.
    open_thread: Option<Id>,
    open_process: Option<Id>,
    /// The value whose text comes next.
    open_value: Option<Value>,
    /// True if weights are cycles.
    has_cycles: bool,
    row: Row,
    /// True if the end of the document was read.
    is_complete: bool,
    defines_entities: bool,
}

/// A thread as a row shows it, with its numbers.
#[derive(Clone)]
struct Thread {
    frame: FrameId,
    name: Vec<u8>,
    tid: Option<u32>,
    process: Option<Id>,
}

/// A value that is text, and the ID with which later rows refer to it.
enum Value {
    Weight(Id),
    Time(Id),
    Cpu(Id),
    Pid,
    Tid,
}

/// A row, which is a sample.
#[derive(Default)]
struct Row {
    thread: Option<Id>,
    time: Option<u64>,
    cpu: Option<u64>,
    weight: Option<Weight>,
    /// Frames of the backtrace, leaf first.
    stack: Option<Vec<FrameId>>,
    /// The IDs of the backtraces that are open: one may contain another, and both have IDs.
    open_backtraces: Vec<Id>,
}

impl Rows {
    fn new(options: &Options) -> Self {
        Self {
            frames: FxHashMap::default(),
            stacks: FxHashMap::default(),
            weights: FxHashMap::default(),
            threads: FxHashMap::default(),
            processes: FxHashMap::default(),
            numbers: FxHashMap::default(),
            samples: TimedSamples::new(options),
            open_thread: None,
            open_process: None,
            open_value: None,
            has_cycles: false,
            row: Row::default(),
            is_complete: false,
            defines_entities: false,
        }
    }

    /// Handles an event of the XML parser.
    fn handle(&mut self, event: &Event<'_>, options: &Options, weighs: bool, sink: &mut Sink) -> Result<(), Error> {
        match event {
            Event::Start(tag) => self.begin(tag, false, options, sink),
            Event::Empty(tag) => self.begin(tag, true, options, sink),
            Event::Text(text) => {
                if let Some(value) = self.open_value.take() {
                    self.define_value(value, text.trim_ascii().as_bytes());
                }
            }
            Event::DocType(text) => self.defines_entities |= text.contains("<!ENTITY"),
            Event::End(tag) => match tag.name().as_ref() {
                "row" => return self.end_row(weighs, options, sink),
                "thread" => self.open_thread = None,
                "process" => self.open_process = None,
                "backtrace" | "tagged-backtrace" => self.end_backtrace(),
                "trace-query-result" => self.is_complete = true,
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// Handles a start tag, or an empty-element tag.
    fn begin(&mut self, tag: &BytesStart<'_>, is_empty: bool, options: &Options, sink: &mut Sink) {
        let name = tag.name();
        let reference = find_attribute(tag, "ref");
        match name.as_ref() {
            "row" => self.row = Row::default(),
            "thread" => self.begin_thread(tag, is_empty, reference, sink),
            "process" => self.begin_process(tag, is_empty, reference),
            "tid" => self.open_value = Some(Value::Tid),
            "pid" => self.open_value = Some(Value::Pid),
            "sample-time" => match reference {
                Some(id) => self.row.time = self.numbers.get(&*id).copied(),
                None => self.open_value = Some(Value::Time(id_attribute(tag))),
            },
            "core" => match reference {
                Some(id) => self.row.cpu = self.numbers.get(&*id).copied(),
                None => self.open_value = Some(Value::Cpu(id_attribute(tag))),
            },
            "weight" | "cycle-weight" => {
                self.has_cycles |= name.as_ref() == "cycle-weight";
                match reference {
                    Some(id) => self.row.weight = self.weights.get(&*id).copied(),
                    None => self.open_value = Some(Value::Weight(id_attribute(tag))),
                }
            }
            "backtrace" | "tagged-backtrace" => match reference {
                Some(id) => self.row.stack = self.stacks.get(&*id).cloned(),
                None => {
                    self.row.open_backtraces.push(id_attribute(tag));
                    if self.row.open_backtraces.len() == 1 {
                        self.row.stack = Some(Vec::new());
                    }
                    if is_empty {
                        self.end_backtrace();
                    }
                }
            },
            "frame" => {
                let frame = match reference {
                    Some(id) => self.frames.get(&*id).copied(),
                    None => Some(self.define_frame(tag, options, sink)),
                };
                let frame = frame.unwrap_or_else(|| sink.missing_frame());
                self.row.stack.get_or_insert_default().push(frame);
            }
            _ => {}
        }
    }

    /// Handles a thread that is defined here or referred to.
    fn begin_thread(&mut self, tag: &BytesStart<'_>, is_empty: bool, reference: Option<Cow<'_, str>>, sink: &mut Sink) {
        let id = reference.as_deref().map_or_else(|| id_attribute(tag), str::to_owned);
        if reference.is_none() {
            let shown = find_attribute(tag, "fmt").unwrap_or_default();
            // The name is the part before its address: `main  0x8480c1 (app, pid: 7)`.
            let name = shown.split("  ").next().unwrap_or_default().as_bytes().to_vec();
            let thread = Thread { frame: sink.intern(shown.as_bytes()), name, tid: None, process: None };
            self.threads.insert(id.clone(), thread);
            self.open_thread = (!is_empty).then(|| id.clone());
        }
        self.row.thread = Some(id);
    }

    /// Handles a process that is defined here or referred to; it belongs to the thread around it.
    fn begin_process(&mut self, tag: &BytesStart<'_>, is_empty: bool, reference: Option<Cow<'_, str>>) {
        let id = reference.as_deref().map_or_else(|| id_attribute(tag), str::to_owned);
        self.open_process = (reference.is_none() && !is_empty).then(|| id.clone());
        if let Some(thread) = self.open_thread.as_ref().and_then(|thread| self.threads.get_mut(thread)) {
            thread.process = Some(id);
        }
    }

    /// Handles the text of a value.
    fn define_value(&mut self, value: Value, text: &[u8]) {
        let number = parse_number(text);
        let small = number.and_then(|number| u32::try_from(number).ok());
        match value {
            Value::Weight(id) => {
                let weight = Weight::parse(text).unwrap_or_default();
                self.weights.insert(id, weight);
                self.row.weight = Some(weight);
            }
            Value::Time(id) => {
                self.numbers.extend(number.map(|number| (id, number)));
                self.row.time = number;
            }
            Value::Cpu(id) => {
                self.numbers.extend(number.map(|number| (id, number)));
                self.row.cpu = number;
            }
            Value::Pid => self.processes.extend(self.open_process.clone().zip(small)),
            Value::Tid => {
                if let Some(thread) = self.open_thread.as_ref().and_then(|id| self.threads.get_mut(id)) {
                    thread.tid = small;
                }
            }
        }
    }

    fn define_frame(&mut self, tag: &BytesStart<'_>, options: &Options, sink: &mut Sink) -> FrameId {
        let name = find_attribute(tag, "name");
        let name = name.as_ref().map_or(markers::UNKNOWN, |name| name.as_bytes());
        let demangled = if options.verbatim { None } else { demangle::try_demangle(name) };
        let frame = sink.intern(demangled.as_deref().unwrap_or(name));
        self.frames.insert(id_attribute(tag), frame);
        frame
    }

    fn end_backtrace(&mut self) {
        if let (Some(id), Some(stack)) = (self.row.open_backtraces.pop(), &self.row.stack) {
            self.stacks.insert(id, stack.clone());
        }
    }

    /// Adds the sample of the current row, if it has a weight or a stack.
    fn end_row(&mut self, weighs: bool, options: &Options, sink: &mut Sink) -> Result<(), Error> {
        let Row { thread, time, cpu, weight, stack, .. } = std::mem::take(&mut self.row);
        if weight.is_none() && stack.is_none() {
            return Ok(());
        }
        let thread = thread.and_then(|id| self.threads.get(&id));
        let pid = thread.and_then(|thread| self.processes.get(thread.process.as_ref()?)).copied();
        let info = SampleInfo {
            time,
            comm: thread.map_or(&b""[..], |thread| &thread.name),
            pid,
            tid: thread.and_then(|thread| thread.tid),
            cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
        };
        if !self.samples.accept(&info, sink)? {
            return Ok(());
        }
        let weight = weight.filter(|_| weighs).unwrap_or(Weight::ONE);
        let root = thread.map(|thread| thread.frame).filter(|_| options.pid || options.tid);
        let mut frames = stack.unwrap_or_default();
        frames.reverse();
        let left_out = count_truncated_frames(frames.len());
        sink.cut_stacks += u64::from(left_out > 0);
        let (roots, is_truncated, frames) = (root.as_slice(), left_out > 0, &frames[left_out..]);
        self.samples.add(&TimedSample { info, roots, is_truncated, frames, weight }, sink)
    }
}

/// Returns the `id` attribute, or an empty string.
fn id_attribute(tag: &BytesStart<'_>) -> Id {
    find_attribute(tag, "id").unwrap_or_default().into_owned()
}
