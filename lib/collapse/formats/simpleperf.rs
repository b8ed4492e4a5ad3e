//! `simpleperf report-sample --show-callchain` of Android: a block of keys and values per sample, leaf first.
//!
//! ```text
//! sample:
//!   event_type: cpu-cycles
//!   event_count: 300
//!   thread_name: app
//!   symbol: hash
//!   callchain:
//!     symbol: main
//! ```
//! The weight is `event_count`, or 1 with `--weight samples`. The thread's name is the root frame, with its numbers if
//! `--pid` or `--tid` asks for them. Of several events, the first counts unless `--event` names another. `lost_count`
//! adds to the lost samples. A frame without a symbol, which is `*libc.so[+21ec4]` in newer versions, is named by its file.
//! `time` is in nanoseconds. Addresses are left out.

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, indentation, parse_number, split_once};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::profile::SampleWeight;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "simpleperf",
    description: "Android simpleperf report-sample",
    tested_with: "simpleperf of NDK 27, published files",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let mut lines = first_lines(head);
    lines.any(|line| line == b"sample:") && lines.next().is_some_and(|line| line.starts_with(b"  event_type: "))
}

/// The sample that is being read.
#[derive(Default)]
struct Sample {
    event: Vec<u8>,
    count: Option<u64>,
    thread_name: Vec<u8>,
    pid: Vec<u8>,
    tid: Vec<u8>,
    time: Option<u64>,
    /// The file of the frame whose symbol comes next.
    file: Vec<u8>,
    stack: Stack,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut sample, mut is_sample) = (Vec::new(), Sample::default(), true);
    let mut timed = TimedSamples::new(document.options);
    while document.read_line(&mut line)? {
        let trimmed = line.trim_ascii();
        let (key, value) = split_once(trimmed, ":").unwrap_or((trimmed, b""));
        let value = value.trim_ascii();
        if indentation(&line) == 0 && matches!(key, b"sample" | b"lost_situation" | b"meta_info") {
            std::mem::take(&mut sample).finish(&mut timed, document, sink)?;
            is_sample = key == b"sample";
            continue;
        }
        match key {
            // The events of the recording
            b"event_type" if !is_sample => {}
            b"event_type" => sample.event = value.to_vec(),
            b"event_count" => sample.count = parse_number(value),
            b"thread_name" => sample.thread_name = value.to_vec(),
            b"process_id" => sample.pid = value.to_vec(),
            b"thread_id" => sample.tid = value.to_vec(),
            b"time" => sample.time = parse_number(value),
            b"file" => sample.file = value.to_vec(),
            b"symbol" if is_unknown(value) => {
                let file = sample.file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                let name = if file.is_empty() { b"unknown" } else { file };
                sample.stack.push(&[b"[", name, b"]"].concat(), sink);
            }
            b"symbol" => sample.stack.push(&function_name(value, document.options), sink),
            b"lost_count" => {
                document.summary.lost_samples =
                    document.summary.lost_samples.saturating_add(parse_number(value).unwrap_or(0));
            }
            b"" | b"callchain" | b"vaddr_in_file" | b"sample_count" | b"execution_type" => {}
            _ if indentation(&line) > 0 && trimmed.contains(&b':') => {}
            _ => document.report_malformed("expected a key and a value")?,
        }
    }
    let is_complete = !is_sample || sample.count.is_some() && !sample.stack.is_empty();
    sample.finish(&mut timed, document, sink)?;
    document.check_end(is_complete, "the stack of its last sample")?;
    document.check_last_line()
}

/// Returns true for the symbol of a frame whose function is not known.
fn is_unknown(symbol: &[u8]) -> bool {
    let is_offset = symbol.starts_with(b"*") && symbol.ends_with(b"]") && memchr::memmem::find(symbol, b"[+").is_some();
    is_offset || symbol == b"unknown" || symbol.is_empty()
}

impl Sample {
    /// Adds the sample, if it has begun and its event is selected.
    fn finish(mut self, timed: &mut TimedSamples, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        if self.event.is_empty() && self.stack.is_empty() {
            return Ok(());
        }
        let weight = match (document.options.weight, self.count) {
            (SampleWeight::Period, Some(count)) => Weight::new(count),
            _ => Weight::ONE,
        };
        if !document.events.accept(&self.event) {
            return Ok(());
        }
        let [pid, tid] = [&self.pid, &self.tid].map(|id| std::str::from_utf8(id).ok()?.parse().ok());
        let info = SampleInfo { time: self.time, comm: &self.thread_name, pid, tid, cpu: None };
        if !timed.accept(&info, sink)? {
            return Ok(());
        }
        document.events.add_weight(weight);
        let mut root = self.thread_name.clone();
        let with_pid = document.options.pid || document.options.tid;
        for (is_wanted, separator, id) in [(with_pid, b'-', &self.pid), (document.options.tid, b'/', &self.tid)] {
            if is_wanted && !id.is_empty() {
                root.push(separator);
                root.extend_from_slice(id);
            }
        }
        if !root.is_empty() {
            self.stack.push(&root, sink);
        }
        if self.stack.is_empty() {
            return Ok(());
        }
        let frames = self.stack.into_root_first();
        timed.add(&TimedSample { info, roots: &[], is_truncated: false, frames: &frames, weight }, sink)
    }
}
