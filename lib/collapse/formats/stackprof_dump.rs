//! stackprof's own files (Ruby, `StackProf.run(out: FILE, raw: true)`): a hash that Ruby's Marshal wrote.
//!
//! The members are those of [`stackprof`](super::json::stackprof) as JSON, and so are weights and frames. Marshal's format:
//! `doc/marshal.rdoc` of Ruby.

mod marshal;

use rustc_hash::FxHashMap;

use self::marshal::{Value, parse};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{add_stack, function_with_source, read_bytes, uses_input_weights};
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "stackprof-dump",
    description: "stackprof dump (Ruby)",
    tested_with: "stackprof 0.2",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| {
        // A hash whose first key is the symbol `version`, or has it among the first ones.
        head.starts_with(b"\x04\x08{") && memchr::memmem::find(&head[..head.len().min(256)], b":\x0cversion").is_some()
    }),
    reader: FormatReader::Bytes(read),
};

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let bytes = read_bytes(document)?;
    let Some((root, rest)) = parse(&bytes) else { return Err(document.unreadable("cut short or damaged")) };
    let Some(Value::Array(raw)) = root.get(b"raw") else {
        return Err(document.unreadable("stackprof output without stacks; record with raw: true"));
    };
    let uses_time = matches!(root.get(b"mode").map(Value::text), Some(b"wall" | b"cpu"));
    let uses_time = uses_time && uses_input_weights(document.options);
    let deltas: &[Value<'_>] = match root.get(b"raw_timestamp_deltas") {
        Some(Value::Array(deltas)) if uses_time => deltas,
        _ => &[],
    };
    document.set_unit(if deltas.is_empty() { "samples" } else { "microseconds" });
    let frames = name_frames(&root, document, sink);
    let (mut raw, mut deltas, has_deltas) = (raw.iter(), deltas.iter(), !deltas.is_empty());
    let (mut stack, mut is_complete) = (Vec::new(), true);
    while let Some(depth) = raw.next() {
        let depth = usize::try_from(depth.number()).unwrap_or(0);
        stack.clear();
        stack.extend(
            raw.by_ref()
                .take(depth)
                .map(|id| frames.get(&id.number()).copied().unwrap_or_else(|| sink.missing_frame())),
        );
        let Some(count) = raw.next().and_then(|count| u64::try_from(count.number()).ok()) else {
            is_complete = false;
            break;
        };
        let weight = match has_deltas {
            true => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let sum = deltas.by_ref().take(count).map(|delta| delta.number().max(0)).sum::<i128>();
                Weight::from_millionths(u128::try_from(sum).unwrap_or(0).saturating_mul(1_000_000))
            }
            false => Weight::new(count),
        };
        add_stack(None, &stack, weight, sink)?;
    }
    document.check_end(is_complete, "the list of samples does")?;
    document.check_nothing_follows((bytes.len() - rest.len()) as u64, rest)
}

/// Returns the frames by their IDs.
fn name_frames(root: &Value<'_>, document: &Document<'_>, sink: &mut Sink) -> FxHashMap<i128, FrameId> {
    let mut frames = FxHashMap::default();
    if let Some(Value::Hash(members)) = root.get(b"frames") {
        for (id, frame) in members {
            let [name, file] = [&b"name"[..], b"file"].map(|key| frame.get(key).map(Value::text).unwrap_or_default());
            let line = frame.get(b"line").and_then(|line| i64::try_from(line.number()).ok());
            let name = function_with_source(name, file, line, document.options);
            frames.insert(id.number(), intern_frame(&name, sink));
        }
    }
    frames
}
