//! `perf script` text: a line that says who ran and which event fired, then the stack, leaf first, then a blank line.
//!
//! ```text
//! V8 WorkerThread 24636/25607 [000] 94564.109216:     100 cycles:u:
//!         7f0123456789 parse(int)+0x1c (/usr/lib/libfoo.so)
//!               401136 main+0x10 (/srv/app)
//! ```
//!
//! The columns vary with perf's `-F`; names, threads and paths may hold anything. Nothing is looked for by its position
//! alone, and what reads as a frame or a sample is never dropped in silence.

mod cut;
pub(super) mod frame;
mod header;
pub(super) mod name;
pub(super) mod sched;
mod selection;
mod symbols;
mod usual;

use std::sync::Arc;

use self::frame::Frame;
use self::header::{Header, Line};
use self::name::Naming;
use self::selection::Selection;
use self::symbols::Symbols;
use super::folded;
use crate::Error;
use crate::collapse::sink::Sink;
use crate::collapse::spans::Spans;
use crate::collapse::timeline::SampleTime;
use crate::collapse::{Counts, Format, FormatReader, Options, Parser, Remarks};
use crate::markers;
use crate::profile::byte_map::{ByteMap, Key};
use crate::profile::{FrameId, Weight, Weights};
use crate::symbol_name::inlined;

pub(super) static FORMAT: Format = Format {
    name: "perf-script",
    description: "perf script text (Linux)",
    has_times: true,
    recognizes,
    reader: FormatReader::Blocks {
        find_boundary: cut::after_last_sample,
        new_parser: |options| Box::new(PerfScript::new(options)),
    },
};

/// A line says who ran and which event fired, or the file begins as perf's own comments do.
fn recognizes(head: &[u8]) -> bool {
    if folded::is_certain(head) {
        return false;
    }
    let mut lines = cut::Lines::new(head);
    while let Some(line) = lines.next() {
        let framed = || frame::parse(lines.clone().next().unwrap_or_default()).is_some_and(is_named);
        match header::parse(line) {
            Some(Line::Record | Line::Lost(_)) => return true,
            Some(Line::Sample(header)) if header.time.is_some() && header.event.is_some() => return true,
            Some(Line::Sample(_)) if framed() => return true,
            _ if header::bare(line).is_some() && frame::is_indented(lines.rest()) && framed() => return true,
            _ => {}
        }
    }
    head.starts_with(b"# ========\n")
}

/// Whether a frame looks like one of perf's and not like a line of numbers.
fn is_named(frame: Frame<'_>) -> bool {
    frame.module.is_some() || frame.symbol.trim_ascii_start().first().is_some_and(|first| !first.is_ascii_digit())
}

/// The parser.
struct PerfScript {
    symbols: Symbols,
    selection: Selection,
    spans: Option<Arc<Spans>>,
    roots: ByteMap<Root>,
    /// What the last root was looked up by.
    key: Vec<u8>,
    /// The present sample's frames, leaf first.
    stack: Vec<FrameId>,
    lost: u64,
}

/// The root frame, which is the thread.
#[derive(Clone, Copy)]
struct Root {
    frame: FrameId,
    java: bool,
}

/// Where in the text we are.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// Between samples.
    Outside,
    /// In a sample that does not count.
    LeftOut,
    /// In a sample.
    Sample(Sample<'a>),
}

/// The sample whose lines are read.
#[derive(Clone, Copy)]
struct Sample<'a> {
    root: Root,
    weight: Weight,
    /// If that is asked for.
    moment: Option<SampleTime>,
    /// Likewise.
    span: Option<FrameId>,
    /// What follows the event in its first line.
    rest: &'a [u8],
    /// Whether the frame that is to be the root was read.
    complete: bool,
}

impl Parser for PerfScript {
    fn parse(&mut self, text: &[u8], sink: &mut Sink, remarks: &mut Remarks) -> Result<(), Error> {
        let whole = without_cut_line(text);
        let mut lines = cut::Lines::new(whole);
        let mut place = Place::Outside;
        let mut usual = Vec::new();
        loop {
            if matches!(place, Place::Sample(_)) {
                while let Some((key, rest)) = self.symbols.usual(lines.rest()) {
                    usual.push(key);
                    lines = cut::Lines::new(rest);
                }
                remarks.lines += usual.len() as u64;
                self.push_all(&mut usual, &mut place, sink);
            }
            let Some(line) = lines.next() else { break };
            remarks.lines += 1;
            if line.trim_ascii().is_empty() {
                // A sample without frames stays open: some versions of perf print a blank line before them.
                if !self.stack.is_empty() {
                    self.finish(&mut place, sink)?;
                }
            } else if line[0] != b'\t' || !self.frame(line, lines.rest(), &mut place, sink) {
                self.other(line, lines.rest(), &mut place, sink, remarks)?;
            }
        }
        if whole.len() < text.len() {
            remarks.lines += 1;
            remarks.malformed("the input ends within this line: it was cut short");
        }
        self.finish(&mut place, sink)
    }

    fn fork(&self) -> Option<Box<dyn Parser>> {
        Some(Box::new(Self::with(self.symbols.naming.clone(), self.selection.fork()?, self.spans.clone())))
    }

    fn counts(&self) -> Counts {
        Counts { events: self.selection.events.seen().to_vec(), lost: self.lost, unit: None }
    }
}

/// The text without a last line that was cut off: a frame without the end of a line, and without the `(module)` that
/// the line before it has. Half a name would be a function that is not there.
fn without_cut_line(text: &[u8]) -> &[u8] {
    let Some(end) = memchr::memrchr(b'\n', text).map(|end| end + 1) else { return text };
    let (before, last) = text.split_at(end);
    let is_frame = matches!(last.first(), Some(b' ' | b'\t')) && !last.trim_ascii().is_empty();
    let has_module = |line: &[u8]| line.trim_ascii_end().ends_with(b")");
    if is_frame && !has_module(last) && has_module(before) { before } else { text }
}

