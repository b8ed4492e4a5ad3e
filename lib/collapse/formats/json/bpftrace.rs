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
use crate::collapse::formats::bpftrace::{Entry, PlainMaps, USES_TOTALS};
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

/// The maps that are left out, and whether totals were read.
#[derive(Default)]
struct Findings {
    without_stacks: PlainMaps,
    /// Maps of averages and histograms.
    without_sums: PlainMaps,
    has_totals: bool,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut found) = (Vec::new(), Findings::default());
    while document.read_line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(tape) = Tape::parse(&line).ok().filter(|tape| !tape.is_truncated) else {
            document.report_malformed("expected a JSON object")?;
            continue;
        };
        let root = Value::root(&tape);
        let Some(kind) = root.and_then(|root| root.get(b"type")?.as_string()) else {
            document.report_malformed("expected an object with a type")?;
            continue;
        };
        if matches!(&kind[..], b"map" | b"stats" | b"hist" | b"lhist") {
            for (name, map) in root.and_then(|root| root.get(b"data")).into_iter().flat_map(Value::members) {
                fold_map(&name, map, &kind, &mut found, document, sink)?;
            }
        }
    }
    if found.has_totals {
        document.warn(USES_TOTALS);
    }
    found.without_sums.report("left out maps of averages or histograms, which do not add up", document)?;
    found.without_stacks.report_without_stacks(document)
}

/// Adds the entries of a map. `kind` is the type of its document.
fn fold_map(
    name: &[u8],
    map: Value<'_>,
    kind: &[u8],
    found: &mut Findings,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    // If some keys of a map have stacks, a key without one has an empty stack.
    if !map.members().any(|(key, _)| key.contains(&b'\n')) {
        found.without_stacks.add(name);
        return Ok(());
    }
    for (key, value) in map.members() {
        // Averages are documents of the same type as `stats()`.
        let total = value.get(b"total").filter(|_| kind == b"stats");
        found.has_totals |= total.is_some();
        let value = if kind == b"map" { Some(value) } else { total };
        match value.map(|value| value.as_millionths().and_then(weight_from_millionths)) {
            Some(Some(weight)) => parse_entry(name, &key, document.options, sink).add(weight, document, sink)?,
            Some(None) => document.report_malformed("expected a number, found a histogram")?,
            None => found.without_sums.add(name),
        }
    }
    Ok(())
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
