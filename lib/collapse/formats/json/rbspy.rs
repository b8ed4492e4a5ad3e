//! Recordings of rbspy (`rbspy record --raw-file`), a sampling profiler of Ruby programs: lines of JSON.
//!
//! ```text
//! rbspy02
//! {"sample_rate":100,"rbspy_version":"0.20.0","start_time":{"secs_since_epoch":5,"nanos_since_epoch":0}}
//! {"trace":[{"name":"work","relative_path":"a.rb","absolute_path":"/srv/a.rb","lineno":3}],"pid":7,"thread_id":8,
//!  "time":{"secs_since_epoch":5,"nanos_since_epoch":12000000},"on_cpu":true}
//! ```
//! Each sample weighs 1. The thread is the root frame with `--pid` or `--tid`. Files and lines are left out unless
//! `--srcline` asks for them. Version 1 has no line with the settings, and version 0 no lines but lists of frames.

use super::tape::Tape;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{count_truncated_frames, function_with_source, thread_name};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::parse_number;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::profile::{FrameId, Weight};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "rbspy",
    description: "rbspy record --raw-file (Ruby)",
    tested_with: "rbspy 0.55 with Ruby 3.1",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        head.strip_prefix(MAGIC).is_some_and(|rest| matches!(rest.get(2), Some(b'\n' | b'\r')))
    }),
    reader: FormatReader::Lines(read),
};

const MAGIC: &[u8] = b"rbspy";

/// The name of threads, which the recording does not have.
const THREAD: &[u8] = b"ruby";

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let options = document.options;
    document.set_unit("samples");
    let (mut line, mut samples, mut stack) = (Vec::new(), TimedSamples::new(options), Vec::new());
    while document.read_line(&mut line)? {
        if line.is_empty() || line.starts_with(MAGIC) || line.starts_with(b"{\"sample_rate\":") {
            continue;
        }
        let tape = Tape::parse(&line).ok().filter(|tape| !tape.is_truncated);
        let Some(sample) = tape.as_ref().and_then(Value::root) else {
            document.report_malformed("expected a stack as JSON")?;
            continue;
        };
        let frames = if sample.is_array() { Some(sample) } else { sample.get(b"trace") };
        let is_stack =
            |frames: &Value<'_>| frames.is_array() && frames.items().all(|frame| frame.get(b"name").is_some());
        let Some(frames) = frames.filter(is_stack) else {
            document.report_malformed("expected a stack with the key \"trace\"")?;
            continue;
        };
        add_sample(sample, frames, &mut stack, &mut samples, options, sink)?;
    }
    document.check_last_line()
}

fn add_sample(
    sample: Value<'_>,
    frames: Value<'_>,
    stack: &mut Vec<FrameId>,
    samples: &mut TimedSamples,
    options: &Options,
    sink: &mut Sink,
) -> Result<(), Error> {
    let (pid, tid) = (sample.get_label(b"pid"), sample.get_label(b"thread_id"));
    let time = sample.get(b"time").and_then(parse_time);
    let info = SampleInfo { time, comm: THREAD, pid: parse_id(&pid), tid: parse_id(&tid), cpu: None };
    if !samples.accept(&info, sink)? {
        return Ok(());
    }
    stack.clear();
    stack.extend(frames.items().map(|frame| intern_frame(&frame_name(frame, options), sink)));
    let left_out = count_truncated_frames(stack.len());
    stack.truncate(stack.len() - left_out);
    stack.reverse();
    let shows_thread = options.pid || options.tid;
    let root = shows_thread.then(|| sink.intern(&thread_name(THREAD, &pid, &tid, options)));
    let (roots, weight) = (root.as_slice(), Weight::ONE);
    samples.add(&TimedSample { info, roots, is_truncated: left_out > 0, frames: stack, weight }, sink)
}

/// Returns a time in nanoseconds since 1970.
fn parse_time(time: Value<'_>) -> Option<u64> {
    let [seconds, nanoseconds] = [&b"secs_since_epoch"[..], b"nanos_since_epoch"].map(|key| time.get(key)?.as_index());
    (seconds? as u64).checked_mul(1_000_000_000)?.checked_add(nanoseconds? as u64)
}

/// Parses the ID of a process or thread.
fn parse_id(text: &[u8]) -> Option<u32> {
    parse_number(text)?.try_into().ok()
}

/// Returns false for the file of a function in C.
fn is_file(name: &[u8]) -> bool {
    !name.is_empty() && name != b"(unknown)"
}

fn frame_name(frame: Value<'_>, options: &Options) -> Vec<u8> {
    let file = ["absolute_path", "relative_path"]
        .iter()
        .find_map(|key| frame.get(key.as_bytes()).and_then(Value::as_string).filter(|file| is_file(file)));
    let line = frame.get(b"lineno").and_then(Value::as_integer);
    function_with_source(&frame.get_string(b"name"), &file.unwrap_or_default(), line, options)
}
