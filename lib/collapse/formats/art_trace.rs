//! Method traces of Android's runtime (`.trace`, `Debug.startMethodTracing`): a text with threads and methods, and the
//! entries into methods and exits from them.
//!
//! The weight is the time in microseconds that a method takes without those that it calls, on the wall clock; `--event
//! cpu` asks for the time that its thread ran. The thread is the root frame. Traces that were sampled look the same. In
//! traces of the streaming mode, threads and methods are described among the entries.
//! Files and lines are left out unless `--srcline` asks for them. Specification: `runtime/trace.cc` of ART.

mod streamed;

use std::collections::BTreeMap;

use bstr::ByteSlice as _;
use rustc_hash::FxHashMap;

use self::streamed::{Streamed, is_streamed};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, read_bytes};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::formats::little_endian::Bytes;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "art-trace",
    description: "method traces of Android's runtime (.trace)",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Head(|head| {
        head.starts_with(TEXT) && head.contains_str("\n*threads\n") || is_streamed(head)
    }),
    reader: FormatReader::Bytes(read),
};

/// The first line of the text.
const TEXT: &[u8] = b"*version\n";

/// The first bytes after the text.
const MAGIC: &[u8] = b"SLOW";

/// The text before the entries.
#[derive(Default)]
struct Header {
    has_cpu_time: bool,
    has_wall_time: bool,
    threads: FxHashMap<u16, Vec<u8>>,
    methods: FxHashMap<u32, Vec<u8>>,
}

/// The open calls of a thread.
#[derive(Default)]
struct Thread {
    frames: Vec<FrameId>,
    methods: Vec<u32>,
    /// The number of open calls of each method.
    open: FxHashMap<u32, u32>,
    /// The time of the last entry or exit.
    last: Option<u64>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    if is_streamed(&bytes) {
        let Some(trace) = Streamed::parse(&bytes, document.options) else {
            return Err(document.unreadable("damaged: its header is not complete"));
        };
        add_records(&bytes, &trace.header, trace.records.into_iter(), document, sink)?;
        document.check_end(trace.is_complete, "its last record does")?;
        return document.check_nothing_follows((bytes.len() - trace.rest.len()) as u64, trace.rest);
    }
    let end = bytes.find(b"\n*end\n").map(|end| end + b"\n*end\n".len());
    let Some((text, data)) = end.map(|end| bytes.split_at(end)) else {
        return Err(document.unreadable("cut short: the input ends before its list of methods does"));
    };
    let mut header = Header::default();
    header.add_text(text, document.options);
    let Some(layout) = Layout::parse(data, &header, false) else {
        return Err(document.unreadable("damaged: no entries follow the list of methods"));
    };
    let (entries, rest) = split_entries(&data[layout.start..], &layout, &header);
    let records = entries.chunks_exact(layout.size);
    let remainder = records.remainder();
    add_records(data, &header, records, document, sink)?;
    let offset = (bytes.len() - rest.len()) as u64;
    document.check_end_or_rest(offset - remainder.len() as u64, remainder, true, "its last record does")?;
    document.check_nothing_follows(offset, rest)
}

/// Splits entries from what follows them: another trace, or an entry of a thread and a method that the header lacks.
fn split_entries<'a>(data: &'a [u8], layout: &Layout, header: &Header) -> (&'a [u8], &'a [u8]) {
    let end = (0..data.len()).step_by(layout.size.max(1)).find(|offset| {
        let rest = &data[*offset..];
        let entry = rest.get(..layout.size).and_then(|record| layout.parse_record(record));
        rest.starts_with(TEXT)
            || is_streamed(rest)
            || entry.is_some_and(|(tid, method, _)| {
                !header.threads.contains_key(&tid) && !header.methods.contains_key(&(method & !3))
            })
    });
    data.split_at(end.unwrap_or(data.len()))
}

/// Adds the stacks of the records of a trace, whose binary part is `data`.
fn add_records<'a>(
    data: &[u8],
    header: &Header,
    records: impl Iterator<Item = &'a [u8]>,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let names: Vec<&str> = [("wall", header.has_wall_time), ("cpu", header.has_cpu_time)]
        .iter()
        .filter_map(|(name, is_there)| is_there.then_some(*name))
        .collect();
    let wants_cpu = names.get(document.select_value(&names, 0)?) == Some(&"cpu");
    document.set_unit_silently("microseconds");
    let Some(layout) = Layout::parse(data, header, wants_cpu) else {
        return Err(document.unreadable("damaged: its records are too short"));
    };
    let (mut threads, mut unopened) = (BTreeMap::<u16, Thread>::new(), 0);
    for record in records {
        let Some((tid, method, time)) = layout.parse_record(record) else { break };
        let thread = threads.entry(tid).or_default();
        thread.advance(time, header.threads.get(&tid), sink)?;
        let action = method & 3;
        let method = method & !3;
        if action == 0 {
            thread.frames.push(match header.methods.get(&method) {
                Some(name) => intern_frame(name, sink),
                None => sink.missing_frame(),
            });
            thread.methods.push(method);
            *thread.open.entry(method).or_default() += 1;
        } else if !thread.leave(method) {
            unopened += 1;
        }
    }
    document.report_problems(unopened, "exit", "left out: no entry before it")
}

