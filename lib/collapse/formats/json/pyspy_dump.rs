//! JSON of `py-spy dump --json`: the stacks of all threads of a Python process at one moment.
//!
//! ```text
//! [{"pid":7,"thread_id":140,"thread_name":"MainThread","os_thread_id":7,"active":true,"owns_gil":true,
//!   "frames":[{"name":"work","filename":"/srv/a.py","module":null,"short_filename":"a.py","line":3,"locals":null}]}]
//! ```
//! Each thread has weight 1, and its name as its root frame. All threads count, unless `--event` names a state:
//! `active`, `active+gil` or `idle`. Files and lines are left out unless `--srcline` asks for them.

use super::value::Value;
use super::{document_matches, read_root};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{function_with_source, thread_name};
use crate::collapse::filter::args::EventChoice;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "py-spy-json",
    description: "py-spy dump --json (Python)",
    tried_with: "py-spy 0.4",
    has_times: false,
    recognizes: |head| {
        document_matches(head, |root| {
            root.items().next().is_some_and(|thread| {
                thread.get(b"owns_gil").is_some()
                    || thread.get(b"os_thread_id").is_some() && thread.get(b"active").is_some()
            })
        })
    },
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.set_unit("threads");
    if document.options.event == EventChoice::First {
        document.events = EventFilter::new(EventChoice::All);
    }
    let mut stack = Stack::default();
    for thread in root.items() {
        let is = |key: &[u8]| thread.get(key).is_some_and(Value::is_true);
        let state: &[u8] = match (is(b"active"), is(b"owns_gil")) {
            (_, true) => b"active+gil",
            (true, false) => b"active",
            (false, false) => b"idle",
        };
        if !document.events.accept(state) {
            continue;
        }
        document.events.add_weight(Weight::ONE);
        for frame in thread.get_items(b"frames") {
            let line = frame.get(b"line").and_then(Value::as_integer);
            let file = frame.get_string(b"filename");
            stack.push(&function_with_source(&frame.get_string(b"name"), &file, line, document.options), sink);
        }
        let number = |key: &[u8]| thread.get(key).and_then(Value::as_label).unwrap_or_default();
        let name = thread.get_string(b"thread_name");
        stack.push(&thread_name(&name, &number(b"pid"), &number(b"os_thread_id"), document.options), sink);
        stack.add_leaf_first(Weight::ONE, sink)?;
    }
    Ok(())
}
