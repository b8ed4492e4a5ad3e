//! `perf script` text (Linux): for each sample a line with its thread and event, then the stack, leaf first, then a
//! blank line.
//!
//! ```text
//! V8 WorkerThread 24636/25607 [000] 94564.109216:     100 cycles:u:
//!         7f0123456789 parse(int)+0x1c (/usr/lib/libfoo.so)
//!               401136 main+0x10 (/srv/app)
//! ```
//!
//! The weight is the period (here 100), or 1 if none is printed or with `--weight samples`. The thread's name is the
//! root frame. Of several events, the first counts unless `--event` names another. Addresses, offsets, modules and
//! annotations of frames are left out unless options ask for them.
//!
//! Without a callchain, the frame is in the first line (`one_line.rs`).
//!
//! A text that ends within a line is cut short, and so is one that ends before the stack of a sample if other samples have
//! one. The format has no end mark. Of a text that was cut after a frame, the missing blank line tells so; but editors remove
//! it, too, so that the last frame must be none with which other stacks end.
//!
//! The columns vary with perf's `-F`, and names of threads, symbols and paths may contain anything. So no field is
//! found by its position alone, and a line that looks like a frame or a sample is never dropped without a message.

mod cut;
mod detect;
mod fast_path;
pub(super) mod frame;
mod header;
mod joined;
pub(super) mod naming;
mod one_line;
pub(super) mod sched;
mod selection;
mod split;
mod symbol_cache;

use std::sync::Arc;

use self::cut::{BlockStacks, FirstStacks, split_cut_line};
pub(in crate::collapse) use self::detect::explain_missing_fields;
use self::detect::recognizes;
pub(super) use self::detect::{begins_sample, has_time_differences};
use self::frame::Frame;
use self::header::{Header, Line};
use self::joined::split_joined;
use self::naming::Naming;
use self::selection::Selection;
use self::split::Lines;
use self::symbol_cache::{SymbolCache, join_key};
use crate::Error;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::input_summary::InputSummary;
use crate::collapse::options::Options;
use crate::collapse::parser::{BlockReport, Parser};
use crate::collapse::sink::Sink;
use crate::collapse::spans::Spans;
use crate::collapse::timeline::SampleTime;
use crate::markers;
use crate::profile::byte_map::{ByteMap, Key};
use crate::profile::{FrameId, Weight, Weights};
use crate::symbol_name::inlined;

pub(super) static FORMAT: Format = Format {
    name: "perf-script",
    description: "perf script text (Linux)",
    tested_with: "perf 6.1, published files",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Blocks {
        find_boundary: split::last_sample_end,
        new_parser: |options| Box::new(PerfScript::new(options)),
    },
};

/// The parser of `perf script` text.
struct PerfScript {
    symbols: SymbolCache,
    selection: Selection,
    spans: Option<Arc<Spans>>,
    /// The frames of the spans that contain the sample.
    span_frames: Vec<FrameId>,
    roots: ByteMap<Root>,
    /// A buffer for the keys of `roots`.
    key: Vec<u8>,
    /// The current sample's frames, leaf first.
    stack: Vec<FrameId>,
    /// The stacks of the first block; `None` before it was read.
    first_stacks: Option<Arc<FirstStacks>>,
    /// Those of the current block.
    stacks: BlockStacks,
    lost: u64,
}

/// The root frame, which is the thread.
#[derive(Clone, Copy)]
struct Root {
    frame: FrameId,
    is_java: bool,
}

/// The state of the parser between lines.
#[derive(Clone, Copy)]
enum State<'a> {
    /// Not in a sample.
    Outside,
    /// In a sample that is not selected.
    Skipped(Skipped),
    /// In a sample.
    Sample(Sample<'a>),
}

/// A sample that is not selected.
#[derive(Clone, Copy, Default)]
struct Skipped {
    /// True if its first line has only the thread.
    is_bare: bool,
    has_frames: bool,
}

/// The sample that is being read.
#[derive(Clone, Copy)]
struct Sample<'a> {
    root: Root,
    weight: Weight,
    /// `None` if times are not needed.
    time: Option<SampleTime>,
    event: &'a [u8],
    /// The frame in its first line.
    frame: Option<Frame<'a>>,
    /// True if its first line has only the thread.
    is_bare: bool,
    /// True if `--skip-after` has made a frame the root: the frames after it are left out.
    has_root: bool,
}

