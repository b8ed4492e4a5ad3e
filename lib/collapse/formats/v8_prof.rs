//! Logs of V8 (`node --prof`, file `isolate-….log`): code as it is created and moved, and ticks with the addresses of
//! their stacks, leaf first.
//!
//! ```text
//! v8-version,11,3,244,8,-node.38,0
//! shared-library,/usr/bin/node,0x400000,0x25fe000,0
//! code-creation,JS,11,214417,0x5b80,336,hot /srv/a.js:1:13,0x13b2,^
//! tick,0x5ba0,300000,0,0x0,0,0x5bf0,+0x20
//! ```
//! Each tick has weight 1. Native code has no symbols in the log, so its frames are named by its file. Times, VM states
//! and all other records are left out.

use std::collections::BTreeMap;

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::parse_number;
use crate::collapse::sink::Sink;
use crate::collapse::stack::{self, Stack};
use crate::markers;
use crate::profile::{FrameId, Weight};

pub(super) static FORMAT: Format = Format {
    name: "v8-prof",
    description: "V8 log (node --prof)",
    tested_with: "Node.js 20, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Bytes(read),
};

fn recognizes(head: &[u8]) -> bool {
    head.starts_with(b"v8-version,")
}

/// The end and name of ranges of code, by their start address.
#[derive(Default)]
struct CodeMap(BTreeMap<u64, (u64, FrameId)>);

impl CodeMap {
    fn insert(&mut self, start: u64, size: u64, name: FrameId) {
        self.0.insert(start, (start.saturating_add(size), name));
    }

    fn relocate(&mut self, from: u64, to: u64) {
        if let Some((end, name)) = self.0.remove(&from) {
            self.insert(to, end - from, name);
        }
    }

    fn find(&self, address: u64) -> Option<FrameId> {
        let (_, (end, name)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some(*name)
    }
}

/// The code in the memory of the process.
#[derive(Default)]
struct Memory {
    /// Code that V8 compiled.
    compiled: CodeMap,
    /// Executables and shared libraries.
    libraries: CodeMap,
}

/// The kinds of records that have no fields.
const KINDS_WITHOUT_FIELDS: [&[u8]; 1] = [b"shared-library-end"];

/// Returns true for the name of a kind of records, such as `code-source-info`.
fn is_kind(kind: &[u8]) -> bool {
    !kind.is_empty()
        && kind.iter().all(|byte| byte.is_ascii_alphanumeric() && !byte.is_ascii_uppercase() || *byte == b'-')
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut memory) = (Vec::new(), Memory::default());
    document.set_unit("ticks");
    while document.read_line(&mut line)? {
        let mut fields = line.split(|byte| *byte == b',');
        let kind = fields.next().unwrap_or_default();
        let fields: Vec<&[u8]> = fields.collect();
        let parsed = match kind {
            b"code-creation" => memory.create_code(&fields, sink),
            b"code-move" => memory.move_code(&fields),
            b"shared-library" => memory.add_library(&fields, sink),
            b"tick" => match memory.parse_tick(&fields, sink) {
                Some(mut stack) => Some(stack.add_leaf_first(Weight::ONE, sink)?),
                None => None,
            },
            _ if line.is_empty() || is_kind(kind) && !fields.is_empty() => Some(()),
            _ if fields.is_empty() && KINDS_WITHOUT_FIELDS.contains(&kind) => Some(()),
            _ => {
                document.report_malformed("expected a record: its kind and its fields")?;
                continue;
            }
        };
        if parsed.is_none() {
            document.report_malformed(&format!("expected the fields of a {} record", kind.to_str_lossy()))?;
        }
    }
    document.check_last_line()
}

fn parse_address(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix(b"0x")?.to_str().ok()?, 16).ok()
}

impl Memory {
    /// Adds the code of `JS,11,214417,0x5b80,336,hot /srv/a.js:1:13,…`; a comma in a name is written as `\x2C`.
    fn create_code(&mut self, fields: &[&[u8]], sink: &mut Sink) -> Option<()> {
        let [_, _, _, start, size, name, ..] = fields else { return None };
        let name = name.trim().replace("\\x2C", ",");
        let name: &[u8] = if name.is_empty() { b"(anonymous)" } else { &name };
        self.compiled.insert(parse_address(start)?, parse_number(size)?, stack::intern_frame(name, sink));
        Some(())
    }

    /// Moves code from the first address to the second.
    fn move_code(&mut self, fields: &[&[u8]]) -> Option<()> {
        let [from, to, ..] = fields else { return None };
        self.compiled.relocate(parse_address(from)?, parse_address(to)?);
        Some(())
    }

    /// Adds the file of `/usr/bin/node,0x400000,0x25fe000,0`.
    fn add_library(&mut self, fields: &[&[u8]], sink: &mut Sink) -> Option<()> {
        let [path, start, end, ..] = fields else { return None };
        let file = path.trim_with(|byte| byte == '"').rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let (start, end) = (parse_address(start)?, parse_address(end)?);
        self.libraries.insert(start, end.saturating_sub(start), sink.intern(&[b"[", file, b"]"].concat()));
        Some(())
    }

    /// Returns the stack, leaf first, of `PC,TIME,EXTERNAL,TOP,STATE,FRAME,…`. A frame is an address, or with a sign
    /// its distance from the frame before it.
    fn parse_tick(&self, fields: &[&[u8]], sink: &mut Sink) -> Option<Stack> {
        let (&[pc, _, external, top, _], frames) = fields.split_first_chunk::<5>()?;
        let (pc, top) = (parse_address(pc)?, parse_address(top)?);
        // In an external callback, the program counter is anywhere in native code, and TOP is the callback.
        let mut last = if external == b"1" { top } else { pc };
        let mut stack = Stack::default();
        stack.extend(&[self.name_address(last, sink)]);
        if external != b"1"
            && let Some(name) = self.compiled.find(top)
        {
            stack.extend(&[name]);
        }
        for frame in frames {
            let address = match frame.first()? {
                b'+' => last.wrapping_add(parse_address(&frame[1..])?),
                b'-' => last.wrapping_sub(parse_address(&frame[1..])?),
                // The word `overflow`, where the stack was truncated.
                b'o' => continue,
                _ => parse_address(frame)?,
            };
            if matches!(frame.first(), Some(b'+' | b'-')) {
                last = address;
            }
            stack.extend(&[self.name_address(address, sink)]);
        }
        Some(stack)
    }

    /// Returns the frame of an address.
    fn name_address(&self, address: u64, sink: &mut Sink) -> FrameId {
        let frame = self.compiled.find(address).or_else(|| self.libraries.find(address));
        frame.unwrap_or_else(|| sink.intern(markers::UNKNOWN))
    }
}
