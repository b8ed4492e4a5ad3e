//! Maps of bpftrace that are keyed by stacks, as JSON (`bpftrace -f json`): one document per line.
//!
//! ```text
//! {"type": "map", "data": {"@": {"\n    read+12\n    main+3\n,bash": 5}}}
//! ```
//! The parts of a key are separated by commas; its stacks are indented lines, leaf first. Weights, root frames and
//! events are as in the [text format](crate::collapse::formats::bpftrace).

use super::tape::Tape;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::weight_from_millionths;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::formats::bpftrace::{Entry, PlainMaps};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "bpftrace-json",
    description: "bpftrace maps keyed by stacks, JSON (-f json)",
    tested_with: "bpftrace 0.17, published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Json(is_root),
    reader: FormatReader::Lines(read),
};

/// Returns true for the root of a document of this format.
fn is_root(root: Value<'_>) -> bool {
    root.get(b"type").is_some() && root.get(b"data").is_some()
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut without_stacks) = (Vec::new(), PlainMaps::default());
    while document.read_line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(tape) = Tape::parse(&line).ok().filter(|tape| !tape.is_truncated) else {
            document.report_malformed("expected a JSON object")?;
            continue;
        };
        let Some(kind) = Value::root(&tape).and_then(|root| root.get(b"type")?.as_string()) else {
            document.report_malformed("expected an object with a type")?;
            continue;
        };
        let maps = Value::root(&tape).filter(|_| *kind == *b"map");
        for (name, map) in maps.and_then(|root| root.get(b"data")).into_iter().flat_map(Value::members) {
            // If some keys of a map have stacks, a key without one has an empty stack.
            if !map.members().any(|(key, _)| key.contains(&b'\n')) {
                without_stacks.add(&name);
                continue;
            }
            for (key, count) in map.members() {
                if let Some(weight) = count.as_millionths().and_then(weight_from_millionths) {
                    parse_entry(&name, &key, document.options, sink).add(weight, document, sink)?;
                } else {
                    document.report_malformed("expected a number, found a histogram")?;
                }
            }
        }
    }
    without_stacks.report(document)
}

fn parse_entry(map: &[u8], key: &[u8], options: &Options, sink: &mut Sink) -> Entry {
    let mut entry = Entry::new(map);
    for line in key.split(|byte| *byte == b'\n') {
        match line.first().is_some_and(u8::is_ascii_whitespace) {
            true => entry.push_frame(line.trim_ascii(), options, sink),
            false => {
                entry.end_stack();
                entry.add_keys(line);
            }
        }
    }
    entry
}
