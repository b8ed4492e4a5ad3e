//! Instruments' samples, as `xctrace export` writes them: XML in which whatever is used again has an id and is referred to.
//!
//! ```text
//! <trace-query-result><node …><row><thread id="2" fmt="main …"/><weight id="9" fmt="1.00 ms">1000000</weight>
//! <backtrace id="10"><frame id="11" name="leaf"/><frame id="12" name="main"/></backtrace></row>
//! <row><thread ref="2"/><weight ref="9"/><backtrace ref="10"/></row></node></trace-query-result>
//! ```
//! It is read as it comes. Entities are never defined, so none can grow.

use std::borrow::Cow;
use std::io::{self, BufReader, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use rustc_hash::FxHashMap;

use super::{Format, FormatReader};
use crate::Error;
use crate::bytes::strip_bom;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::{Options, whole};
use crate::markers;
use crate::profile::{FrameId, Weight};
use crate::symbol_name::mangling;

pub(super) static FORMAT: Format = Format {
    name: "xctrace",
    description: "Instruments, from xctrace export (XML)",
    has_times: false,
    recognizes,
    reader: FormatReader::Bytes(read),
};

/// The longest tag or text that is taken.
const LONGEST: usize = 16 << 20;

fn recognizes(head: &[u8]) -> bool {
    let head = strip_bom(head).trim_ascii_start();
    head.starts_with(b"<") && memchr::memmem::find(head, b"<trace-query-result").is_some()
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let options = document.options;
    let weighs = whole::weighs(options);
    let mut rows = Rows::default();
    let result = parse(&mut *document, |event| rows.take(&event, options, weighs, sink));
    match result {
        Ok(()) => {}
        Err(Fault::Xml(what)) => return Err(document.unreadable(what)),
        Err(Fault::Ours(error)) => return Err(error),
    }
    document.unit(match (weighs, rows.cycles) {
        (false, _) => "samples",
        (true, false) => "nanoseconds",
        (true, true) => "cycles",
    });
    if rows.entities {
        document.warn("it defines entities, which are left as they are written");
    }
    document.ends(rows.ended, "</trace-query-result>")
}

enum Fault {
    Xml(String),
    Ours(Error),
}

/// Hands out event after event. A tag that does not end is no reason to read all there is.
fn parse(input: impl Read, mut each: impl FnMut(Event<'_>) -> Result<(), Error>) -> Result<(), Fault> {
    let mut reader = Reader::from_reader(BufReader::new(Bounded { input, left: LONGEST }));
    reader.config_mut().check_end_names = false;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let event =
            event.map_err(|error| Fault::Xml(format!("no XML at byte {}: {error}", reader.error_position())))?;
        if matches!(event, Event::Eof) {
            return Ok(());
        }
        each(event).map_err(Fault::Ours)?;
        reader.get_mut().get_mut().left = LONGEST;
    }
}

/// What is left until the present tag or text is too long.
struct Bounded<R> {
    input: R,
    left: usize,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a single tag or text is longer than 16 MiB"));
        }
        let length = buffer.len().min(self.left);
        let read = self.input.read(&mut buffer[..length])?;
        self.left -= read;
        Ok(read)
    }
}

type Id = String;

/// What was defined, and the present row.
#[derive(Default)]
struct Rows {
    frames: FxHashMap<Id, FrameId>,
    /// Leaf first.
    stacks: FxHashMap<Id, Vec<FrameId>>,
    weights: FxHashMap<Id, Weight>,
    threads: FxHashMap<Id, FrameId>,
    cycles: bool,
    row: Row,
    ended: bool,
    entities: bool,
}

#[derive(Default)]
struct Row {
    thread: Option<FrameId>,
    weight: Option<Weight>,
    stack: Option<Vec<FrameId>>,
    /// The backtraces that have begun: one may stand in another, and both have ids.
    open: Vec<Id>,
    /// The weight whose text comes next.
    weighing: Option<Id>,
}

