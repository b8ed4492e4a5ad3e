//! V8's log of ticks, made readable by `node --prof-process --preprocess`: a table of code, and of each tick which code
//! was on the stack, leaf first, each with its offset.

use super::value::Value;
use super::{begins, read};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::formats::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::whole;
use crate::markers;
use crate::profile::{FrameId, Weight};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "v8-log",
    description: "V8 tick log, from node --prof-process --preprocess",
    has_times: false,
    recognizes: |head| begins(head, recognizes),
    reader: FormatReader::Bytes(|document, sink| read(document, sink, fold)),
};

fn recognizes(root: Value<'_>) -> bool {
    let first = root.get(b"code").and_then(|code| code.items().next());
    first.is_some_and(|code| code.get(b"type").is_some() && code.get(b"name").is_some())
}

fn fold(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.unit("ticks");
    let codes = root.get(b"code").into_iter().flat_map(Value::items);
    let codes: Vec<FrameId> = codes.map(|code| sink.intern(&name(code))).collect();
    let unknown = sink.intern(markers::UNKNOWN);
    let mut stack = Vec::new();
    for tick in root.get(b"ticks").into_iter().flat_map(Value::items) {
        stack.clear();
        // Every other number is an offset.
        for code in tick.get(b"s").into_iter().flat_map(Value::items).step_by(2) {
            // No code: an address that nothing is known of.
            stack.push(code.index().and_then(|code| codes.get(code)).copied().unwrap_or(unknown));
        }
        stack.reverse();
        whole::add(None, &stack, Weight::ONE, sink)?;
    }
    Ok(())
}

/// The name without the place that stands behind a JavaScript function's.
fn name(code: Value<'_>) -> Vec<u8> {
    let name = code.get(b"name").and_then(Value::text).unwrap_or_default();
    let is_script = code.get(b"type").and_then(Value::text).as_deref() == Some(b"JS");
    match memchr::memchr(b' ', &name).filter(|_| is_script) {
        Some(0) => b"(anonymous)".to_vec(),
        Some(end) => name[..end].to_vec(),
        None => name.into_owned(),
    }
}
