//! Perfetto traces (Android, Linux, Chrome): samples of `linux.perf` and of Chrome's JavaScript profiler, and heap profiles
//! of heapprofd.
//!
//! Samples weigh 1 each, and the thread is their root frame. Heap profiles weigh the bytes that are not freed
//! (`unreleased-bytes`), and their root frame is the process; of several dumps of a heap, the last one counts. If a trace
//! has both, samples count, unless `--event` names `unreleased-bytes`, `allocated-bytes`, `unreleased-count` or
//! `allocated-count`. All other data, such as events of tracks, is left out. Addresses are named if the trace has symbols,
//! as `traceconv symbolize` adds them. Specification: `protos/perfetto/trace` of `github.com/google/perfetto`.

mod heaps;
mod interned;
mod threads;

use rustc_hash::FxHashMap;

use self::heaps::Heaps;
use self::interned::{Interned, Symbols};
use self::threads::Threads;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{read_bytes, thread_name};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::diagnostics::plural;
use crate::profile::Weight;
use crate::protobuf::{Fields, Value, read_messages};

pub(super) static FORMAT: Format = Format {
    name: "perfetto",
    description: "Perfetto traces (linux.perf, heapprofd, Chrome)",
    tried_with: "",
    has_times: true,
    recognizes,
    reader: FormatReader::Bytes(read),
};

/// The field of a trace that has its packets.
const PACKET: u32 = 1;

/// The fields of a packet.
mod packet {
    pub const PROCESS_TREE: u32 = 2;
    pub const UID: u32 = 3;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const INTERNED: u32 = 12;
    pub const FLAGS: u32 = 13;
    pub const HEAP_PROFILE: u32 = 37;
    pub const IS_CLEARED: u32 = 41;
    pub const THREAD: u32 = 44;
    pub const COMPRESSED: u32 = 50;
    pub const STREAMING_PROFILE: u32 = 54;
    pub const TRACK: u32 = 60;
    pub const MODULE_SYMBOLS: u32 = 61;
    pub const PERF_SAMPLE: u32 = 66;
}

/// The number of first packets by which a trace is recognized.
const SNIFFED_PACKETS: usize = 16;

/// Returns true if the first packets are whole, and one of them has a time, a sequence or a user.
fn recognizes(head: &[u8]) -> bool {
    let mut has_mark = false;
    for field in Fields::new(head).take(SNIFFED_PACKETS) {
        // The last packet may be cut off.
        let Some((number, value)) = field else { return has_mark };
        let Some(message) = value.bytes().filter(|_| number == PACKET) else { return false };
        for field in Fields::new(message) {
            let Some((number, value)) = field else { return false };
            match (number, value) {
                (packet::UID | packet::TIMESTAMP | packet::SEQUENCE, Value::Number(_)) => has_mark = true,
                (packet::UID | packet::TIMESTAMP | packet::SEQUENCE, _) => return false,
                _ => {}
            }
        }
    }
    has_mark
}

/// The data of a packet that matters here.
#[derive(Default)]
struct Packet<'a> {
    time: Option<u64>,
    sequence: u64,
    is_cleared: bool,
    interned: Vec<&'a [u8]>,
    thread: Option<&'a [u8]>,
    heap_profile: Option<&'a [u8]>,
    perf_sample: Option<&'a [u8]>,
    streaming_profile: Option<&'a [u8]>,
}

impl<'a> Packet<'a> {
    /// Parses a packet. Returns `None` if it is malformed.
    fn parse(message: &'a [u8]) -> Option<Self> {
        let mut packet = Self::default();
        for field in Fields::new(message) {
            let (number, value) = field?;
            match number {
                packet::TIMESTAMP => packet.time = value.number(),
                packet::SEQUENCE => packet.sequence = value.number()?,
                packet::FLAGS => packet.is_cleared |= value.number()? & 1 != 0,
                packet::IS_CLEARED => packet.is_cleared |= value.number()? != 0,
                packet::INTERNED => packet.interned.push(value.bytes()?),
                packet::THREAD => packet.thread = value.bytes(),
                packet::HEAP_PROFILE => packet.heap_profile = value.bytes(),
                packet::PERF_SAMPLE => packet.perf_sample = value.bytes(),
                packet::STREAMING_PROFILE => packet.streaming_profile = value.bytes(),
                _ => {}
            }
        }
        Some(packet)
    }
}

/// The values that a trace may have.
const VALUES: [&str; 5] = ["samples", "unreleased-bytes", "allocated-bytes", "unreleased-count", "allocated-count"];

