//! Samples of Instruments (macOS), as `xctrace export --xpath …` writes them: XML in which each value has an `id` where
//! it first occurs, and later occurrences refer to it.
//!
//! ```text
//! <trace-query-result><node …><row><thread id="2" fmt="main …"/><weight id="9" fmt="1.00 ms">1000000</weight>
//! <backtrace id="10"><frame id="11" name="leaf"/><frame id="12" name="main"/></backtrace></row>
//! <row><thread ref="2"/><weight ref="9"/><backtrace ref="10"/></row></node></trace-query-result>
//! ```
//! The weight is the row's `weight` in nanoseconds or its `cycle-weight` in cycles, or 1 with `--weight samples`. The
//! thread becomes the root frame if `--pid` or `--tid` asks for it. All other columns are left out.
//!
//! The document is read as a stream.

use std::borrow::Cow;

use quick_xml::events::{BytesStart, Event};
use rustc_hash::FxHashMap;

use super::xml::{self, ParseError, find_attribute, parse};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, uses_input_weights};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::markers;
use crate::profile::{FrameId, Weight};
use crate::symbol_name::demangle;

pub(super) static FORMAT: Format = Format {
    name: "xctrace",
    description: "Instruments, xctrace export (XML)",
    tested_with: "published files",
    has_times: false,
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
    let mut rows = Rows::default();
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
#[derive(Default)]
struct Rows {
    frames: FxHashMap<Id, FrameId>,
    /// Stacks of backtraces, leaf first.
    stacks: FxHashMap<Id, Vec<FrameId>>,
    weights: FxHashMap<Id, Weight>,
    threads: FxHashMap<Id, FrameId>,
    /// True if weights are cycles.
    has_cycles: bool,
    row: Row,
    /// True if the end of the document was read.
    is_complete: bool,
    defines_entities: bool,
}

/// A row, which is a sample.
#[derive(Default)]
struct Row {
    thread: Option<FrameId>,
    weight: Option<Weight>,
    /// Frames of the backtrace, leaf first.
    stack: Option<Vec<FrameId>>,
    /// The IDs of the backtraces that are open: one may contain another, and both have IDs.
    open_backtraces: Vec<Id>,
    /// The ID of the weight whose text comes next.
    open_weight: Option<Id>,
}

impl Rows {
    /// Handles an event of the XML parser.
    fn handle(&mut self, event: &Event<'_>, options: &Options, weighs: bool, sink: &mut Sink) -> Result<(), Error> {
        match event {
            Event::Start(tag) => self.begin(tag, false, options, sink),
            Event::Empty(tag) => self.begin(tag, true, options, sink),
            Event::Text(text) => {
                if let Some(id) = self.row.open_weight.take() {
                    let weight = Weight::parse(text.trim_ascii().as_bytes()).unwrap_or_default();
                    self.weights.insert(id, weight);
                    self.row.weight = Some(weight);
                }
            }
            Event::DocType(text) => self.defines_entities |= text.contains("<!ENTITY"),
            Event::End(tag) => match tag.name().as_ref() {
                "row" => return self.end_row(weighs, sink),
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
            "thread" => {
                let thread = self.resolve_thread(tag, reference, sink);
                self.row.thread = thread.filter(|_| options.pid || options.tid);
            }
            "weight" | "cycle-weight" => {
                self.has_cycles |= name.as_ref() == "cycle-weight";
                match reference {
                    Some(id) => self.row.weight = self.weights.get(&*id).copied(),
                    None => self.row.open_weight = find_attribute(tag, "id").map(Cow::into_owned),
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
                let frame = frame.unwrap_or_else(|| sink.intern(markers::UNKNOWN));
                self.row.stack.get_or_insert_default().push(frame);
            }
            _ => {}
        }
    }

    /// Returns the frame of a thread that is defined here or referred to.
    fn resolve_thread(
        &mut self,
        tag: &BytesStart<'_>,
        reference: Option<Cow<'_, str>>,
        sink: &mut Sink,
    ) -> Option<FrameId> {
        if let Some(id) = reference {
            return self.threads.get(&*id).copied();
        }
        let thread = sink.intern(find_attribute(tag, "fmt").unwrap_or_default().as_bytes());
        self.threads.insert(id_attribute(tag), thread);
        Some(thread)
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
    fn end_row(&mut self, weighs: bool, sink: &mut Sink) -> Result<(), Error> {
        let Row { thread, weight, stack, .. } = std::mem::take(&mut self.row);
        if weight.is_none() && stack.is_none() {
            return Ok(());
        }
        let weight = weight.filter(|_| weighs).unwrap_or(Weight::ONE);
        let mut stack = stack.unwrap_or_default();
        if stack.is_empty() {
            stack.push(sink.intern(markers::UNKNOWN));
        }
        stack.reverse();
        add_stack(thread, &stack, weight, sink)
    }
}

/// Returns the `id` attribute, or an empty string.
fn id_attribute(tag: &BytesStart<'_>) -> Id {
    find_attribute(tag, "id").unwrap_or_default().into_owned()
}
