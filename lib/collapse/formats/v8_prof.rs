//! V8's log of `node --prof`: code as it is made and moved, and ticks with the addresses of their stacks, leaf first.
//! Native code has no names there and is called by its file.
//!
//! ```text
//! v8-version,11,3,244,8,-node.38,0
//! shared-library,/usr/bin/node,0x400000,0x25fe000,0
//! code-creation,JS,11,214417,0x5b80,336,hot /srv/a.js:1:13,0x13b2,^
//! tick,0x5ba0,300000,0,0x0,0,0x5bf0,+0x20
//! ```

use std::collections::BTreeMap;

use bstr::ByteSlice as _;

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{self, Stack};
use crate::collapse::text;
use crate::markers;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "v8-prof",
    description: "V8 log of node --prof",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    head.starts_with(b"v8-version,")
}

/// Pieces of code by where they begin: where they end, and what they are called.
#[derive(Default)]
struct Code(BTreeMap<u64, (u64, FrameId)>);

impl Code {
    fn insert(&mut self, start: u64, size: u64, name: FrameId) {
        self.0.insert(start, (start.saturating_add(size), name));
    }

    fn moved(&mut self, from: u64, to: u64) {
        if let Some((end, name)) = self.0.remove(&from) {
            self.insert(to, end - from, name);
        }
    }

    fn find(&self, address: u64) -> Option<FrameId> {
        let (_, (end, name)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some(*name)
    }
}

/// Code that was made at run time, and files that were loaded before.
#[derive(Default)]
struct Memory {
    made: Code,
    loaded: Code,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut memory) = (Vec::new(), Memory::default());
    document.unit("ticks");
    while document.line(&mut line)? {
        let mut fields = line.split(|byte| *byte == b',');
        let kind = fields.next().unwrap_or_default();
        let fields: Vec<&[u8]> = fields.collect();
        let whole = match kind {
            b"code-creation" => memory.creation(&fields, sink).is_some(),
            b"code-move" => memory.moved(&fields).is_some(),
            b"shared-library" => memory.library(&fields, sink).is_some(),
            b"tick" => match memory.stack(&fields, sink) {
                Some(mut stack) => stack.add_leaf_first(Weight::ONE, sink).map(|()| true)?,
                None => false,
            },
            _ => true,
        };
        if !whole {
            document.malformed("not of the form that a V8 log has here")?;
        }
    }
    document.ends_with_a_line()
}

fn address(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix(b"0x")?.to_str().ok()?, 16).ok()
}

impl Memory {
    /// Takes `JS,11,214417,0x5b80,336,hot /srv/a.js:1:13,…`; a comma in a name is written as `\x2C`.
    fn creation(&mut self, fields: &[&[u8]], sink: &mut Sink) -> Option<()> {
        let [_, _, _, start, size, name, ..] = fields else { return None };
        let name = name.trim().replace("\\x2C", ",");
        let name: &[u8] = if name.is_empty() { b"(anonymous)" } else { &name };
        self.made.insert(address(start)?, text::number(size)?, stack::frame(name, sink));
        Some(())
    }

    fn moved(&mut self, fields: &[&[u8]]) -> Option<()> {
        let [from, to, ..] = fields else { return None };
        self.made.moved(address(from)?, address(to)?);
        Some(())
    }

    /// Takes `/usr/bin/node,0x400000,0x25fe000,0`.
    fn library(&mut self, fields: &[&[u8]], sink: &mut Sink) -> Option<()> {
        let [path, start, end, ..] = fields else { return None };
        let file = path.trim_with(|byte| byte == '"').rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let (start, end) = (address(start)?, address(end)?);
        self.loaded.insert(start, end.saturating_sub(start), sink.intern(&[b"[", file, b"]"].concat()));
        Some(())
    }

    /// Takes `PC,TIME,EXTERNAL,TOP,STATE,FRAME,…`, where a frame may be told by how far it is from the last one.
    fn stack(&self, fields: &[&[u8]], sink: &mut Sink) -> Option<Stack> {
        let (&[pc, _, external, top, _], frames) = fields.split_first_chunk::<5>()?;
        let (pc, top) = (address(pc)?, address(top)?);
        // In a callback the counter is somewhere in native code, and what was called is known.
        let mut last = if external == b"1" { top } else { pc };
        let mut stack = Stack::default();
        stack.extend(&[self.name(last, sink)]);
        if external != b"1"
            && let Some(name) = self.made.find(top)
        {
            stack.extend(&[name]);
        }
        for frame in frames {
            let found = match frame.first()? {
                b'+' => last.wrapping_add(address(&frame[1..])?),
                b'-' => last.wrapping_sub(address(&frame[1..])?),
                b'o' => continue,
                _ => address(frame)?,
            };
            if matches!(frame.first(), Some(b'+' | b'-')) {
                last = found;
            }
            stack.extend(&[self.name(found, sink)]);
        }
        Some(stack)
    }

    fn name(&self, address: u64, sink: &mut Sink) -> FrameId {
        self.made.find(address).or_else(|| self.loaded.find(address)).unwrap_or_else(|| sink.intern(markers::UNKNOWN))
    }
}
