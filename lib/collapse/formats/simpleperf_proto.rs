//! simpleperf's protobuf reports (Android, `simpleperf report-sample --protobuf`): `SIMPLEPERF`, a version, and records,
//! each after its length.
//!
//! The weight is the number of events of a sample, or 1 with `--weight samples`. Of several events, the first counts
//! unless `--event` names another. The thread's name is the root frame. Specification: `cmd_report_sample.proto` of
//! simpleperf.

use rustc_hash::FxHashMap;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{module_frame, read_bytes, thread_name, uses_input_weights};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::function_name;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{MAX_STACK_LENGTH, intern_frame};
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::profile::{FrameId, Weight};
use crate::protobuf::{Fields, read_messages, read_numbers};

pub(super) static FORMAT: Format = Format {
    name: "simpleperf-proto",
    description: "simpleperf report-sample --protobuf (Android)",
    tested_with: "simpleperf of NDK 27",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| head.starts_with(MAGIC)),
    reader: FormatReader::Bytes(read),
};

const MAGIC: &[u8] = b"SIMPLEPERF";

/// The fields of a record: each has one.
mod record {
    pub const SAMPLE: u32 = 1;
    pub const LOST: u32 = 2;
    pub const FILE: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const META: u32 = 5;
}

/// The tables of a report, which may come after the samples.
#[derive(Default)]
struct Tables<'a> {
    samples: Vec<&'a [u8]>,
    /// The path and the symbols of each file.
    files: FxHashMap<u64, (&'a [u8], Vec<&'a [u8]>)>,
    /// The process and the name of each thread.
    threads: FxHashMap<u64, (u64, &'a [u8])>,
    events: Vec<&'a [u8]>,
    lost: u64,
    malformed: u64,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    let mut rest = bytes.get(MAGIC.len() + 2..).unwrap_or_default();
    let (mut tables, mut is_complete) = (Tables::default(), false);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 {
            (is_complete, rest) = (true, after);
            break;
        }
        let Some((message, after)) = after.split_at_checked(length) else { break };
        if tables.add(message).is_none() {
            tables.malformed += 1;
        }
        rest = after;
    }
    document.summary.lost_samples = document.summary.lost_samples.saturating_add(tables.lost);
    let malformed = tables.malformed;
    add_samples(&tables, document, sink)?;
    document.report_problems(malformed, "record", "left out: malformed")?;
    if is_complete {
        document.check_nothing_follows((bytes.len() - rest.len()) as u64, rest)?;
    }
    document.check_end(is_complete, "its end mark")
}

impl<'a> Tables<'a> {
    /// Adds a record. Returns `None` if it is malformed.
    fn add(&mut self, message: &'a [u8]) -> Option<()> {
        for field in Fields::new(message) {
            let (number, value) = field?;
            let inner = value.bytes()?;
            match number {
                record::SAMPLE => self.samples.push(inner),
                record::LOST => {
                    let [lost] = read_numbers(inner, [2])?;
                    self.lost = lost;
                }
                record::FILE => {
                    let [id] = read_numbers(inner, [1])?;
                    let path = read_messages(inner, 2).next().unwrap_or_default();
                    self.files.insert(id, (path, read_messages(inner, 3).collect()));
                }
                record::THREAD => {
                    let [tid, pid] = read_numbers(inner, [1, 2])?;
                    self.threads.insert(tid, (pid, read_messages(inner, 3).next().unwrap_or_default()));
                }
                record::META => self.events = read_messages(inner, 1).collect(),
                _ => {}
            }
        }
        Some(())
    }

    /// Returns the name of a frame.
    fn frame_name(&self, call: &[u8], document: &Document<'_>) -> Option<Vec<u8>> {
        let [address, file, symbol] = read_numbers(call, [1, 2, 3])?;
        let (path, symbols) = self.files.get(&file).map_or((&b""[..], &[][..]), |(path, all)| (*path, all.as_slice()));
        let symbol = usize::try_from(symbol.cast_signed()).ok().and_then(|index| symbols.get(index));
        Some(match symbol {
            Some(name) if !name.is_empty() && !name.starts_with(b"unknown") => {
                function_name(name, document.options).into_owned()
            }
            _ => module_frame(path, format!("{address:x}").as_bytes(), document.options),
        })
    }
}

fn add_samples(tables: &Tables<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let weighs = uses_input_weights(document.options);
    document.set_unit(if weighs { "events" } else { "samples" });
    let (mut samples, mut frames, mut malformed) = (TimedSamples::new(document.options), Vec::<FrameId>::new(), 0);
    for message in &tables.samples {
        let numbers = read_numbers(message, [1, 2, 4, 5]);
        let Some([time, tid, count, event]) = numbers else {
            malformed += 1;
            continue;
        };
        let event = usize::try_from(event).ok().and_then(|event| tables.events.get(event)).copied();
        if !document.events.accept(event.unwrap_or_default()) {
            continue;
        }
        let weight = if weighs { Weight::new(count) } else { Weight::ONE };
        let tid = tid & u64::from(u32::MAX);
        let (pid, comm) = tables.threads.get(&tid).copied().unwrap_or((0, b""));
        let pid = pid & u64::from(u32::MAX);
        let info = SampleInfo {
            time: Some(time),
            comm,
            pid: u32::try_from(pid).ok().filter(|pid| *pid > 0),
            tid: u32::try_from(tid).ok(),
            cpu: None,
        };
        if !samples.accept(&info, sink)? {
            continue;
        }
        document.events.add_weight(weight);
        frames.clear();
        for call in read_messages(message, 3).take(MAX_STACK_LENGTH) {
            let name = tables.frame_name(call, document).unwrap_or_default();
            frames.push(intern_frame(&name, sink));
        }
        frames.reverse();
        let name = thread_name(comm, pid.to_string().as_bytes(), tid.to_string().as_bytes(), document.options);
        let root = sink.intern(&name);
        samples.add(&TimedSample { info, roots: &[root], is_truncated: false, frames: &frames, weight }, sink)?;
    }
    document.report_problems(malformed, "sample", "left out: malformed")
}
