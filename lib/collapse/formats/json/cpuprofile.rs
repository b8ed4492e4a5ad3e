//! V8's `.cpuprofile`, as `node --cpu-prof` and Chrome's developer tools write it.
//!
//! ```text
//! {"nodes":[{"id":1,"callFrame":{"functionName":"(root)",…},"children":[2]}, …],
//!  "startTime":0,"endTime":3000,"samples":[2,2],"timeDeltas":[0,1000]}
//! ```
//! Older ones have a tree under `head` and `timestamps`.

use super::chrome::{Node, Samples};
use super::forest::CYCLIC;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::formats::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::whole;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "cpuprofile",
    description: "V8 CPU profile (.cpuprofile)",
    has_times: false,
    recognizes: |head| super::begins(head, recognizes),
    reader: FormatReader::Bytes(|document, sink| super::read(document, sink, fold)),
};

fn recognizes(root: Value<'_>) -> bool {
    let first = root.get(b"nodes").and_then(|nodes| nodes.items().next());
    first.is_some_and(|node| node.get(b"callFrame").is_some())
        || root.path([b"head", b"functionName"]).is_some_and(|_| root.path([b"head", b"callFrame"]).is_none())
}

fn fold(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut samples = Samples::default();
    match root.get(b"head") {
        Some(head) => samples.add_tree(head, document.options, sink),
        None => samples.add_nodes(root, document.options, sink),
    }
    match root.get(b"timestamps") {
        Some(times) => samples.add_at(root.get(b"samples"), times),
        None => {
            samples.start = root.get(b"startTime").and_then(Value::millionths);
            samples.end = root.get(b"endTime").and_then(Value::millionths);
            samples.add_after(root.get(b"samples"), root.get(b"timeDeltas"));
        }
    }
    if samples.is_cyclic() {
        document.damaged(CYCLIC, false)?;
    }
    if samples.is_empty() {
        let nodes = root.get(b"nodes").into_iter().flat_map(Value::items);
        let hits = |node: Value<'_>| Some((Node::id(node)?, node.get(b"hitCount")?.millionths()?));
        document.unit("samples");
        return samples.fold_hits(nodes.filter_map(hits), sink);
    }
    document.unit(if whole::weighs(document.options) { "microseconds" } else { "samples" });
    samples.fold(None, document.options, sink)
}
