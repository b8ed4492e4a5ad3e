//! JSON of stackprof for Ruby (`stackprof --json`, or a dump with `raw: true`).
//!
//! ```text
//! {"mode":"wall","interval":1000,"samples":3,…,"frames":{"7":{"name":"Object#main","file":"/srv/a.rb","line":1},…},
//!  "raw":[2,7,8,2,1,7,1],"raw_timestamp_deltas":[1000,1010,990]}
//! ```
//! `raw` has for each run of equal samples the number of frames, the frames, root first, and the number of samples;
//! `raw_timestamp_deltas` has the duration of each sample. The weight is the duration in microseconds in the modes
//! `wall` and `cpu`, else, or with `--weight samples`, the number of samples. Files and lines are left out unless
//! `--srcline` asks for them.

use rustc_hash::FxHashMap;

use super::read_root;
use super::value::{Items, Value};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, function_with_source, uses_input_weights, weight_from_millionths};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::profile::{FrameId, Weight};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "stackprof",
    description: "stackprof JSON (Ruby)",
    tested_with: "stackprof 0.2, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    [&b"mode"[..], b"interval", b"samples"].iter().all(|name| root.get(name).is_some())
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let Some(raw) = root.get(b"raw") else {
        return Err(document.unreadable("stackprof output without stacks; record with raw: true"));
    };
    let uses_time = matches!(&root.get_string(b"mode")[..], b"wall" | b"cpu") && uses_input_weights(document.options);
    let deltas = root.get(b"raw_timestamp_deltas").map(Value::items);
    let mut deltas = deltas.filter(|deltas| uses_time && deltas.clone().next().is_some());
    document.set_unit(if deltas.is_some() { "microseconds" } else { "samples" });
    let mut frames: FxHashMap<Vec<u8>, FrameId> = FxHashMap::default();
    for (id, frame) in root.get(b"frames").into_iter().flat_map(Value::members) {
        let line = frame.get_integer(b"line");
        let name = function_with_source(&frame.get_string(b"name"), &frame.get_string(b"file"), line, document.options);
        frames.insert(id.into_owned(), sink.intern(&name));
    }
    let (mut raw, mut stack) = (raw.items(), Vec::new());
    while let Some(depth) = raw.next().and_then(Value::as_index) {
        stack.clear();
        let ids = raw.by_ref().take(depth).filter_map(Value::as_label);
        stack.extend(ids.map(|id| frames.get(&id[..]).copied().unwrap_or_else(|| sink.missing_frame())));
        let count = raw.next().and_then(Value::as_integer).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        let weight = match &mut deltas {
            Some(deltas) => sum_next(deltas, count),
            None => Weight::new(count),
        };
        add_stack(None, &stack, weight, sink)?;
    }
    Ok(())
}

/// Returns the sum of the next `count` durations.
fn sum_next(deltas: &mut Items<'_>, count: u64) -> Weight {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let sum = deltas.take(count).filter_map(Value::as_millionths).fold(0i128, i128::saturating_add);
    weight_from_millionths(sum).unwrap_or_default()
}
