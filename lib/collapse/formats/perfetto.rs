//! Perfetto traces (Android, Linux, Chrome): samples, heap profiles of heapprofd, and events of tracks.
//!
//! A trace may have several of these values, in this order. The first one counts, unless `--event` names another; of those
//! of heapprofd, the first that is not 0 everywhere:
//!
//! - `samples` of `linux.perf`, of Chrome's JavaScript profiler, and of other profilers (`StackSample`), weigh 1 each;
//! - `unreleased-bytes`, `allocated-bytes`, `unreleased-count` and `allocated-count` of heapprofd; if a heap was dumped
//!   several times, the last values of each stack count. If there are several heaps, one of them counts, and the values are
//!   named like `allocated-bytes/libc.malloc`;
//! - `event-stacks`, the stacks of events, weigh 1 each, or what the events say if some say it;
//! - `slices`, the events that begin and end on a track, as stacks of their names, weigh the nanoseconds for which a stack
//!   is the same on its track.
//!
//! The root frame is the thread, that of heap profiles the process, and that of slices the track if it has a name. Counters,
//! asynchronous events of the Trace Event Format and all other data are left out. Addresses are named if the trace has
//! symbols, as `traceconv symbolize` adds them. Specification: `protos/perfetto/trace` of `github.com/google/perfetto`.

mod clocks;
mod end;
mod heaps;
mod interned;
mod packet;
mod sequence;
mod threads;
mod tracks;
mod values;

use rustc_hash::FxHashMap;

use self::clocks::Clocks;
use self::end::End;
use self::heaps::Heaps;
use self::interned::{Symbols, name_inline_stack};
use self::packet::{PACKET, PACKET_TAG, Packet, expand, field};
use self::sequence::Sequence;
use self::threads::{Threads, to_id};
use self::tracks::{TrackEvent, Tracks};
use self::values::{EVENT_STACKS, Found, HEAP_VALUES, SAMPLES, SLICES, Selected};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{read_bytes, thread_name};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::diagnostics::plural;
use crate::profile::Weight;
use crate::protobuf::{Fields, Value, read_messages, read_numbers};

pub(super) static FORMAT: Format = Format {
    name: "perfetto",
    description: "Perfetto traces (samples, heapprofd, track events)",
    tested_with: "test data of Perfetto",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Bytes(read),
};

/// The number of first packets by which a trace is recognized.
const SNIFFED_PACKETS: usize = 16;

/// Returns true if the first packets are whole, and one of them has a time, a sequence or a user.
fn recognizes(head: &[u8]) -> bool {
    let mut has_mark = false;
    for field in Fields::new(head).take(SNIFFED_PACKETS) {
        // The last packet may be cut off.
        let Some((number, value)) = field else { return has_mark };
        let Some(message) = value.bytes().filter(|_| number == PACKET) else { return false };
        for read in Fields::new(message) {
            let Some((number, value)) = read else { return false };
            match (number, value) {
                (field::UID | field::TIMESTAMP | field::SEQUENCE, Value::Number(_)) => has_mark = true,
                (field::UID | field::TIMESTAMP | field::SEQUENCE, _) => return false,
                _ => {}
            }
        }
    }
    has_mark
}

/// The state of the reader.
struct Reader<'a> {
    selected: Selected,
    symbols: Symbols<'a>,
    threads: Threads<'a>,
    sequences: FxHashMap<u64, Sequence<'a>>,
    clocks: Clocks,
    tracks: Tracks<'a>,
    heaps: Heaps,
    samples: TimedSamples,
    /// True if some stacks of events have a weight. Then the others do not count.
    has_weights: bool,
    lost: u64,
    skipped: u64,
    malformed: u64,
}

/// The process, thread and CPU of a sample.
#[derive(Clone, Copy, Default)]
struct Task {
    pid: u64,
    tid: u64,
    cpu: Option<u32>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    let length = bytes.len();
    let (bytes, damaged) = expand(bytes);
    let End { packets, rest, is_trace } = End::find(&bytes);
    let (mut found, mut reader) = (Found::default(), Reader::new(document));
    for message in read_messages(packets, PACKET) {
        for (number, value) in Fields::new(message).flatten() {
            let Some(inner) = value.bytes() else { continue };
            match number {
                field::MODULE_SYMBOLS => reader.symbols.add(inner),
                field::PROCESS_TREE => reader.threads.add_process_tree(inner),
                field::THREAD => reader.threads.add_thread(inner),
                field::TRACK => {
                    reader.threads.add_track(inner);
                    reader.tracks.add_track(inner);
                }
                _ => found.add(number, inner),
            }
        }
    }
    let Some(selected) = found.select_value(None, document)? else {
        return Err(document.unreadable("a Perfetto trace without samples, heap profiles or slices"));
    };
    (reader.selected, reader.has_weights) = (selected, found.has_weights);
    for message in read_messages(packets, PACKET) {
        match Packet::parse(message) {
            Some(packet) => reader.add_packet(&packet, document, sink)?,
            None => reader.malformed += 1,
        }
    }
    reader.finish(&found, document, sink)?;
    document.report_problems(damaged, "compressed packet", "damaged, or too large: packets are missing")?;
    // What follows the packets is as it is in the input, unless it has compressed packets itself.
    let offset = length.saturating_sub(rest.len()) as u64;
    if is_trace {
        return Err(document.another_document(offset, FORMAT.name));
    }
    document.check_end_or_rest(offset, rest, rest.starts_with(PACKET_TAG), "its last packet does")
}

