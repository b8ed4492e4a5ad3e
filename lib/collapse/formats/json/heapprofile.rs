//! `.heapprofile` files of V8's sampling heap profiler (`node --heap-prof`, Chrome's developer tools): a call tree.
//!
//! ```text
//! {"head":{"callFrame":{"functionName":"(root)",…},"selfSize":0,"children":[{"callFrame":…,"selfSize":512,…}]}}
//! ```
//! The weight is `selfSize`, the bytes that the function itself allocated. The list of samples is left out.

use super::value::{Items, Value};
use super::{read_root, v8_samples};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, weight_from_millionths};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "heapprofile",
    description: "V8 sampling heap profile (.heapprofile)",
    tested_with: "Node.js 20, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get_path([b"head", b"callFrame"]).is_some()
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.set_unit("bytes");
    let options = document.options;
    visit_nodes(root.get(b"head"), b"children", sink, |node, path, sink| {
        path.push(sink.intern(&v8_samples::function_name(node, options)));
        let own = node.get_millionths(b"selfSize").and_then(weight_from_millionths);
        // The name `(root)` is left out unless it is the whole stack.
        let frames = if path.len() > 1 { &path[1..] } else { path };
        add_stack(None, frames, own.unwrap_or_default(), sink)
    })
}

/// Visits all nodes of a tree, parents first. `enter` pushes the node's frame to the path from the root.
pub(super) fn visit_nodes<'t>(
    root: Option<Value<'t>>,
    children: &[u8],
    sink: &mut Sink,
    mut enter: impl FnMut(Value<'t>, &mut Vec<FrameId>, &mut Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut levels: Vec<Items<'t>> = root.map(Value::as_items).into_iter().collect();
    let mut path = Vec::new();
    while !levels.is_empty() {
        path.truncate(levels.len() - 1);
        match levels.last_mut().and_then(Iterator::next) {
            Some(node) => {
                enter(node, &mut path, sink)?;
                levels.extend(node.get(children).map(Value::items));
            }
            None => drop(levels.pop()),
        }
    }
    Ok(())
}