impl Parser for PerfScript {
    fn parse(&mut self, text: &[u8], sink: &mut Sink, report: &mut BlockReport) -> Result<(), Error> {
        let (complete, cut_line) = if report.is_last { split_cut_line(text) } else { (text, &b""[..]) };
        let mut lines = Lines::new(complete);
        self.stacks.clear();
        let mut state = State::Outside;
        let mut keys = Vec::new();
        loop {
            if matches!(state, State::Sample(_)) {
                while let Some((key, rest)) = self.symbols.parse_fast(lines.remaining()) {
                    keys.push(key);
                    lines = Lines::new(rest);
                }
                report.lines += keys.len() as u64;
                self.push_keys(&mut keys, &mut state, sink);
            }
            let mut text = lines.remaining();
            let Some(mut line) = lines.next() else { break };
            report.lines += 1;
            if let Some((frame, header)) = split_joined(line) {
                self.parse_frame(frame, b"", &mut state, sink);
                (line, text) = (header, &text[frame.len()..]);
            }
            if line.trim_ascii().is_empty() {
                // A sample without frames stays open: some versions of perf print a blank line before the frames.
                if !self.stack.is_empty() || matches!(state, State::Skipped(Skipped { has_frames: true, .. })) {
                    self.stacks.end_with_blanks = true;
                    self.finish_sample(&mut state, sink)?;
                }
            } else if line[0] != b'\t' && report.leave_out_start(line, text, lines.remaining(), FORMAT.name) {
                self.finish_sample(&mut state, sink)?;
            } else if line[0] != b'\t' || !self.parse_frame(line, lines.remaining(), &mut state, sink) {
                self.parse_line(line, text, lines.remaining(), &mut state, sink, report)?;
            }
        }
        if report.is_last {
            self.finish_input(cut_line, &mut state, sink, report)?;
        }
        self.finish_sample(&mut state, sink)?;
        self.first_stacks.get_or_insert_with(|| Arc::new(self.stacks.named(sink)));
        Ok(())
    }

    fn fork(&self) -> Option<Box<dyn Parser>> {
        let selection = self.selection.fork()?;
        let parser = Self::from_parts(self.symbols.naming.clone(), selection, self.spans.clone());
        Some(Box::new(Self { first_stacks: self.first_stacks.clone(), ..parser }))
    }

    fn summary(&self) -> InputSummary {
        InputSummary { events: self.selection.events.seen().to_vec(), lost_samples: self.lost, unit: None }
    }
}

impl PerfScript {
    fn new(options: &Options) -> Self {
        Self::from_parts(Naming::new(options), Selection::new(options), options.spans.clone())
    }

    fn from_parts(naming: Naming, selection: Selection, spans: Option<Arc<Spans>>) -> Self {
        let symbols = SymbolCache::new(naming);
        Self {
            symbols,
            selection,
            spans,
            span_frames: vec![],
            roots: ByteMap::default(),
            key: vec![],
            stack: vec![],
            first_stacks: None,
            stacks: BlockStacks::default(),
            lost: 0,
        }
    }

    /// Pushes the frames of lines that the fast path has parsed. The symbols are looked up in a row, so that their
    /// cache misses overlap.
    #[inline]
    fn push_keys(&mut self, keys: &mut Vec<Key<'_>>, state: &mut State<'_>, sink: &mut Sink) {
        let State::Sample(sample) = state else { return };
        for key in keys.drain(..) {
            match self.symbols.find(key, sample.root.is_java) {
                Some(id) if !sample.has_root => self.stack.push(id),
                _ => self.push(&Frame::from_symbol(key.bytes()), sample, sink),
            }
        }
    }

    /// Parses the line of a frame. Returns false if it is not a frame, or outside a sample.
    fn parse_frame(&mut self, line: &[u8], next: &[u8], state: &mut State<'_>, sink: &mut Sink) -> bool {
        match state {
            State::Outside => false,
            State::Skipped(skipped) => {
                let is_frame = line[0] == b'\t' || frame::is_frame(line);
                skipped.has_frames |= is_frame;
                is_frame
            }
            State::Sample(sample) => {
                let Some(mut frame) = frame::parse(line) else { return false };
                if self.symbols.naming.srcline {
                    frame.source = frame::parse_source(Lines::new(next).next().unwrap_or_default());
                }
                self.push(&frame, sample, sink);
                true
            }
        }
    }