impl Rows {
    fn take(&mut self, event: &Event<'_>, options: &Options, weighs: bool, sink: &mut Sink) -> Result<(), Error> {
        match event {
            Event::Start(tag) => self.begin(tag, false, options, sink),
            Event::Empty(tag) => self.begin(tag, true, options, sink),
            Event::Text(text) => {
                if let Some(id) = self.row.weighing.take() {
                    let weight = Weight::parse(text.trim_ascii().as_bytes()).unwrap_or_default();
                    self.weights.insert(id, weight);
                    self.row.weight = Some(weight);
                }
            }
            Event::DocType(text) => self.entities |= text.contains("<!ENTITY"),
            Event::End(tag) => match tag.name().as_ref() {
                "row" => return self.end_row(weighs, sink),
                "backtrace" | "tagged-backtrace" => self.end_stack(),
                "trace-query-result" => self.ended = true,
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, tag: &BytesStart<'_>, empty: bool, options: &Options, sink: &mut Sink) {
        let name = tag.name();
        let attribute = |wanted: &str| attribute(tag, wanted);
        let reference = attribute("ref");
        match name.as_ref() {
            "row" => self.row = Row::default(),
            "thread" => {
                let thread = self.thread(tag, reference, sink);
                self.row.thread = thread.filter(|_| options.pid || options.tid);
            }
            "weight" | "cycle-weight" => {
                self.cycles |= name.as_ref() == "cycle-weight";
                match reference {
                    Some(id) => self.row.weight = self.weights.get(&*id).copied(),
                    None => self.row.weighing = attribute("id").map(Cow::into_owned),
                }
            }
            "backtrace" | "tagged-backtrace" => match reference {
                Some(id) => self.row.stack = self.stacks.get(&*id).cloned(),
                None => {
                    self.row.open.push(attribute("id").unwrap_or_default().into_owned());
                    if self.row.open.len() == 1 {
                        self.row.stack = Some(Vec::new());
                    }
                    if empty {
                        self.end_stack();
                    }
                }
            },
            "frame" => {
                let frame = match reference {
                    Some(id) => self.frames.get(&*id).copied(),
                    None => Some(self.define(tag, options, sink)),
                };
                let frame = frame.unwrap_or_else(|| sink.intern(markers::UNKNOWN));
                self.row.stack.get_or_insert_default().push(frame);
            }
            _ => {}
        }
    }

    fn thread(&mut self, tag: &BytesStart<'_>, reference: Option<Cow<'_, str>>, sink: &mut Sink) -> Option<FrameId> {
        if let Some(id) = reference {
            return self.threads.get(&*id).copied();
        }
        let thread = sink.intern(attribute(tag, "fmt").unwrap_or_default().as_bytes());
        self.threads.insert(attribute(tag, "id").unwrap_or_default().into_owned(), thread);
        Some(thread)
    }

    fn define(&mut self, tag: &BytesStart<'_>, options: &Options, sink: &mut Sink) -> FrameId {
        let name = attribute(tag, "name").unwrap_or(Cow::Borrowed("[unknown]"));
        let readable = if options.verbatim { None } else { mangling::demangled(name.as_bytes()) };
        let frame = sink.intern(readable.as_deref().unwrap_or(name.as_bytes()));
        self.frames.insert(attribute(tag, "id").unwrap_or_default().into_owned(), frame);
        frame
    }

    fn end_stack(&mut self) {
        if let (Some(id), Some(stack)) = (self.row.open.pop(), &self.row.stack) {
            self.stacks.insert(id, stack.clone());
        }
    }

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
        whole::add(thread, &stack, weight, sink)
    }
}

/// An attribute's value, its entities replaced as far as XML itself defines them.
fn attribute<'a>(tag: &'a BytesStart<'_>, wanted: &str) -> Option<Cow<'a, str>> {
    let found = tag.attributes().with_checks(false).flatten().find(|found| found.key.as_ref() == wanted)?;
    match found.value.contains('&') {
        false => Some(found.value),
        true => Some(unescaped(&found.value).into()),
    }
}

fn unescaped(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, entity)) = rest.split_once('&') {
        plain.push_str(before);
        // The longest are `&#x10ffff;` and its like.
        let end = entity.bytes().take(10).position(|byte| byte == b';');
        match end.and_then(|end| Some((character(&entity[..end])?, &entity[end + 1..]))) {
            Some((character, behind)) => {
                plain.push(character);
                rest = behind;
            }
            None => {
                plain.push('&');
                rest = entity;
            }
        }
    }
    plain + rest
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}
