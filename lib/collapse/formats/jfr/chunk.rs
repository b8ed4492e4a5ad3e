//! The chunks of a recording: each has its own header, metadata, constants and events.

use super::constants::Constants;
use super::metadata::Schema;
use super::source::{MAGIC, Window};
use super::wire::Cursor;
use crate::Error;

/// The size of a chunk's header in bytes.
const HEADER_SIZE: usize = 68;

/// Type IDs of the events that describe the others.
const METADATA: u64 = 0;
pub(super) const CHECKPOINT: u64 = 1;

/// Maximum size of one event, in bytes: it is held in memory.
const MAX_EVENT: u64 = 1 << 30;

/// A chunk and its header.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// The offset in the recording.
    start: u64,
    /// The offset of its end.
    pub(super) end: u64,
    /// The major version of the format.
    pub(super) version: u16,
    metadata: u64,
    /// The start in nanoseconds since 1970, and in ticks.
    start_time: u64,
    start_ticks: u64,
    pub(super) ticks_per_second: u64,
    pub(super) has_varints: bool,
    /// True if the recording ends before the chunk does, or if the chunk was not completed.
    pub(super) is_cut: bool,
}

/// An event of a chunk: its type, and the offset and size of its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventBytes {
    pub(super) kind: u64,
    offset: u64,
    size: usize,
    /// Number of bytes of its size and its type.
    prefix: usize,
}

impl Chunk {
    /// Reads the header at an offset. Returns `None` if there is none.
    pub(super) fn read(window: &mut Window<'_>, start: u64) -> Result<Option<Self>, Error> {
        let length = window.len();
        let header = window.read(start, HEADER_SIZE)?;
        if header.len() < HEADER_SIZE || !header.starts_with(MAGIC) {
            return Ok(None);
        }
        let mut cursor = Cursor::new(&header[MAGIC.len()..], false);
        let mut next = |size| cursor.read_integer(size).unwrap_or_default();
        let (version, _) = (next(2) as u16, next(2));
        let (size, checkpoint, metadata) = (next(8), next(8), next(8));
        let (start_time, _, start_ticks, ticks_per_second, features) = (next(8), next(8), next(8), next(8), next(4));
        let end = start.saturating_add(size);
        // A JVM that ended abruptly leaves a chunk without a size or with one of an earlier time.
        let is_cut = size < HEADER_SIZE as u64 || end > length || checkpoint == 0 || metadata == 0;
        Ok(Some(Self {
            start,
            end: if is_cut { length } else { end },
            version,
            metadata,
            start_time,
            start_ticks,
            ticks_per_second,
            has_varints: features & 1 != 0,
            is_cut,
        }))
    }

    /// Returns a time in nanoseconds since 1970.
    pub(super) fn time(&self, ticks: u64) -> u64 {
        let elapsed = i128::from(ticks.cast_signed()) - i128::from(self.start_ticks.cast_signed());
        let elapsed = elapsed * 1_000_000_000 / i128::from(self.ticks_per_second.max(1));
        u64::try_from(i128::from(self.start_time) + elapsed).unwrap_or(0)
    }

    /// Returns the offset of the first event.
    pub(super) fn first_event(&self) -> u64 {
        self.start + HEADER_SIZE as u64
    }

    /// Returns the event at an offset, or `None` at the end of the chunk and where there is no whole event.
    #[inline]
    pub(super) fn event_at(&self, window: &mut Window<'_>, offset: u64) -> Result<Option<EventBytes>, Error> {
        let prefix = window.read(offset, 20)?;
        let mut cursor = Cursor::new(prefix, self.has_varints);
        let size = cursor.read_int().filter(|size| *size > 0);
        let (Some(size), Some(kind)) = (size, cursor.read_long()) else { return Ok(None) };
        let prefix = prefix.len() - cursor.remaining();
        let is_inside = offset.checked_add(size).is_some_and(|end| end <= self.end) && size >= prefix as u64;
        Ok(is_inside.then_some(EventBytes { kind, offset, size: size as usize, prefix }))
    }

    /// Reads the metadata. Returns `None` if they are missing or malformed.
    pub(super) fn read_schema(&self, window: &mut Window<'_>) -> Result<Option<Schema>, Error> {
        let metadata = self.start.saturating_add(self.metadata);
        if !self.is_cut
            && let Some(event) = self.event_at(window, metadata)?.filter(|event| event.kind == METADATA)
            && let Some(schema) = Schema::parse(event.read(window)?, self.has_varints)
        {
            return Ok(Some(schema));
        }
        self.search_schema(window)
    }

    /// Searches the whole chunk for its last metadata.
    fn search_schema(&self, window: &mut Window<'_>) -> Result<Option<Schema>, Error> {
        let (mut schema, mut offset) = (None, self.first_event());
        while let Some(event) = self.event_at(window, offset)? {
            if event.kind == METADATA {
                schema = Schema::parse(event.read(window)?, self.has_varints).or(schema);
            }
            offset = event.end();
        }
        Ok(schema)
    }

    /// Adds the constants of the checkpoint at an offset. Returns false if it is malformed.
    pub(super) fn add_checkpoint(
        &self,
        offset: u64,
        schema: &Schema,
        constants: &mut Constants,
        window: &mut Window<'_>,
    ) -> Result<bool, Error> {
        let Some(event) = self.event_at(window, offset)? else { return Ok(false) };
        Ok(constants.add_checkpoint(event.read(window)?, schema, self.has_varints).is_some())
    }
}

impl EventBytes {
    /// Returns the offset of the event after this one.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.size as u64
    }

    /// Returns all bytes of the event.
    fn read<'w>(&self, window: &'w mut Window<'_>) -> Result<&'w [u8], Error> {
        let size = if self.size as u64 > MAX_EVENT { 0 } else { self.size };
        window.read(self.offset, size)
    }

    /// Returns the bytes after the size and the type.
    pub(super) fn read_values<'w>(&self, window: &'w mut Window<'_>) -> Result<&'w [u8], Error> {
        let prefix = self.prefix;
        Ok(self.read(window)?.get(prefix..).unwrap_or_default())
    }
}
