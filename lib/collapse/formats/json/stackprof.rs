//! stackprof's JSON (Ruby): under `raw`, of each run of equal samples how many frames, which, root first, and how many
//! samples; under `raw_timestamp_deltas` how long each sample took, in microseconds.

use rustc_hash::FxHashMap;

use super::value::{Items, Value};
use super::{begins, read};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::formats::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::whole;
use crate::markers;
use crate::profile::{FrameId, Weight};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "stackprof",
    description: "stackprof JSON (Ruby)",
    has_times: false,
    recognizes: |head| {
        begins(head, |root| [&b"mode"[..], b"interval", b"samples"].iter().all(|name| root.get(name).is_some()))
    },
    reader: FormatReader::Bytes(|document, sink| read(document, sink, fold)),
};

fn fold(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let Some(raw) = root.get(b"raw") else {
        return Err(document.unreadable("stackprof's output without stacks: record with raw: true"));
    };
    let mode = root.get(b"mode").and_then(Value::text).unwrap_or_default();
    let timed = matches!(&mode[..], b"wall" | b"cpu");
    let deltas = root.get(b"raw_timestamp_deltas").map(Value::items);
    let mut deltas =
        deltas.filter(|deltas| timed && whole::weighs(document.options) && deltas.clone().next().is_some());
    document.unit(if deltas.is_some() { "microseconds" } else { "samples" });
    let mut frames: FxHashMap<Vec<u8>, FrameId> = FxHashMap::default();
    for (id, frame) in root.get(b"frames").into_iter().flat_map(Value::members) {
        let text = |name: &[u8]| frame.get(name).and_then(Value::text).unwrap_or_default();
        let line = frame.get(b"line").and_then(Value::whole);
        let name = whole::located(&text(b"name"), &text(b"file"), line, document.options);
        frames.insert(id.into_owned(), sink.intern(&name));
    }
    let unknown = sink.intern(markers::UNKNOWN);
    let (mut raw, mut stack) = (raw.items(), Vec::new());
    while let Some(depth) = raw.next().and_then(Value::index) {
        stack.clear();
        let ids = raw.by_ref().take(depth).filter_map(Value::label);
        stack.extend(ids.map(|id| frames.get(&id[..]).copied().unwrap_or(unknown)));
        let count = raw.next().and_then(Value::whole).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        let weight = match &mut deltas {
            Some(deltas) => time(deltas, count),
            None => Weight::new(count),
        };
        whole::add(None, &stack, weight, sink)?;
    }
    Ok(())
}

fn time(deltas: &mut Items<'_>, count: u64) -> Weight {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let sum = deltas.take(count).filter_map(Value::millionths).fold(0i128, i128::saturating_add);
    whole::positive(sum).unwrap_or_default()
}