impl<'a> Reader<'a> {
    fn new(document: &Document<'_>) -> Self {
        Self {
            selected: Selected::default(),
            symbols: Symbols::default(),
            threads: Threads::default(),
            sequences: FxHashMap::default(),
            clocks: Clocks::default(),
            tracks: Tracks::default(),
            heaps: Heaps::default(),
            samples: TimedSamples::new(document.options),
            has_weights: false,
            lost: 0,
            skipped: 0,
            malformed: 0,
        }
    }

    fn add_packet(&mut self, packet: &Packet<'a>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        if let Some(message) = packet.clocks {
            self.clocks.add_snapshot(packet.sequence, message);
        }
        let sequence = self.sequences.entry(packet.sequence).or_default();
        sequence.update(packet);
        let time =
            packet.timestamp.map(|time| self.clocks.convert(packet.sequence, packet.clock.or(sequence.clock), time));
        if let Some(message) = packet.heap_profile.filter(|_| HEAP_VALUES.contains(&self.selected.value)) {
            let resolve = (&mut sequence.interned, &self.symbols);
            self.heaps.add(packet.sequence, message, resolve, document.options, sink);
        }
        if let Some(message) = packet.track_event {
            self.add_track_event(packet, time, message, document, sink)?;
        }
        if self.selected.value != SAMPLES {
            return Ok(());
        }
        if let Some(message) = packet.perf_sample {
            self.add_perf_sample(packet, time, message, document, sink)?;
        }
        if let Some(message) = packet.stack_sample {
            self.add_stack_sample(packet, time, message, document, sink)?;
        }
        match packet.streaming_profile {
            Some(message) => self.add_streaming_profile(packet, time, message, document, sink),
            None => Ok(()),
        }
    }

    fn add_perf_sample(
        &mut self,
        packet: &Packet<'a>,
        time: Option<u64>,
        message: &[u8],
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let Some([cpu, pid, tid, stack, lost, skipped]) = read_numbers(message, [1, 2, 3, 4, 17, 18]) else {
            self.malformed += 1;
            return Ok(());
        };
        self.lost = self.lost.saturating_add(lost);
        self.skipped += u64::from(skipped > 0);
        let task = Task { pid, tid, cpu: u32::try_from(cpu).ok() };
        match stack {
            0 => Ok(()),
            _ => self.add_sample(packet, time, (stack, None), task, Weight::ONE, document, sink),
        }
    }

    /// Adds the samples of Chrome's JavaScript profiler, each with the time since the one before, in microseconds.
    fn add_streaming_profile(
        &mut self,
        packet: &Packet<'a>,
        time: Option<u64>,
        message: &[u8],
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let sequence = self.sequences.entry(packet.sequence).or_default();
        let ((pid, tid), mut reference) = (sequence.thread, sequence.reference);
        let mut deltas = numbers_of(message, 2);
        for stack in numbers_of(message, 1) {
            let delta = deltas.next();
            reference = reference.wrapping_add(delta.unwrap_or(0));
            let time = delta.map(|_| reference.wrapping_mul(1000)).or(time);
            self.add_sample(packet, time, (stack, None), Task { pid, tid, cpu: None }, Weight::ONE, document, sink)?;
        }
        self.sequences.entry(packet.sequence).or_default().reference = reference;
        Ok(())
    }

    fn add_stack_sample(
        &mut self,
        packet: &Packet<'a>,
        time: Option<u64>,
        message: &'a [u8],
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let (mut task, mut stack) = (Task::default(), (0, None));
        let Some(Sequence { interned, .. }) = self.sequences.get(&packet.sequence) else { return Ok(()) };
        for (number, value) in Fields::new(message).flatten() {
            match (number, value) {
                (1, Value::Bytes(inner)) => {
                    [task.pid, task.tid] = read_numbers(inner, [2, 3]).unwrap_or_default();
                }
                (2, Value::Number(id)) => {
                    (task.pid, task.tid) = interned.tasks.get(&id).copied().unwrap_or_default();
                }
                (3, Value::Bytes(inner)) => {
                    task.cpu = read_numbers(inner, [2]).and_then(|[cpu]| u32::try_from(cpu).ok());
                }
                (4, Value::Number(id)) => {
                    task.cpu = interned.cpus.get(&id).and_then(|cpu| u32::try_from(*cpu).ok());
                }
                (5, Value::Bytes(inner)) => stack.1 = Some(inner),
                (6, Value::Number(id)) => stack.0 = id,
                _ => {}
            }
        }
        self.add_sample(packet, time, stack, task, Weight::ONE, document, sink)
    }

    /// Adds the stack of an event, or the event to the slices.
    fn add_track_event(
        &mut self,
        packet: &Packet<'a>,
        time: Option<u64>,
        message: &'a [u8],
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let Some(event) = TrackEvent::parse(message) else {
            self.malformed += 1;
            return Ok(());
        };
        let sequence = self.sequences.entry(packet.sequence).or_default();
        sequence.reference = sequence.reference.wrapping_add(event.elapsed.unwrap_or(0));
        let old = event.absolute.or(event.elapsed.map(|_| sequence.reference)).map(|time| time.wrapping_mul(1000));
        let time = time.or(old);
        let key = event.track(sequence.track, sequence.thread);
        match (self.selected.value, time) {
            (SLICES, Some(time)) => self.tracks.add(key, &event, time, &sequence.interned.event_names, sink),
            (SLICES, None) => self.malformed += u64::from(event.is_slice()),
            (EVENT_STACKS, _) if event.has_stack() => {
                let Some(weight) = self.stack_weight(event.weight) else { return Ok(()) };
                let (pid, tid) = self.tracks.thread(key);
                let stack = (event.stack, event.inline_stack);
                self.add_sample(packet, time, stack, Task { pid, tid, cpu: None }, weight, document, sink)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the weight of an event's stack. Counts it as malformed if it is no weight.
    fn stack_weight(&mut self, weight: Option<f64>) -> Option<Weight> {
        match weight {
            None => (!self.has_weights).then_some(Weight::ONE),
            Some(weight) => {
                let weight = weight_from_float(weight);
                self.malformed += u64::from(weight.is_none());
                weight
            }
        }
    }

    /// Adds a sample. `stack` is the key of a stack and, if the sample contains it, the stack itself.
    #[expect(clippy::too_many_arguments, reason = "what samples of four kinds have in common")]
    fn add_sample(
        &mut self,
        packet: &Packet<'a>,
        time: Option<u64>,
        (stack, inline): (u64, Option<&[u8]>),
        Task { pid, tid, cpu }: Task,
        weight: Weight,
        document: &Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let comm = self.threads.name(pid, tid);
        let info = SampleInfo { time, comm, pid: to_id(pid), tid: to_id(tid), cpu };
        if !self.samples.accept(&info, sink)? {
            return Ok(());
        }
        let name = thread_name(comm, pid.to_string().as_bytes(), tid.to_string().as_bytes(), document.options);
        let roots = &[sink.intern(&name)];
        let inline = inline.map(|message| name_inline_stack(message, document.options, sink));
        let Some(Sequence { interned, .. }) = self.sequences.get_mut(&packet.sequence) else { return Ok(()) };
        let (frames, is_whole) = match &inline {
            Some(frames) => (&frames[..], true),
            None => interned.stack(stack, &self.symbols, document.options, sink),
        };
        self.samples.add(&TimedSample { info, roots, is_truncated: !is_whole, frames, weight }, sink)
    }

    /// Adds the heap profiles and the slices, and reports what was left out.
    fn finish(mut self, found: &Found, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        let values = found.heap_values();
        let is_default = values.first() == Some(&self.selected);
        if let Some(used) = self.heaps.find_value(values).filter(|used| is_default && *used != self.selected) {
            self.selected = found.select_value(Some(&used), document)?.unwrap_or(self.selected);
        }
        let unit = match self.selected.value {
            EVENT_STACKS if self.has_weights => "weights",
            EVENT_STACKS => "events",
            SLICES => "nanoseconds",
            value => value.rsplit('-').next().unwrap_or(value),
        };
        document.set_unit_silently(unit);
        self.heaps.add_stacks(&self.selected, &self.threads, document.options, sink)?;
        self.tracks.add_stacks(&self.threads, document, sink)?;
        if self.lost > 0 {
            document.warn(&format!("{} of the kernel lost: some samples are missing", plural(self.lost, "record")));
        }
        if self.skipped > 0 {
            document.warn(&format!("{} without a stack, which the profiler skipped", plural(self.skipped, "sample")));
        }
        document.report_problems(self.malformed, "packet", "left out: malformed")
    }
}

/// Converts a number to a weight, unless it is negative, too large, or too small for one.
fn weight_from_float(number: f64) -> Option<Weight> {
    let millionths = (number * 1e6).round();
    let is_weight = number == 0.0 || (1.0..1e30).contains(&millionths);
    is_weight.then(|| Weight::from_millionths(millionths as u128))
}

/// Returns the numbers of a repeated field.
fn numbers_of(message: &[u8], wanted: u32) -> impl Iterator<Item = u64> {
    let fields = Fields::new(message).flatten().filter(move |(number, _)| *number == wanted);
    fields.flat_map(|(_, value)| value.numbers())
}