/// The state of the reader.
struct Reader<'a> {
    symbols: Symbols<'a>,
    threads: Threads<'a>,
    /// The tables and the thread of each sequence of packets.
    sequences: FxHashMap<u64, (Interned<'a>, (u64, u64))>,
    heaps: Heaps,
    samples: TimedSamples,
    lost: u64,
    skipped: u64,
    malformed: u64,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    let (mut symbols, mut threads, mut found) = (Symbols::default(), Threads::default(), Found::default());
    for message in read_messages(&bytes, PACKET) {
        for (number, value) in Fields::new(message).flatten() {
            let Some(inner) = value.bytes() else { continue };
            match number {
                packet::MODULE_SYMBOLS => symbols.add(inner),
                packet::PROCESS_TREE => threads.add_process_tree(inner),
                packet::THREAD => threads.add_thread(inner),
                packet::TRACK => threads.add_track(inner),
                packet::HEAP_PROFILE => found.has_heaps = true,
                packet::PERF_SAMPLE | packet::STREAMING_PROFILE => found.has_samples = true,
                packet::COMPRESSED => found.has_compressed = true,
                _ => {}
            }
        }
    }
    let Some(value) = found.select_value(document)? else {
        return Err(document.unreadable(found.explain()));
    };
    let (sequences, heaps) = (FxHashMap::default(), Heaps::default());
    let samples = TimedSamples::new(document.options);
    let mut reader = Reader { symbols, threads, sequences, heaps, samples, lost: 0, skipped: 0, malformed: 0 };
    let mut is_complete = true;
    for field in Fields::new(&bytes) {
        match field.map(|(_, value)| value.bytes().and_then(Packet::parse)) {
            Some(Some(packet)) => reader.add_packet(&packet, value == VALUES[0], document, sink)?,
            Some(None) => reader.malformed += 1,
            None => is_complete = false,
        }
    }
    reader.finish(value, document, sink)?;
    if found.has_compressed {
        document.warn("compressed packets are left out; run `traceconv decompress_packets FILE OUTPUT`");
    }
    document.check_end(is_complete, "its last packet does")
}

/// The kinds of data in a trace.
#[derive(Default)]
struct Found {
    has_samples: bool,
    has_heaps: bool,
    has_compressed: bool,
}

impl Found {
    /// Returns the value that counts, or `None` if there is none.
    fn select_value(&self, document: &mut Document<'_>) -> Result<Option<&'static str>, Error> {
        let range = match (self.has_samples, self.has_heaps) {
            (false, false) => return Ok(None),
            (true, false) => 0..1,
            (false, true) => 1..VALUES.len(),
            (true, true) => 0..VALUES.len(),
        };
        let names = &VALUES[range];
        Ok(Some(names[document.select_value(names, 0)?]))
    }

    fn explain(&self) -> &'static str {
        match self.has_compressed {
            true => "a compressed Perfetto trace; run `traceconv decompress_packets FILE OUTPUT`",
            false => "a Perfetto trace without samples or heap profiles; record with linux.perf or heapprofd",
        }
    }
}

impl<'a> Reader<'a> {
    fn add_packet(
        &mut self,
        packet: &Packet<'a>,
        wants_samples: bool,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let (interned, thread) = self.sequences.entry(packet.sequence).or_default();
        if packet.is_cleared {
            *interned = Interned::default();
        }
        packet.interned.iter().for_each(|message| interned.add(message));
        if let Some(found) = packet.thread {
            *thread = threads::parse_thread(found);
        }
        let thread = *thread;
        if let Some(message) = packet.heap_profile.filter(|_| !wants_samples) {
            let resolve = (interned, &self.symbols);
            self.heaps.add(packet.sequence, message, resolve, document.options, sink);
        }
        if let Some(message) = packet.perf_sample.filter(|_| wants_samples) {
            self.add_perf_sample(packet, message, document, sink)?;
        }
        if let Some(message) = packet.streaming_profile.filter(|_| wants_samples) {
            for (number, value) in Fields::new(message).flatten() {
                if number == 1 {
                    for stack in value.numbers() {
                        self.add_sample(packet, stack, (thread, None), document, sink)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_perf_sample(
        &mut self,
        packet: &Packet<'a>,
        message: &[u8],
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let Some([cpu, pid, tid, stack, lost, skipped]) = crate::protobuf::read_numbers(message, [1, 2, 3, 4, 17, 18])
        else {
            self.malformed += 1;
            return Ok(());
        };
        self.lost = self.lost.saturating_add(lost);
        self.skipped += u64::from(skipped > 0);
        match stack {
            0 => Ok(()),
            _ => self.add_sample(packet, stack, ((pid, tid), u32::try_from(cpu).ok()), document, sink),
        }
    }

    fn add_sample(
        &mut self,
        packet: &Packet<'a>,
        stack: u64,
        ((pid, tid), cpu): ((u64, u64), Option<u32>),
        document: &Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let comm = self.threads.name(pid, tid);
        let info = SampleInfo { time: packet.time, comm, pid: to_id(pid), tid: to_id(tid), cpu };
        if !self.samples.accept(&info)? {
            return Ok(());
        }
        let name = thread_name(comm, pid.to_string().as_bytes(), tid.to_string().as_bytes(), document.options);
        let root = sink.intern(&name);
        let Some((interned, _)) = self.sequences.get_mut(&packet.sequence) else { return Ok(()) };
        let (frames, is_whole) = interned.stack(stack, &self.symbols, document.options, sink);
        let (roots, weight) = (&[root], Weight::ONE);
        self.samples.add(&TimedSample { info, roots, is_truncated: !is_whole, frames, weight }, sink)
    }

    /// Adds the heap profiles, and reports what was left out.
    fn finish(self, value: &str, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        document.set_unit_silently(value.rsplit('-').next().unwrap_or(value));
        self.heaps.add_stacks(value, &self.threads, document.options, sink)?;
        if self.lost > 0 {
            document.warn(&format!("{} of the kernel lost: some samples are missing", plural(self.lost, "record")));
        }
        if self.skipped > 0 {
            document.warn(&format!("{} without a stack, which the profiler skipped", plural(self.skipped, "sample")));
        }
        document.report_problems(self.malformed, "packet", "left out: malformed")
    }
}

/// Returns the ID of a process or thread; `None` for 0, which means that it is not known.
fn to_id(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|number| *number > 0)
}