    /// Parses a line that is neither blank nor an ordinary frame.
    fn parse_line<'a>(
        &mut self,
        line: &'a [u8],
        text: &[u8],
        next: &[u8],
        state: &mut State<'a>,
        sink: &mut Sink,
        report: &mut BlockReport,
    ) -> Result<(), Error> {
        let is_outside = matches!(state, State::Outside);
        let is_frame = frame::is_frame(line);
        match header::parse(line) {
            // A line that could be both is a frame, unless it has a time or a frame of its own.
            Some(Line::Sample(header)) if is_outside || !is_frame || header.is_certain() => {
                self.finish_sample(state, sink)?;
                *state = self.begin_sample(&header, sink, report);
                return Ok(());
            }
            Some(Line::Record) => return self.finish_sample(state, sink),
            Some(Line::Lost(samples)) => {
                self.lost = self.lost.saturating_add(samples);
                return self.finish_sample(state, sink);
            }
            _ => {}
        }
        if line[0] == b'#' {
            report.add_comment(line);
            return Ok(());
        }
        if self.parse_frame(line, next, state, sink) {
            return Ok(());
        }
        // Where a sample began with more than a thread, all do: `Starting worker 5` is none.
        let is_expected = match state {
            State::Outside => true,
            State::Skipped(skipped) => skipped.is_bare && !is_frame,
            State::Sample(sample) => sample.is_bare && !is_frame,
        };
        let bare = header::parse_bare(line).filter(|_| is_expected);
        if let Some(header) = bare.filter(|_| frame::is_indented_frame(next)) {
            self.finish_sample(state, sink)?;
            *state = self.begin_sample(&header, sink, report);
            match state {
                State::Sample(sample) => sample.is_bare = true,
                State::Skipped(skipped) => skipped.is_bare = true,
                State::Outside => {}
            }
        } else if is_outside && is_frame {
            report.add_stray(line, text, "the frame belongs to no sample", FORMAT.name);
        } else if !frame::is_annotation(line) {
            report.add_stray(line, text, "expected the first line of a sample or a frame", FORMAT.name);
        }
        Ok(())
    }

    /// Returns the state after the first line of a sample.
    fn begin_sample<'a>(&mut self, header: &Header<'a>, sink: &mut Sink, report: &mut BlockReport) -> State<'a> {
        match self.selection.select_weight(header, sink, report) {
            None => State::Skipped(Skipped::default()),
            Some(weight) => {
                let time = if sink.needs_times() { selection::sample_time(header, sink) } else { None };
                let root = self.find_root(header, sink);
                self.span_frames.clear();
                if let Some(spans) = &self.spans {
                    selection::push_span_frames(spans, header, sink, report, &mut self.span_frames);
                }
                let (event, frame) = (header.event.unwrap_or_default(), header.frame());
                State::Sample(Sample { root, weight, time, event, frame, is_bare: false, has_root: false })
            }
        }
    }

    /// Returns the root frame of a sample's thread.
    fn find_root(&mut self, header: &Header<'_>, sink: &mut Sink) -> Root {
        self.key.clear();
        let key = match self.symbols.naming.uses_comm_only() {
            true => header.comm,
            false => join_key(&mut self.key, header.comm, header.id),
        };
        let key = Key::new(key);
        self.roots.get(key).unwrap_or_else(|| {
            let name = self.symbols.naming.thread_frame(header);
            let root = Root { frame: sink.intern(&name), is_java: inlined::is_java_thread(&name) };
            self.roots.insert(key, root);
            root
        })
    }

    fn push(&mut self, frame: &Frame<'_>, sample: &mut Sample<'_>, sink: &mut Sink) {
        if sample.has_root {
            return;
        }
        sample.has_root = self.symbols.push(frame, sample.root.is_java, &mut self.stack, sink);
    }

    /// Adds the current sample, if there is one. A sample without frames gets the frame in its first line, if there is
    /// one; else its thread alone is its stack.
    fn finish_sample(&mut self, state: &mut State<'_>, sink: &mut Sink) -> Result<(), Error> {
        let State::Sample(mut sample) = std::mem::replace(state, State::Outside) else { return Ok(()) };
        if let Some(outermost) = self.stack.last() {
            self.stacks.add(*outermost, sample.event);
        }
        if self.stack.is_empty()
            && let Some(frame) = sample.frame
        {
            self.push(&frame, &mut sample, sink);
        }
        let is_nameless = sink.frames().name(sample.root.frame).is_empty();
        if self.stack.is_empty() && is_nameless {
            self.stack.push(sink.intern(markers::UNKNOWN));
        }
        if !sample.has_root && !is_nameless {
            self.stack.push(sample.root.frame);
        }
        self.stack.extend(self.span_frames.iter().rev());
        self.stack.reverse();
        let added = sink.add_timed(&self.stack, Weights::plain(sample.weight), sample.time);
        self.stack.clear();
        added
    }
}
