//! JSON of `perf data convert --to-json`: the samples of a `perf.data` file.
//!
//! ```text
//! {"linux-perf-json-version":1,"headers":{},"samples":[{"timestamp":1000,"pid":7,"tid":8,"comm":"app","cpu":0,
//!  "callchain":[{"ip":"0x55d3","symbol":"work","dso":"app"},{"ip":"0x7f56","dso":"libc.so.6"}]}]}
//! ```
//! The file has neither events nor periods: each sample weighs 1, whatever its event. If the command that recorded it names
//! several events, a message says so. The thread's name is the root frame. `perf script`, and
//! the `perf.data` file itself, tell more.

use std::borrow::Cow;

use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{module_frame, thread_name};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{function_name, parse_number};
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::profile::Weight;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "perf-json",
    description: "perf data convert --to-json (Linux)",
    tested_with: "perf 6.1",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get(b"linux-perf-json-version").is_some()
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.set_unit("samples");
    let command = root.get_path([b"headers", b"cmdline"]);
    if command.is_some_and(|command| has_several_events(command.items().filter_map(Value::as_string))) {
        document.warn(
            "samples of several events are added up, which this format cannot tell apart; give the perf.data file",
        );
    }
    let options = document.options;
    let (mut samples, mut frames) = (TimedSamples::new(options), Vec::new());
    for sample in root.get_items(b"samples") {
        let comm = sample.get_label(b"comm");
        let info = SampleInfo {
            time: parse_number(&sample.get_label(b"timestamp")),
            comm: &comm,
            pid: get_id(sample, b"pid"),
            tid: get_id(sample, b"tid"),
            cpu: get_id(sample, b"cpu"),
        };
        if !samples.accept(&info, sink)? {
            continue;
        }
        frames.clear();
        for call in sample.get_items(b"callchain") {
            let symbol = call.get_string(b"symbol");
            let name = match symbol.is_empty() {
                true => module_frame(&call.get_string(b"dso"), &call.get_string(b"ip"), options),
                false => function_name(&symbol, options).into_owned(),
            };
            frames.push(intern_frame(&name, sink));
        }
        frames.reverse();
        let root = sink.intern(&thread_name(&comm, &sample.get_label(b"pid"), &sample.get_label(b"tid"), options));
        let (roots, weight) = (&[root], Weight::ONE);
        samples.add(&TimedSample { info, roots, is_truncated: false, frames: &frames, weight }, sink)?;
    }
    Ok(())
}

/// Returns true if a command line of `perf record` names several events.
fn has_several_events<'a>(arguments: impl Iterator<Item = Cow<'a, [u8]>>) -> bool {
    let (mut events, mut is_event) = (0, false);
    for argument in arguments.take_while(|argument| **argument != b"--"[..]) {
        let attached = argument.strip_prefix(b"--event=").or_else(|| argument.strip_prefix(b"-e"));
        let named = if is_event { Some(&argument[..]) } else { attached.filter(|events| !events.is_empty()) };
        events += named.map_or(0, count_events);
        is_event = !is_event && matches!(&argument[..], b"-e" | b"--event");
    }
    events > 1
}

/// Returns the number of events in a list. A comma within slashes separates terms of an event.
fn count_events(list: &[u8]) -> usize {
    let (mut events, mut in_slashes) = (1, false);
    for byte in list {
        in_slashes ^= *byte == b'/';
        events += usize::from(*byte == b',' && !in_slashes);
    }
    events
}

/// Returns the number of a process, a thread or a CPU.
fn get_id(sample: Value<'_>, key: &[u8]) -> Option<u32> {
    u32::try_from(parse_number(&sample.get_label(key))?).ok()
}