impl Thread {
    /// Ends a call, by return or by exception, and those within. Returns false if the method was not entered.
    fn leave(&mut self, method: u32) -> bool {
        if self.open.get(&method).is_none_or(|count| *count == 0) {
            return false;
        }
        while let Some(ended) = self.methods.pop() {
            self.frames.pop();
            if let Some(count) = self.open.get_mut(&ended) {
                *count -= 1;
            }
            if ended == method {
                break;
            }
        }
        true
    }

    /// Adds the time since the last entry or exit to the current stack.
    fn advance(&mut self, time: u64, name: Option<&Vec<u8>>, sink: &mut Sink) -> Result<(), Error> {
        let elapsed = time.saturating_sub(self.last.unwrap_or(time));
        self.last = Some(time);
        if elapsed == 0 || self.frames.is_empty() {
            return Ok(());
        }
        let root = name.map(|name| intern_frame(name, sink));
        add_stack(root, &self.frames, Weight::new(elapsed), sink)
    }
}

impl Header {
    /// Adds a text with sections: the clocks, the threads and the methods.
    fn add_text(&mut self, text: &[u8], options: &Options) {
        let mut section = &b""[..];
        for line in text.lines() {
            if let Some(name) = line.strip_prefix(b"*") {
                section = name;
                continue;
            }
            match section {
                b"version" => {
                    if let Some(clock) = line.strip_prefix(b"clock=") {
                        self.has_wall_time = matches!(clock, b"wall" | b"dual" | b"global");
                        self.has_cpu_time = matches!(clock, b"thread-cpu" | b"dual");
                    }
                }
                b"threads" => {
                    if let Some((id, name)) = line.split_once_str("\t")
                        && let Some(id) = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok())
                    {
                        self.threads.insert(id, name.to_vec());
                    }
                }
                b"methods" => self.add_method(line, options),
                _ => {}
            }
        }
    }

    /// Adds `0x12a4\tjava.lang.Object\twait\t()V\tObject.java\t407`.
    fn add_method(&mut self, line: &[u8], options: &Options) {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
        let [id, class, name, ..] = fields[..] else { return };
        let Some(id) = super::mapped::parse_hex(id).and_then(|id| u32::try_from(id).ok()) else { return };
        let mut name = [&class.replace("/", "."), &b"."[..], name].concat();
        if let (true, Some(file)) = (options.srcline, fields.get(4).filter(|file| !file.is_empty())) {
            name.extend_from_slice(&[b":", *file].concat());
            if let Some(line) = fields.get(5).filter(|line| !line.is_empty()) {
                name.extend_from_slice(&[b":", *line].concat());
            }
        }
        self.methods.insert(id & !3, name);
    }
}

/// The layout of records.
struct Layout {
    /// The offset of the first record.
    start: usize,
    size: usize,
    thread_size: usize,
    /// The offset of the time in a record.
    time: usize,
}

impl Layout {
    fn parse(data: &[u8], header: &Header, wants_cpu: bool) -> Option<Self> {
        let mut fields = Bytes(data.strip_prefix(MAGIC)?);
        let (version, start) = (fields.u16()?, usize::from(fields.u16()?));
        let thread_size = if version == 1 { 1 } else { 2 };
        let clocks = usize::from(header.has_cpu_time) + usize::from(header.has_wall_time);
        let expected = thread_size + 4 + 4 * clocks.max(1);
        // Version 3 states the size of a record, after the time at which the trace began.
        let size = if version & 0xf >= 3 { usize::from(Bytes(data.get(16..)?).u16()?) } else { expected };
        let wall = thread_size + 4 + if header.has_cpu_time { 4 } else { 0 };
        let time = if wants_cpu || clocks < 2 { thread_size + 4 } else { wall };
        (size >= expected && start <= data.len()).then_some(Self { start, size, thread_size, time })
    }

    /// Returns the thread, the method with its action, and the time of a record.
    fn parse_record(&self, record: &[u8]) -> Option<(u16, u32, u64)> {
        let mut fields = Bytes(record);
        let (thread, method) = (fields.number(self.thread_size)?, fields.u32()?);
        let time = Bytes(&record[self.time..]).u32()?;
        Some((thread as u16, method, time.into()))
    }
}
