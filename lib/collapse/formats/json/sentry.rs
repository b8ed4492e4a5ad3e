//! Profiles of Sentry's SDKs (sample format, versions 1 and 2): samples that refer to lists of stacks and frames.
//!
//! ```text
//! {"version":"1","profile":{"samples":[{"stack_id":0,"thread_id":"259","elapsed_since_start_ns":"1000"}],
//!  "stacks":[[0,1]],"frames":[{"function":"work","filename":"a.py","lineno":3},{"function":"main"}],
//!  "thread_metadata":{"259":{"name":"main"}}}}
//! ```
//! Each sample weighs 1. Stacks are leaf first. The thread is the root frame if there are several. Files and lines are
//! left out unless `--srcline` asks for them. Specification: <https://develop.sentry.dev/sdk/telemetry/profiles/>.

use std::collections::BTreeSet;

use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{function_with_source, thread_name};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::profile::{FrameId, Weight};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "sentry",
    description: "Sentry profiles (sample format)",
    tested_with: "sentry-sdk 2.75 for Python",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    let profile = root.get(b"profile");
    let samples = root.get_path([b"profile", b"samples"]).into_iter().flat_map(Value::items);
    profile.is_some_and(|profile| profile.get(b"stacks").is_some() && profile.get(b"frames").is_some())
        || samples.take(8).any(|sample| sample.get(b"stack_id").is_some() && sample.get(b"thread_id").is_some())
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let Some(profile) = root.get(b"profile") else { return Ok(()) };
    let options = document.options;
    document.set_unit("samples");
    let frames: Vec<FrameId> =
        profile.get_items(b"frames").map(|frame| intern_frame(&frame_name(frame, options), sink)).collect();
    let stacks: Vec<Value<'_>> = profile.get_items(b"stacks").collect();
    let threads: BTreeSet<Vec<u8>> =
        profile.get_items(b"samples").map(|sample| sample.get_label(b"thread_id").into_owned()).collect();
    let shows_threads = threads.len() > 1 || options.pid || options.tid;
    let (mut samples, mut stack, mut invalid) = (TimedSamples::new(options), Vec::new(), 0);
    for sample in profile.get_items(b"samples") {
        let found = sample.get(b"stack_id").and_then(Value::as_index).and_then(|index| stacks.get(index));
        let Some(indices) = found else {
            invalid += 1;
            continue;
        };
        let tid = sample.get_label(b"thread_id").into_owned();
        let name = profile.get(b"thread_metadata").and_then(|threads| threads.get(&tid));
        let name = name.map(|thread| thread.get_string(b"name")).unwrap_or_default();
        let number = std::str::from_utf8(&tid).ok().and_then(|tid| tid.parse().ok());
        let info = SampleInfo { time: sample_time(sample), comm: &name, tid: number, ..SampleInfo::default() };
        if !samples.accept(&info, sink)? {
            continue;
        }
        let thread = shows_threads.then(|| sink.intern(&thread_name(&name, b"", &tid, options)));
        stack.clear();
        stack.extend(indices.items().filter_map(|index| frames.get(index.as_index()?).copied()));
        stack.reverse();
        let (roots, weight) = (thread.as_slice(), Weight::ONE);
        samples.add(&TimedSample { info, roots, is_truncated: false, frames: &stack, weight }, sink)?;
    }
    document.report_problems(invalid, "sample", "left out: it refers to a stack that is missing")
}

/// Returns the time of a sample in nanoseconds: since the start, or since 1970.
fn sample_time(sample: Value<'_>) -> Option<u64> {
    let elapsed = sample.get_millionths(b"elapsed_since_start_ns").map(|time| time / 1_000_000);
    let time = elapsed.or_else(|| sample.get_millionths(b"timestamp").map(|time| time * 1000))?;
    u64::try_from(time).ok()
}

/// Returns the name of a function with its module, as Sentry shows it.
fn frame_name(frame: Value<'_>, options: &Options) -> Vec<u8> {
    let (function, module) = (frame.get_string(b"function"), frame.get_string(b"module"));
    let name = match module.is_empty() || function.is_empty() {
        true => function.into_owned(),
        false => [&module, &b"."[..], &function].concat(),
    };
    let file = frame.get(b"abs_path").or_else(|| frame.get(b"filename")).and_then(Value::as_string).unwrap_or_default();
    function_with_source(&name, &file, frame.get_integer(b"lineno"), options)
}
