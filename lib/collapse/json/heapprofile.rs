//! V8's `.heapprofile`: a tree of calls, and how many bytes each allocated.
//!
//! ```text
//! {"head":{"callFrame":{"functionName":"(root)",…},"selfSize":0,"children":[{"callFrame":…,"selfSize":512,…}]}}
//! ```

use super::value::{Items, Value};
use super::{begins, chrome, read};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, Reading};
use crate::collapse::sink::Sink;
use crate::collapse::whole;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "heapprofile",
    about: "V8 sampling heap profile (.heapprofile)",
    recognises: |head| begins(head, |root| root.path([b"head", b"callFrame"]).is_some()),
    reading: Reading::Bytes(|document, sink| read(document, sink, fold)),
};

fn fold(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.unit("bytes");
    let head = root.get(b"head");
    // What the root allocated itself stands under its own name.
    let own = head.and_then(|head| head.get(b"selfSize")?.millionths()).and_then(whole::positive);
    whole::add(None, &[sink.intern(b"(root)")], own.unwrap_or_default(), sink)?;
    let options = document.options;
    walk(
        head,
        b"children",
        |node, path, sink| {
            path.push(sink.intern(&chrome::function(node, options)));
            let own = node.get(b"selfSize").and_then(Value::millionths).and_then(whole::positive);
            whole::add(None, path, own.unwrap_or_default(), sink)
        },
        sink,
    )
}

/// Goes over all nodes below a tree's root, parents first. What is called pushes the node's frame to its path.
pub(super) fn walk<'t>(
    root: Option<Value<'t>>,
    children: &[u8],
    mut enter: impl FnMut(Value<'t>, &mut Vec<FrameId>, &mut Sink) -> Result<(), Error>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let below = |node: Value<'t>| node.get(children).map(Value::items);
    let mut levels: Vec<Items<'t>> = root.and_then(below).into_iter().collect();
    let mut path = Vec::new();
    while let Some(level) = levels.last_mut() {
        match level.next() {
            Some(node) => {
                path.truncate(levels.len() - 1);
                enter(node, &mut path, sink)?;
                levels.extend(below(node));
                // A node without children is left at once.
                path.truncate(levels.len() - 1);
            }
            None => drop(levels.pop()),
        }
    }
    Ok(())
}