impl PerfScript {
    fn new(options: &Options) -> Self {
        Self::with(Naming::new(options), Selection::new(options), options.spans.clone())
    }

    fn with(naming: Naming, selection: Selection, spans: Option<Arc<Spans>>) -> Self {
        let symbols = Symbols::new(naming);
        Self { symbols, selection, spans, roots: ByteMap::default(), key: vec![], stack: vec![], lost: 0 }
    }

    /// Takes the symbols of usual lines. They are looked up in a row, so that waiting for far memory overlaps.
    #[inline]
    fn push_all(&mut self, keys: &mut Vec<Key<'_>>, place: &mut Place<'_>, sink: &mut Sink) {
        let Place::Sample(sample) = place else { return };
        for key in keys.drain(..) {
            match self.symbols.known(key, sample.root.java) {
                Some(id) if !sample.complete => self.stack.push(id),
                _ => self.push(&Frame::of_symbol(key.bytes()), sample, sink),
            }
        }
    }

    /// Takes a frame's line; `false` if it is none, or stands outside a sample.
    fn frame(&mut self, line: &[u8], next: &[u8], place: &mut Place<'_>, sink: &mut Sink) -> bool {
        match place {
            Place::Outside => false,
            Place::LeftOut => true,
            Place::Sample(sample) => {
                let Some(mut frame) = frame::parse(line) else { return false };
                if self.symbols.naming.srcline {
                    frame.source = frame::source(cut::Lines::new(next).next().unwrap_or_default());
                }
                self.push(&frame, sample, sink);
                true
            }
        }
    }

    /// Takes a line that is neither blank nor an ordinary frame.
    fn other<'a>(
        &mut self,
        line: &'a [u8],
        next: &[u8],
        place: &mut Place<'a>,
        sink: &mut Sink,
        remarks: &mut Remarks,
    ) -> Result<(), Error> {
        let outside = matches!(place, Place::Outside);
        let framed = frame::is_frame(line);
        match header::parse(line) {
            // A line that reads as both is a frame, unless it tells the time.
            Some(Line::Sample(header)) if outside || !framed || header.time.is_some() => {
                self.finish(place, sink)?;
                *place = self.begin(&header, sink, remarks);
                return Ok(());
            }
            Some(Line::Record) => return self.finish(place, sink),
            Some(Line::Lost(samples)) => {
                self.lost = self.lost.saturating_add(samples);
                return self.finish(place, sink);
            }
            _ => {}
        }
        if line[0] == b'#' || self.frame(line, next, place, sink) {
            return Ok(());
        }
        if let Some(header) = header::bare(line).filter(|_| (outside || !framed) && frame::is_indented(next)) {
            self.finish(place, sink)?;
            *place = self.begin(&header, sink, remarks);
        } else if outside && framed {
            remarks.malformed("a frame that belongs to no sample");
        } else if !frame::is_annotation(line) {
            remarks.malformed("neither the first line of a sample nor a frame");
        }
        Ok(())
    }

    fn begin<'a>(&mut self, header: &Header<'a>, sink: &mut Sink, remarks: &mut Remarks) -> Place<'a> {
        match self.selection.weigh(header, remarks) {
            None => Place::LeftOut,
            Some(weight) => {
                let moment = if sink.keeps_times() { selection::moment(header, sink) } else { None };
                let root = self.root(header, sink);
                let span = self.spans.as_ref().map(|spans| selection::span(spans, header, sink, remarks));
                Place::Sample(Sample { root, weight, moment, span, rest: header.rest, complete: false })
            }
        }
    }

    fn root(&mut self, header: &Header<'_>, sink: &mut Sink) -> Root {
        self.key.clear();
        let key = match self.symbols.naming.by_comm() {
            true => header.comm,
            false => two_parts(&mut self.key, header.comm, header.id),
        };
        let key = Key::new(key);
        self.roots.get(key).unwrap_or_else(|| {
            let name = self.symbols.naming.thread(header);
            let root = Root { frame: sink.intern(&name), java: inlined::is_java_thread(&name) };
            self.roots.insert(key, root);
            root
        })
    }

    fn push(&mut self, frame: &Frame<'_>, sample: &mut Sample<'_>, sink: &mut Sink) {
        if sample.complete {
            return;
        }
        sample.complete = self.symbols.push(frame, sample.root.java, &mut self.stack, sink);
    }

    /// Ends the present sample, if there is one. One without frames counts for its thread.
    fn finish(&mut self, place: &mut Place<'_>, sink: &mut Sink) -> Result<(), Error> {
        let Place::Sample(mut sample) = std::mem::replace(place, Place::Outside) else { return Ok(()) };
        if self.stack.is_empty()
            && let Some(frame) = frame::parse(sample.rest).filter(|frame| frame.module.is_some())
        {
            self.push(&frame, &mut sample, sink);
        }
        if self.stack.is_empty() && sink.frames().name(sample.root.frame).is_empty() {
            self.stack.push(sink.intern(markers::UNKNOWN));
        }
        if !sample.complete {
            self.stack.push(sample.root.frame);
        }
        self.stack.extend(sample.span);
        self.stack.reverse();
        let added = sink.add_at(&self.stack, Weights::plain(sample.weight), sample.moment);
        self.stack.clear();
        added
    }
}

/// Both parts as one text from which they can be told.
fn two_parts<'a>(text: &'a mut Vec<u8>, first: &[u8], second: &[u8]) -> &'a [u8] {
    text.clear();
    text.extend_from_slice(first);
    text.push(0);
    text.extend_from_slice(second);
    text
}
