//! Traces of .NET's EventPipe (`.nettrace`), as `dotnet-trace` and `dotnet-monitor` write them: any event with a stack
//! is a sample.
//!
//! The runtime samples all threads, whether they run or wait: a sample in managed code is of the event `managed`, any
//! other one of `external`. Samples of CPU time, as `dotnet-trace collect-linux` takes them, are of the event `cpu`. Each
//! weighs 1. A `GCAllocationTick` weighs the bytes that it represents. Other events weigh 1. The default is the first of
//! these four of which the trace has samples. The root frame is the process, or `Thread` if its name is not known.
//!
//! The runtime describes its methods at the end of a trace, so samples are named last. The memory depends on the number
//! of distinct stacks, unless each sample's time is needed. Specification: `NetTraceFormat.md` (version 6),
//! `NetTraceFormat_v5.md` and `UniversalProviders.md` of `github.com/microsoft/perfview`.

mod events;
mod methods;
mod samples;
mod stream;
mod trace;

use self::samples::{Key, Samples};
use self::stream::{Failure, MAGIC, Stream};
use self::trace::Trace;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{count_truncated_frames, thread_name, uses_input_weights};
use crate::collapse::filter::args::EventChoice;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::io_error_text;
use crate::markers::UNKNOWN;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "nettrace",
    description: ".NET EventPipe traces (dotnet-trace, .nettrace)",
    tested_with: ".NET Core 3.1, files of .NET Core 3.0, .NET 5 and 6 that others published",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| head.starts_with(MAGIC)),
    reader: FormatReader::Bytes(read),
};

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let keeps_times = sink.needs_times() || document.options.spans.is_some();
    let mut trace = Trace::new(document.options, keeps_times);
    let outcome = match Stream::open(&mut *document) {
        Ok(Ok(mut stream)) => read_blocks(&mut stream, &mut trace),
        Ok(Err(version)) => Ok(Err(format!("version {version} of the format is not supported"))),
        Err(failure) => Ok(Err(describe(failure))),
    };
    let damage = outcome?.err();
    let is_empty = trace.samples.sums.is_empty();
    add_samples(&trace, document, sink)?;
    document.report_problems(trace.malformed, "event", "left out: malformed")?;
    match damage {
        Some(what) => document.report_unreadable_rest(&what, is_empty),
        None => document.check_all_is_read(),
    }
}

/// Reads all blocks. Returns what is wrong with the trace, if it cannot be read to its end.
fn read_blocks<R: std::io::Read>(stream: &mut Stream<R>, trace: &mut Trace<'_>) -> Result<Result<(), String>, Error> {
    loop {
        match stream.read_block() {
            Ok(Some((kind, bytes))) => trace.add_block(kind, &bytes, stream.is_compact)?,
            Ok(None) => return Ok(Ok(())),
            Err(failure) => return Ok(Err(describe(failure))),
        }
    }
}

fn describe(failure: Failure) -> String {
    match failure {
        Failure::Io(error) => io_error_text(&error),
        Failure::CutShort => "cut short: the input ends before the trace does".to_owned(),
        Failure::Damaged => "damaged; the rest of the trace is left out".to_owned(),
    }
}

/// Names the samples of the selected events and adds them to the sink.
fn add_samples(trace: &Trace<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let samples = &trace.samples;
    sink.note_time(trace.earliest);
    if trace.has_left_out {
        sink.note_left_out();
    }
    if document.options.event == EventChoice::First
        && let Some(name) = samples.default_event()
    {
        document.events = EventFilter::for_names(vec![name.to_vec()]);
    }
    check_unit(samples, document)?;
    let (mut timed, mut names) = (TimedSamples::new(document.options), StackNames::default());
    for (key, count, sum) in &samples.sums {
        let name = &samples.events[key.event].name;
        if !document.events.accept_many(name, *count) {
            continue;
        }
        let weight = if uses_input_weights(document.options) { *sum } else { Weight::new(*count) };
        document.events.add_weights(*count, weight);
        let comm = trace.process_name(key.thread.0);
        let (time, cpu) = key.time.unzip();
        let (pid, tid) = (u32::try_from(key.thread.0).ok(), u32::try_from(key.thread.1).ok());
        let info = SampleInfo { time, comm, pid, tid, cpu };
        let ids = [key.thread.0, key.thread.1].map(|id| if id == 0 { String::new() } else { id.to_string() });
        let root = sink.intern(&thread_name(comm, ids[0].as_bytes(), ids[1].as_bytes(), document.options));
        let (frames, is_truncated) = names.frames(trace, key, sink);
        timed.add(&TimedSample { info, roots: &[root], is_truncated, frames, weight }, sink)?;
    }
    Ok(())
}

/// Sets the unit of the selected events.
///
/// # Errors
/// [`Error::Invalid`] if they have several.
fn check_unit(samples: &Samples, document: &mut Document<'_>) -> Result<(), Error> {
    let mut units: Vec<&str> =
        samples.events.iter().filter(|event| document.events.selects(&event.name)).map(|event| event.unit).collect();
    units.dedup();
    match units[..] {
        _ if !uses_input_weights(document.options) => document.set_unit("samples"),
        [] => {}
        [unit] => document.set_unit(unit),
        [first, second, ..] => {
            return Err(Error::Invalid(format!(
                "{}: the events have weights in {first} and in {second}, which cannot be added up; name one with --event, \
                 or use --weight samples",
                document.name()
            )));
        }
    }
    Ok(())
}

/// The frames of the stack that was named last.
#[derive(Default)]
struct StackNames {
    named: rustc_hash::FxHashMap<(u64, u64), FrameId>,
    frames: Vec<FrameId>,
}

impl StackNames {
    /// Returns the frames of a sample, root first, and true if it is cut.
    fn frames(&mut self, trace: &Trace<'_>, key: &Key, sink: &mut Sink) -> (&[FrameId], bool) {
        let addresses = &trace.samples.stacks[key.stack];
        let left_out = count_truncated_frames(addresses.len());
        let process = trace.code_process(key.thread.0);
        self.frames.clear();
        for address in addresses.iter().rev().skip(left_out) {
            let frame = self
                .named
                .entry((process, *address))
                .or_insert_with(|| intern_frame(trace.methods.find(process, *address).unwrap_or(UNKNOWN), sink));
            self.frames.push(*frame);
        }
        (&self.frames, left_out > 0)
    }
}
