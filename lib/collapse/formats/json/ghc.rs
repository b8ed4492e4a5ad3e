//! GHC's profile as JSON (`+RTS -pj`): a tree of cost centres, each with its own ticks and bytes.

use rustc_hash::FxHashMap;

use super::heapprofile::walk;
use super::value::Value;
use super::{begins, read};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::formats::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::whole;
use crate::markers;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "ghc-json",
    description: "GHC profile as JSON (+RTS -pj)",
    has_times: false,
    recognizes: |head| begins(head, |root| root.get(b"rts_arguments").is_some() || root.get(b"cost_centres").is_some()),
    reader: FormatReader::Bytes(|document, sink| read(document, sink, fold)),
};

fn fold(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let column = document.column(&["ticks", "bytes"], 0)?;
    let value = [&b"ticks"[..], b"alloc"][column];
    let mut centres = FxHashMap::default();
    for centre in root.get(b"cost_centres").into_iter().flat_map(Value::items) {
        let text = |name: &[u8]| centre.get(name).and_then(Value::text).unwrap_or_default();
        let name = [&text(b"module"), &b"."[..], &text(b"label")].concat();
        let name = whole::located(&name, &text(b"src_loc"), None, document.options);
        centres.insert(centre.get(b"id").and_then(Value::whole), sink.intern(&name));
    }
    let unknown = sink.intern(markers::UNKNOWN);
    walk(root.get(b"profile"), b"children", sink, |node, path, sink| {
        let centre = centres.get(&node.get(b"id").and_then(Value::whole));
        path.push(centre.copied().unwrap_or(unknown));
        let own = node.get(value).and_then(Value::millionths).and_then(whole::positive);
        whole::add(None, path, own.unwrap_or_default(), sink)
    })
}
