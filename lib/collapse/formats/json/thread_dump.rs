//! JSON of `jcmd PID Thread.dump_to_file -format=json` (JDK 19 and later), which has virtual threads too.
//!
//! ```text
//! {"threadDump":{"processId":"7","threadContainers":[{"container":"<root>","threads":[{"tid":"1","name":"main",
//!  "stack":["java.base\/java.lang.Object.wait0(Native Method)","Main.main(Main.java:3)"]}]}]}}
//! ```
//! Weights, root frames and states are those of [`jstack`](crate::collapse::formats::jstack). Threads without a name
//! are virtual threads.

use super::read_root;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::filter::args::EventChoice;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::formats::{java, jstack};
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::profile::Weight;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "java-thread-dump",
    description: "jcmd Thread.dump_to_file -format=json (JDK)",
    tested_with: "JDK 21 and 25",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Bytes(|document, sink| read_root(document, sink, fold_document)),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get(b"threadDump")
        .is_some_and(|dump| dump.get(b"threadContainers").is_some() || dump.get(b"runtimeVersion").is_some())
}

fn fold_document(root: Value<'_>, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    document.set_unit("threads");
    if document.options.event == EventChoice::First {
        document.events = EventFilter::new(EventChoice::Named(jstack::RUNNABLE.to_vec()));
    }
    let containers = root.get_path([b"threadDump", b"threadContainers"]).into_iter().flat_map(Value::items);
    let (mut stack, mut malformed) = (Stack::default(), 0);
    for thread in containers.flat_map(|container| container.get_items(b"threads")) {
        let mut leaf = None;
        for frame in thread.get_items(b"stack") {
            let line = [b"at ", &frame.as_string().unwrap_or_default()[..]].concat();
            match java::parse_frame(&line, document.options) {
                Some(function) => {
                    leaf.get_or_insert_with(|| function.to_vec());
                    stack.push(function, sink);
                }
                None => malformed += 1,
            }
        }
        // A thread without a stack runs no Java code.
        let Some(leaf) = leaf else { continue };
        let state = jstack::effective_state(&thread.get_string(b"state"), &leaf);
        let name = thread.get_string(b"name");
        let name = if name.is_empty() { jstack::VIRTUAL } else { java::pool_name(&name, document.options) };
        stack.push(name, sink);
        match document.events.accept(&state) {
            true => {
                document.events.add_weight(Weight::ONE);
                stack.add_leaf_first(Weight::ONE, sink)?;
            }
            false => stack.clear(),
        }
    }
    document.report_problems(malformed, "frame", "left out: expected a function and its file")
}
