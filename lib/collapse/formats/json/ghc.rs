//! Time and allocation profiles of GHC as JSON (`PROGRAM +RTS -pj`): a tree of cost centres.
//!
//! ```text
//! {"program":"app",…,"cost_centres":[{"id":1,"label":"MAIN","module":"MAIN",…},…],
//!  "profile":{"id":1,"ticks":0,"alloc":728,"children":[{"id":2,"ticks":8,"alloc":535000,…}]}}
//! ```
//! The weight is a cost centre's own `ticks`, or with `--event bytes` its `alloc`. Frames are named `MODULE.LABEL`.
//! Entries are left out, and source positions unless `--srcline` asks for them.

use rustc_hash::FxHashMap;

use super::heapprofile::visit_nodes;
use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, function_with_source, weight_from_millionths};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "ghc-json",
    description: "GHC profile as JSON (+RTS -pj)",
    tested_with: "GHC 9.0, published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get(b"rts_arguments").is_some() || root.get(b"cost_centres").is_some()
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let column = document.select_value(&["ticks", "bytes"], 0)?;
    let key = [&b"ticks"[..], b"alloc"][column];
    let mut centres = FxHashMap::default();
    for centre in root.get_items(b"cost_centres") {
        let name = [&centre.get_string(b"module"), &b"."[..], &centre.get_string(b"label")].concat();
        let name = function_with_source(&name, &centre.get_string(b"src_loc"), None, document.options);
        centres.insert(centre.get_integer(b"id"), sink.intern(&name));
    }
    visit_nodes(root.get(b"profile"), b"children", sink, |node, path, sink| {
        let centre = centres.get(&node.get_integer(b"id"));
        path.push(centre.copied().unwrap_or_else(|| sink.missing_frame()));
        let own = node.get_millionths(key).and_then(weight_from_millionths);
        add_stack(None, path, own.unwrap_or_default(), sink)
    })
}
