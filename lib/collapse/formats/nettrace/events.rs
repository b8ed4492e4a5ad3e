//! The events of a block, and the metadata that give them their names.

use rustc_hash::FxHashMap;

use crate::collapse::formats::little_endian::Bytes;

/// The flag of a block whose events have short headers.
const SHORT_HEADERS: u16 = 1;

/// The bits of the first byte of a short header: the fields that follow.
mod field {
    pub const METADATA: u8 = 1;
    pub const CAPTURE: u8 = 2;
    pub const THREAD: u8 = 4;
    pub const STACK: u8 = 8;
    /// An ID in versions 4 and 5, the list of labels in version 6.
    pub const ACTIVITY: u8 = 16;
    pub const RELATED_ACTIVITY: u8 = 32;
    pub const PAYLOAD_SIZE: u8 = 128;
}

/// The size of the ID of an activity.
const GUID: usize = 16;

/// The header of an event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Header {
    pub(super) metadata: u32,
    pub(super) thread: u64,
    pub(super) cpu: u32,
    pub(super) stack: u32,
    pub(super) time: u64,
    payload_size: u32,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EventType {
    pub(super) provider: Vec<u8>,
    pub(super) id: u32,
    pub(super) name: Vec<u8>,
    pub(super) version: u32,
}

/// The events of a block, with their payloads.
pub(super) struct Events<'a> {
    rest: Bytes<'a>,
    header: Header,
    is_compact: bool,
    has_short_headers: bool,
}

impl<'a> Events<'a> {
    /// Reads the header of a block. `is_compact` is true for version 6.
    pub(super) fn new(block: &'a [u8], is_compact: bool) -> Option<Self> {
        let mut bytes = Bytes(block);
        let header_size = usize::from(bytes.u16()?);
        let flags = bytes.u16()?;
        let rest = Bytes(block.get(header_size.max(4)..)?);
        Some(Self { rest, header: Header::default(), is_compact, has_short_headers: flags & SHORT_HEADERS != 0 })
    }

    /// Returns the next event, `Some(None)` if it is malformed, and `None` at the end of the block.
    pub(super) fn next(&mut self) -> Option<Option<(Header, &'a [u8])>> {
        if self.rest.is_empty() {
            return None;
        }
        let event = if self.has_short_headers { self.read_short() } else { self.read_long() };
        if event.is_none() {
            self.rest = Bytes(b"");
        }
        Some(event)
    }

    fn read_short(&mut self) -> Option<(Header, &'a [u8])> {
        let (bytes, header) = (&mut self.rest, &mut self.header);
        let flags = bytes.u8()?;
        let has = |field: u8| flags & field != 0;
        if has(field::METADATA) {
            header.metadata = bytes.varint()? as u32;
        }
        if has(field::CAPTURE) {
            // The number of the event, and the thread that wrote it.
            bytes.varint()?;
            bytes.varint()?;
            header.cpu = bytes.varint()? as u32;
        }
        if has(field::THREAD) {
            header.thread = bytes.varint()?;
        }
        if has(field::STACK) {
            header.stack = bytes.varint()? as u32;
        }
        header.time = header.time.wrapping_add(bytes.varint()?);
        if self.is_compact {
            if has(field::ACTIVITY) {
                bytes.varint()?;
            }
        } else {
            bytes.take(GUID * (usize::from(has(field::ACTIVITY)) + usize::from(has(field::RELATED_ACTIVITY))))?;
        }
        if has(field::PAYLOAD_SIZE) {
            header.payload_size = bytes.varint()? as u32;
        }
        let payload = bytes.take(header.payload_size as usize)?;
        Some((*header, payload))
    }

    fn read_long(&mut self) -> Option<(Header, &'a [u8])> {
        let size = self.rest.u32()? as usize;
        // Versions 4 and 5 align events.
        let padding = if self.is_compact { 0 } else { size.next_multiple_of(4) - size };
        let mut bytes = Bytes(self.rest.take(size)?);
        self.rest.take(padding.min(self.rest.0.len()))?;
        let metadata = bytes.u32()? & 0x7fff_ffff;
        bytes.u32()?;
        let thread = bytes.u64()?;
        bytes.u64()?;
        let (cpu, stack, time) = (bytes.u32()?, bytes.u32()?, bytes.u64()?);
        bytes.take(if self.is_compact { 4 } else { 2 * GUID })?;
        let payload_size = bytes.u32()?;
        let header = Header { metadata, thread, cpu, stack, time, payload_size };
        Some((header, bytes.take(payload_size as usize)?))
    }
}

/// Adds the types of events that a block of metadata describes. Returns false if it is malformed.
pub(super) fn add_metadata(block: &[u8], is_compact: bool, types: &mut FxHashMap<u32, EventType>) -> bool {
    if is_compact { add_compact_metadata(block, types).is_some() } else { add_metadata_events(block, types) }
}

fn add_metadata_events(block: &[u8], types: &mut FxHashMap<u32, EventType>) -> bool {
    let Some(mut events) = Events::new(block, false) else { return false };
    let mut is_whole = true;
    while let Some(event) = events.next() {
        match event.and_then(|(_, payload)| parse_metadata(payload)) {
            Some((number, event)) => drop(types.insert(number, event)),
            None => is_whole = false,
        }
    }
    is_whole
}

/// Parses metadata of versions 4 and 5. The fields of the event, which follow, are known by its name.
fn parse_metadata(payload: &[u8]) -> Option<(u32, EventType)> {
    let mut bytes = Bytes(payload);
    let number = bytes.u32()?;
    let provider = bytes.utf16_c_string()?;
    let id = bytes.u32()?;
    let name = bytes.utf16_c_string()?;
    bytes.u64()?;
    let version = bytes.u32()?;
    Some((number, EventType { provider, id, name, version }))
}

fn add_compact_metadata(block: &[u8], types: &mut FxHashMap<u32, EventType>) -> Option<()> {
    let mut bytes = Bytes(block);
    let header_size = bytes.u16()?;
    bytes.take(header_size.into())?;
    while !bytes.is_empty() {
        let size = bytes.u16()?;
        let mut row = Bytes(bytes.take(size.into())?);
        let number = row.varint()? as u32;
        let provider = read_string(&mut row)?.to_vec();
        let id = row.varint()? as u32;
        let name = read_string(&mut row)?.to_vec();
        types.insert(number, EventType { provider, id, name, version: 0 });
    }
    Some(())
}

/// Reads a length, and as many bytes of UTF-8.
pub(super) fn read_string<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(bytes.varint()?).ok()?;
    bytes.take(length)
}
