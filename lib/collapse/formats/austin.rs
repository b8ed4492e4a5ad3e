//! Binary files of Austin (MOJO), a sampling profiler of Python programs: what `austin` 4 writes, and `austin -b` before.
//!
//! A sample weighs the microseconds since the one before it (`time`). A recording with `-f` also has the time of samples
//! whose thread was not idle (`cpu`), and the memory that was `allocated` and `freed`, in bytes; one with `-m` has only
//! these. The process and the thread are the root frame if there are several, or with `--pid` or `--tid`. Files and
//! lines are left out unless `--srcline` asks for them.
//!
//! A file is a sequence of events: strings and frames, each with a key, and stacks of keys. Integers have six bits and a
//! sign in their first byte, seven bits in the following ones. Facts: `src/mojo.h` of `github.com/P403n1x87/austin`.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::little_endian::Bytes;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, function_with_source, read_bytes, thread_name, uses_input_weights};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_STACK_LENGTH, intern_frame};
use crate::markers::{KERNEL, UNKNOWN};
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "austin",
    description: "Austin's binary files (MOJO, Python)",
    tested_with: "Austin 4.0",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        head.starts_with(MAGIC) && head.get(3).is_some_and(|version| VERSIONS.contains(version))
    }),
    reader: FormatReader::Bytes(read),
};

const MAGIC: &[u8] = b"MOJ";

/// The versions of the format that are known.
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=3;

/// The frame of a sample during garbage collection, as V8 names it.
const GARBAGE_COLLECTOR: &[u8] = b"(garbage collector)";

/// An event of a file.
#[derive(Debug, PartialEq, Eq)]
enum Event<'a> {
    Metadata(&'a [u8], &'a [u8]),
    /// The process and the thread of the sample that begins.
    Stack(u64, &'a [u8]),
    /// The key, the keys of file and function, and the line.
    Frame(u64, u64, u64, i64),
    FrameReference(u64),
    KernelFrame(&'a [u8]),
    InvalidFrame,
    GarbageCollection,
    Idle,
    Time(i64),
    Memory(i64),
    String(u64, &'a [u8]),
    StringReference,
}

/// The events of a file, which end at a malformed one.
struct Events<'a> {
    rest: Bytes<'a>,
    version: u8,
    /// The values of the current sample that were read.
    has_time: bool,
    has_memory: bool,
}

impl<'a> Events<'a> {
    fn new(file: &'a [u8]) -> Self {
        let version = file.get(MAGIC.len()).copied().unwrap_or(0);
        Self {
            rest: Bytes(file.get(MAGIC.len() + 1..).unwrap_or_default()),
            version,
            has_time: false,
            has_memory: false,
        }
    }

    /// Returns true if an event may follow those before: a sample has each value once, the time first.
    fn is_in_order(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::Stack(..) => (self.has_time, self.has_memory) = (false, false),
            Event::Time(_) if self.has_time || self.has_memory => return false,
            Event::Time(_) => self.has_time = true,
            Event::Memory(_) if self.has_memory => return false,
            Event::Memory(_) => self.has_memory = true,
            _ => {}
        }
        true
    }

    /// Returns true if what could not be read may be an event that is cut. Zeros end strings and integers.
    fn may_be_cut(&self) -> bool {
        let whole = [self.rest.0, &[0; 16]].concat();
        let mut events = Events { rest: Bytes(&whole), ..*self };
        events.next().is_some() && events.rest.0.len() < 16
    }

    fn parse(&mut self) -> Option<Event<'a>> {
        let version = self.version;
        let bytes = &mut self.rest;
        Some(match bytes.u8()? {
            1 => Event::Metadata(bytes.c_string()?, bytes.c_string()?),
            2 => {
                let process = read_key(bytes)?;
                // The interpreter.
                if version >= 3 {
                    read_key(bytes)?;
                }
                Event::Stack(process, bytes.c_string()?)
            }
            3 => {
                let (key, file, function) = (read_key(bytes)?, read_key(bytes)?, read_key(bytes)?);
                let line = read_integer(bytes)?;
                // The last line, and the columns.
                for _ in 0..if version >= 2 { 3 } else { 0 } {
                    read_integer(bytes)?;
                }
                Event::Frame(key, file, function, line)
            }
            4 => Event::InvalidFrame,
            5 => Event::FrameReference(read_key(bytes)?),
            6 => Event::KernelFrame(bytes.c_string()?),
            7 => Event::GarbageCollection,
            8 => Event::Idle,
            9 => Event::Time(read_integer(bytes)?),
            10 => Event::Memory(read_integer(bytes)?),
            11 => Event::String(read_key(bytes)?, bytes.c_string()?),
            12 => read_key(bytes).map(|_| Event::StringReference)?,
            _ => return None,
        })
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let before = self.rest;
        let event = self.parse().filter(|event| self.is_in_order(event));
        if event.is_none() {
            self.rest = before;
        }
        event
    }
}

fn read_integer(bytes: &mut Bytes<'_>) -> Option<i64> {
    let first = bytes.u8()?;
    let mut number = i64::from(first & 0x3f);
    let (mut more, mut shift) = (first & 0x80 != 0, 6);
    while more {
        let byte = bytes.u8()?;
        number |= i64::from(byte & 0x7f).checked_shl(shift)?;
        (more, shift) = (byte & 0x80 != 0, shift + 7);
    }
    Some(if first & 0x40 == 0 { number } else { number.wrapping_neg() })
}

fn read_key(bytes: &mut Bytes<'_>) -> Option<u64> {
    read_integer(bytes).map(i64::cast_unsigned)
}

