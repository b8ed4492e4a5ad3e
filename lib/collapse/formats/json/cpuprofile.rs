//! `.cpuprofile` files of V8's sampling CPU profiler (`node --cpu-prof`, Chrome's developer tools): a call tree, and
//! for each sample its node and the time since the sample before it.
//!
//! ```text
//! {"nodes":[{"id":1,"callFrame":{"functionName":"(root)",…},"children":[2]}, …],
//!  "startTime":0,"endTime":3000,"samples":[2,2],"timeDeltas":[0,1000]}
//! ```
//! Older files have a tree under `head`, and `timestamps`. Each sample weighs the microseconds until the next one, or 1 with
//! `--weight samples` and if there are no times; without samples, nodes weigh their `hitCount`. Files and lines are left out
//! unless `--srcline` asks for them.

use super::forest::CYCLIC;
use super::v8_samples::{Node, Samples};
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::uses_input_weights;
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::collapse::slice_filter::SliceFilter;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "cpuprofile",
    description: "V8 CPU profile (.cpuprofile)",
    tested_with: "Node.js, published files",
    has_times: true,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| super::read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    let first = root.get_items(b"nodes").next();
    first.is_some_and(|node| node.get(b"callFrame").is_some())
        || root.get_path([b"head", b"functionName"]).is_some_and(|_| root.get_path([b"head", b"callFrame"]).is_none())
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut samples = Samples::default();
    match root.get(b"head") {
        Some(head) => samples.add_tree(head, document.options, sink),
        None => samples.add_nodes(root, document.options, sink),
    }
    match root.get(b"timestamps") {
        Some(times) => samples.add_with_times(root.get_items(b"samples"), times),
        None => {
            samples.start = root.get_millionths(b"startTime");
            samples.end = root.get_millionths(b"endTime");
            samples.add_with_deltas(root.get_items(b"samples"), root.get_items(b"timeDeltas"));
        }
    }
    if samples.is_cyclic() {
        document.report_damage(CYCLIC, false)?;
    }
    if samples.is_empty() {
        SliceFilter::for_sums(document.options)?;
        document.set_unit("samples");
        let hits = root.get_items(b"nodes").filter_map(|node| Some((Node::id(node)?, node.get(b"hitCount")?)));
        let hits = hits.filter_map(|(id, count)| Some((id, count.as_millionths()?)));
        return samples.fold_hits(hits, sink);
    }
    document.set_unit(if uses_input_weights(document.options) && samples.is_timed() {
        "microseconds"
    } else {
        "samples"
    });
    samples.fold_samples(SampleInfo::default(), None, document.options, sink)
}
