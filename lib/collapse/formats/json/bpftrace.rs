//! bpftrace's maps of stacks as JSON (`bpftrace -f json`), one document a line.
//!
//! ```text
//! {"type": "map", "data": {"@": {"\n    read+12\n    main+3\n,bash": 5}}}
//! ```
//! A key's parts stand between commas, and its stacks are indented lines, leaf first.

use super::begins;
use super::tape::Tape;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::formats::bpftrace::Entry;
use crate::collapse::formats::{Format, FormatReader};
use crate::collapse::sink::Sink;
use crate::collapse::{Options, whole};

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "bpftrace-json",
    description: "bpftrace maps of stacks as JSON (-f json)",
    has_times: false,
    recognizes: |head| begins(head, |root| root.get(b"type").is_some() && root.get(b"data").is_some()),
    reader: FormatReader::Lines(read),
};

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut plain) = (Vec::new(), false);
    while document.line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(tape) = Tape::read(&line).ok().filter(|tape| !tape.cut) else {
            document.malformed("no JSON object")?;
            continue;
        };
        let maps = tape.root().filter(|root| root.get(b"type").and_then(Value::text).as_deref() == Some(b"map"));
        for (name, map) in maps.and_then(|root| root.get(b"data")).into_iter().flat_map(Value::members) {
            // A key without a stack is that of an empty one, if others have stacks.
            if !map.members().any(|(key, _)| key.contains(&b'\n')) {
                plain = true;
                continue;
            }
            for (key, count) in map.members() {
                if let Some(weight) = count.millionths().and_then(whole::positive) {
                    entry(&name, &key, document.options, sink).add(weight, document, sink)?;
                } else {
                    document.malformed("a histogram, which is no weight of a stack")?;
                }
            }
        }
    }
    match sink.is_empty() && document.events.seen().is_empty() && plain {
        true => Err(document.unreadable("bpftrace's output, but no map in it is keyed by a stack")),
        false => Ok(()),
    }
}

fn entry(map: &[u8], key: &[u8], options: &Options, sink: &mut Sink) -> Entry {
    let mut entry = Entry::of(map);
    for line in key.split(|byte| *byte == b'\n') {
        match line.first().is_some_and(u8::is_ascii_whitespace) {
            true => entry.frame(line.trim_ascii(), options, sink),
            false => {
                entry.pause();
                entry.keys(line);
            }
        }
    }
    entry
}
