//! bpftrace's maps of stacks as JSON (`bpftrace -f json`), one document a line.
//!
//! ```text
//! {"type": "map", "data": {"@": {"\n    read+12\n    main+3\n,bash": 5}}}
//! ```
//! A key's parts stand between commas: stacks are indented lines, leaf first; what else there is becomes root frames.

use super::begins;
use super::tape::Tape;
use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, Reading};
use crate::collapse::sink::Sink;
use crate::collapse::whole;
use crate::profile::FrameId;

pub(in crate::collapse) static FORMAT: Format = Format {
    name: "bpftrace-json",
    about: "bpftrace maps of stacks as JSON (-f json)",
    recognises: |head| begins(head, |root| root.get(b"type").is_some() && root.get(b"data").is_some()),
    reading: Reading::Lines(read),
};

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut maps) = (Vec::new(), Vec::new());
    while document.line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(tape) = Tape::read(&line).ok().filter(|tape| !tape.cut) else {
            document.malformed("no JSON object")?;
            continue;
        };
        let Some(root) = tape.root() else { continue };
        let is_map = root.get(b"type").and_then(Value::text).as_deref() == Some(b"map");
        for (name, map) in root.get(b"data").filter(|_| is_map).into_iter().flat_map(Value::members) {
            let stacks = map.members().filter(|(key, _)| key.contains(&b'\n'));
            let mut found = false;
            for (key, count) in stacks {
                found = true;
                let weight = count.millionths().and_then(whole::positive).unwrap_or_default();
                whole::add(None, &frames(&key, sink), weight, sink)?;
            }
            if found {
                maps.push(String::from_utf8_lossy(&name).into_owned());
            }
        }
    }
    if maps.len() > 1 {
        document.warn(&format!("several maps hold stacks, added up: {}", maps.join(", ")));
    }
    Ok(())
}

/// The frames of a key, root first.
fn frames(key: &[u8], sink: &mut Sink) -> Vec<FrameId> {
    let (mut roots, mut stack) = (Vec::new(), Vec::new());
    for line in key.split(|byte| *byte == b'\n') {
        if line.first().is_some_and(u8::is_ascii_whitespace) {
            stack.push(sink.intern(without_offset(line.trim_ascii())));
            continue;
        }
        let parts = line.split(|byte| *byte == b',').filter(|part| !part.is_empty());
        roots.extend(parts.map(|part| sink.intern(part)));
    }
    roots.extend(stack.into_iter().rev());
    roots
}

fn without_offset(frame: &[u8]) -> &[u8] {
    match memchr::memrchr(b'+', frame) {
        Some(plus) if plus > 0 && !frame[plus + 1..].is_empty() && frame[plus + 1..].iter().all(u8::is_ascii_digit) => {
            &frame[..plus]
        }
        _ => frame,
    }
}
