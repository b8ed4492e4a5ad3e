//! Tick logs of V8, preprocessed by `node --prof-process --preprocess isolate-….log`: a table of code, and the stacks
//! of ticks.
//!
//! ```text
//! {"code":[{"name":"hot /srv/a.js:1:13","type":"JS",…},…],
//!  "ticks":[{"tm":300000,"vm":0,"s":[0,120,-1,4198400]},…],…}
//! ```
//! `s` alternates between an index in the table, leaf first, and an offset. Each tick has weight 1. Source positions,
//! times and VM states are left out.

use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::add_stack;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::markers;
use crate::profile::{FrameId, Weight};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "v8-log",
    description: "V8 tick log, from node --prof-process --preprocess",
    tested_with: "Node.js 20, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    let first = root.get(b"code").and_then(|code| code.items().next());
    first.is_some_and(|code| code.get(b"type").is_some() && code.get(b"name").is_some())
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.set_unit("ticks");
    let codes: Vec<FrameId> = root.get_items(b"code").map(|code| sink.intern(&code_name(code))).collect();
    let unknown = sink.intern(markers::UNKNOWN);
    let mut stack = Vec::new();
    for tick in root.get_items(b"ticks") {
        stack.clear();
        for code in tick.get_items(b"s").step_by(2) {
            stack.push(match code.as_index() {
                Some(index) => codes.get(index).copied().unwrap_or_else(|| sink.missing_frame()),
                // An index of -1 is an unknown address.
                None => unknown,
            });
        }
        stack.reverse();
        add_stack(None, &stack, Weight::ONE, sink)?;
    }
    Ok(())
}

/// Returns the name of code, without the source position of a JavaScript function.
fn code_name(code: Value<'_>) -> Vec<u8> {
    let name = code.get_string(b"name");
    let is_script = *code.get_string(b"type") == *b"JS";
    match memchr::memchr(b' ', &name).filter(|_| is_script) {
        Some(0) => b"(anonymous)".to_vec(),
        Some(end) => name[..end].to_vec(),
        None => name.into_owned(),
    }
}
