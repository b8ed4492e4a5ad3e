//! JSON of `py-spy dump --json`: the stacks of all threads of a Python process at one moment.
//!
//! ```text
//! [{"pid":7,"thread_id":140,"thread_name":"MainThread","os_thread_id":7,"active":true,"owns_gil":true,
//!   "frames":[{"name":"work","filename":"/srv/a.py","module":null,"short_filename":"a.py","line":3,"locals":null}]}]
//! ```
//! Each thread has weight 1, and its name as its root frame. All threads count, unless `--event` names a state:
//! `active`, `active+gil` or `idle`. Files and lines are left out unless `--srcline` asks for them.

use super::value::Value;
use super::{frame_name, read_root};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::thread_name;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::formats::pyspy_dump::{add_thread, count_threads};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "py-spy-json",
    description: "py-spy dump --json (Python)",
    tested_with: "py-spy 0.4",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.items().next().is_some_and(|thread| {
        thread.get(b"owns_gil").is_some() || thread.get(b"os_thread_id").is_some() && thread.get(b"active").is_some()
    })
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    count_threads(document);
    let options = document.options;
    let mut stack = Stack::default();
    for thread in root.items() {
        let [is_active, owns_gil] =
            [&b"active"[..], b"owns_gil"].map(|key| thread.get(key).is_some_and(Value::is_true));
        let state: &[u8] = match (is_active, owns_gil) {
            (_, true) => b"active+gil",
            (true, false) => b"active",
            (false, false) => b"idle",
        };
        for frame in thread.get_items(b"frames") {
            stack.push(&frame_name(frame, [b"name", b"filename", b"line"], options), sink);
        }
        let (pid, tid) = (thread.get_label(b"pid"), thread.get_label(b"os_thread_id"));
        let name = thread_name(&thread.get_string(b"thread_name"), &pid, &tid, options);
        add_thread(&mut stack, state, &name, document, sink)?;
    }
    Ok(())
}
