//! The samples of a trace in the Trace Event Format: a list of samples, and a tree of frames.
//!
//! ```text
//! {"traceEvents":[],"samples":[{"cpu":0,"tid":1,"ts":1000.0,"name":"cycles","sf":3,"weight":1}],
//!  "stackFrames":{"3":{"category":"libc","name":"malloc","parent":"2"}}}
//! ```
//! A sample weighs its `weight`, or 1 if it has none and with `--weight samples`. Its name is the event: of several, the first counts unless `--event` names
//! another. The thread is the root frame if there are several.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::forest::{CYCLIC, Forest};
use super::v8_samples::nanoseconds;
use super::value::Value;
use super::weights::INVALID_WEIGHT;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{
    function_with_source, thread_name, uses_input_weights, weight_from_millionths,
};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::profile::{FrameId, Weight};

/// The frames of a trace.
struct StackFrames {
    indices: FxHashMap<Vec<u8>, usize>,
    frames: Vec<FrameId>,
    parents: Forest,
}

impl StackFrames {
    fn new(root: Value<'_>, document: &Document<'_>, sink: &mut Sink) -> Self {
        let members: Vec<_> = root.get(b"stackFrames").into_iter().flat_map(Value::members).collect();
        let indices: FxHashMap<Vec<u8>, usize> =
            members.iter().enumerate().map(|(index, (id, _))| (id.to_vec(), index)).collect();
        let frames = members.iter().map(|(_, frame)| {
            let line = frame.get(b"line").and_then(Value::as_label);
            let line = line.and_then(|line| std::str::from_utf8(&line).ok()?.parse().ok());
            let file = frame.get_string(b"url");
            let name = function_with_source(&frame.get_string(b"name"), &file, line, document.options);
            intern_frame(&name, sink)
        });
        let frames = frames.collect();
        let parents =
            members.iter().map(|(_, frame)| indices.get(&frame.get(b"parent")?.as_label()?[..]).copied()).collect();
        Self { indices, frames, parents: Forest::new(parents) }
    }

    /// Returns the frames of a stack, root first, and whether it has a root.
    fn stack(&self, id: &[u8]) -> (Vec<FrameId>, bool) {
        let Some(index) = self.indices.get(id) else { return (Vec::new(), true) };
        let mut stack = Vec::new();
        let has_root = self.parents.visit_ancestors(*index, |node| stack.push(self.frames[node]));
        stack.reverse();
        (stack, has_root)
    }
}

/// Adds the samples of a trace.
pub(super) fn fold_samples(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let frames = StackFrames::new(root, document, sink);
    if frames.parents.is_cyclic() {
        document.report_damage(CYCLIC, false)?;
    }
    let threads: BTreeSet<_> = root.get_items(b"samples").map(|sample| sample.get_label(b"tid").into_owned()).collect();
    let shows_threads = threads.len() > 1 || document.options.pid || document.options.tid;
    let names = find_thread_names(root);
    let weighs = uses_input_weights(document.options);
    let has_weight = |sample: Value<'_>| sample.get_millionths(b"weight").is_some_and(|weight| weight != 1_000_000);
    document.set_unit(if weighs && root.get_items(b"samples").any(has_weight) { "weights" } else { "samples" });
    let (mut invalid, mut timed) = (0, TimedSamples::new(document.options));
    for sample in root.get_items(b"samples") {
        let weight = match sample.get(b"weight") {
            Some(weight) if weighs => weight.as_millionths().and_then(weight_from_millionths),
            _ => Some(Weight::ONE),
        };
        let Some(weight) = weight else {
            invalid += 1;
            continue;
        };
        if !document.events.accept(&sample.get_string(b"name")) {
            continue;
        }
        let (pid, tid) = (sample.get_label(b"pid"), sample.get_label(b"tid"));
        let comm = names.get(&tid[..]).map_or(&b""[..], Vec::as_slice);
        let info = sample_info(sample, comm);
        if !timed.accept(&info, sink)? {
            continue;
        }
        document.events.add_weight(weight);
        let thread = shows_threads.then(|| sink.intern(&thread_name(comm, &pid, &tid, document.options)));
        let (stack, has_root) = frames.stack(&sample.get_label(b"sf"));
        let (roots, frames) = (thread.as_slice(), &stack[..]);
        timed.add(&TimedSample { info, roots, is_truncated: !has_root, frames, weight }, sink)?;
    }
    document.report_problems(invalid, "sample", INVALID_WEIGHT)
}

/// Returns the time, the thread and the CPU of a sample.
fn sample_info<'a>(sample: Value<'_>, comm: &'a [u8]) -> SampleInfo<'a> {
    let number = |key: &[u8]| sample.get_integer(key).and_then(|number| u32::try_from(number).ok());
    let time = sample.get_millionths(b"ts").and_then(nanoseconds);
    SampleInfo { time, comm, pid: number(b"pid"), tid: number(b"tid"), cpu: number(b"cpu") }
}

/// Returns the names of threads, which metadata events have.
fn find_thread_names(root: Value<'_>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let events = root.get_items(b"traceEvents").filter(|event| &event.get_string(b"name")[..] == b"thread_name");
    events
        .filter_map(|event| {
            let name = event.get_path([b"args", b"name"])?.as_string()?.into_owned();
            Some((event.get(b"tid")?.as_label()?.into_owned(), name))
        })
        .collect()
}