/// The sample that is being read.
#[derive(Default)]
struct Sample {
    process: u64,
    thread: Vec<u8>,
    frames: Vec<FrameId>,
    is_open: bool,
    is_idle: bool,
    time: i64,
    memory: i64,
}

impl Sample {
    /// Returns the weight of a value, or zero if the sample has none of it.
    fn weight(&self, value: &str, options: &Options) -> Weight {
        let weight = match value {
            "time" => self.time,
            "cpu" if self.is_idle => 0,
            "cpu" => self.time,
            "allocated" => self.memory,
            _ => self.memory.saturating_neg(),
        };
        let weight = u64::try_from(weight).unwrap_or(0);
        Weight::new(if uses_input_weights(options) { weight } else { weight.min(1) })
    }
}

/// The tables of a file. Keys belong to a process.
#[derive(Default)]
struct Tables<'a> {
    strings: FxHashMap<(u64, u64), &'a [u8]>,
    frames: FxHashMap<(u64, u64), FrameId>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    let options = document.options;
    let (mut threads, mut mode, mut counter) = (BTreeSet::new(), &b""[..], Events::new(&bytes));
    for event in counter.by_ref() {
        match event {
            Event::Stack(process, thread) => drop(threads.insert((process, thread))),
            Event::Metadata(b"mode", value) => mode = value,
            _ => {}
        }
    }
    let is_record = counter.may_be_cut();
    let rest = counter.rest.0;
    let names: &[&str] = match mode {
        b"memory" => &["allocated", "freed"],
        b"full" => &["time", "cpu", "allocated", "freed"],
        _ => &["time"],
    };
    let value = names[document.select_value(names, 0)?];
    let unit = if matches!(value, "time" | "cpu") { "microseconds" } else { "bytes" };
    document.set_unit(if uses_input_weights(options) { unit } else { "samples" });
    let shows_threads = threads.len() > 1 || options.pid || options.tid;
    let (mut sample, mut tables) = (Sample::default(), Tables::default());
    for event in Events::new(&bytes) {
        if matches!(event, Event::Stack(..)) {
            add_sample(&mut sample, value, shows_threads, options, sink)?;
        }
        add_event(event, &mut sample, &mut tables, options, sink);
    }
    add_sample(&mut sample, value, shows_threads, options, sink)?;
    let offset = (bytes.len() - rest.len()) as u64;
    document.check_end_or_rest(offset, rest, is_record, "its last event does")
}

fn add_event<'a>(event: Event<'a>, sample: &mut Sample, tables: &mut Tables<'a>, options: &Options, sink: &mut Sink) {
    let process = sample.process;
    let frame = match event {
        Event::Stack(process, thread) => {
            *sample = Sample { process, thread: thread.to_vec(), is_open: true, ..Sample::default() };
            return;
        }
        Event::Frame(key, file, function, line) => {
            let [function, file] =
                [function, file].map(|key| tables.strings.get(&(process, key)).copied().unwrap_or_default());
            let name = function_with_source(function, file, Some(line), options);
            let frame = intern_frame(&name, sink);
            tables.frames.insert((process, key), frame);
            return;
        }
        Event::String(key, text) => {
            tables.strings.insert((process, key), text);
            return;
        }
        Event::FrameReference(key) => {
            Some(tables.frames.get(&(process, key)).copied().unwrap_or_else(|| sink.missing_frame()))
        }
        Event::KernelFrame(name) => {
            Some(intern_frame(&[name, if options.kernel { KERNEL } else { b"" }].concat(), sink))
        }
        Event::InvalidFrame => None,
        Event::GarbageCollection => Some(sink.intern(GARBAGE_COLLECTOR)),
        Event::Idle => return sample.is_idle = true,
        Event::Time(time) => return sample.time = time,
        Event::Memory(memory) => return sample.memory = memory,
        Event::Metadata(..) | Event::StringReference => return,
    };
    if sample.frames.len() < MAX_STACK_LENGTH {
        sample.frames.push(frame.unwrap_or_else(|| sink.intern(UNKNOWN)));
    }
}

/// Adds a sample, if one was begun.
fn add_sample(
    sample: &mut Sample,
    value: &str,
    shows_threads: bool,
    options: &Options,
    sink: &mut Sink,
) -> Result<(), Error> {
    if !std::mem::take(&mut sample.is_open) {
        return Ok(());
    }
    let root = shows_threads.then(|| {
        let tid = crate::bytes::parse_hex(&sample.thread).map(|tid| tid.to_string().into_bytes());
        let tid = tid.unwrap_or_else(|| sample.thread.clone());
        sink.intern(&thread_name(b"", sample.process.to_string().as_bytes(), &tid, options))
    });
    add_stack(root, &sample.frames, sample.weight(value, options), sink)
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Event, Events, read_integer};

    fn read(bytes: &[u8]) -> Option<i64> {
        read_integer(&mut Bytes(bytes))
    }

    #[test]
    fn reads_integers_with_a_sign() {
        assert_eq!((read(&[0x3f]), read(&[0x81, 0x01]), read(&[0x41])), (Some(63), Some(65), Some(-1)));
        assert_eq!((read(&[0x80]), read(&[0xff; 12]), read(&[])), (None, None, None));
    }

    #[test]
    fn ends_at_a_malformed_event() {
        let mut events = Events::new(b"MOJ\x03\x02\x05\0a1\0\x08\x63");
        assert_eq!(events.by_ref().collect::<Vec<_>>(), [Event::Stack(5, b"a1"), Event::Idle]);
        assert_eq!(events.rest.0, b"\x63");
    }
}
