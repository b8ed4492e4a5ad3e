//! Reads records one after the other.

use std::io::Read;

use super::error::{ReadError, corrupt, explain_other, explain_second};
use super::header::MAGIC;

/// Number of bytes that are read at once.
const BLOCK: usize = 256 * 1024;
/// The size of a record's header: type, flags and size.
pub(super) const RECORD_HEADER: usize = 8;

/// Returns the size of the record at the start of `bytes`, header included. `None` if the header is not complete.
#[inline]
pub(super) fn record_size(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..RECORD_HEADER)?;
    Some(u16::from_le_bytes([header[6], header[7]]).into())
}

/// Highest type of a record. The kernel and perf use less than 100; text has more than 2^24.
const MAX_TYPE: u32 = 0xffff;

/// Returns the type of a record, from `enum perf_event_type` of the kernel or of perf.
pub(super) fn record_type(record: &[u8]) -> u32 {
    u32::from_le_bytes([record[0], record[1], record[2], record[3]])
}

/// Reads records from a file or a pipe.
pub(super) struct RecordReader<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of bytes that were returned or skipped.
    offset: u64,
    /// Number of bytes that are still to be read from `reader`; `None` to read to its end.
    remaining: Option<u64>,
    is_at_end: bool,
}

impl<R: Read> RecordReader<R> {
    /// Creates a reader of `size` bytes of records, or of all that `reader` has.
    pub(super) fn new(reader: R, size: Option<u64>) -> Self {
        Self { reader, buffer: vec![0; 2 * BLOCK], start: 0, end: 0, offset: 0, remaining: size, is_at_end: false }
    }

    /// Reads the next record; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be read, is cut short, or is not a record.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, ReadError> {
        if !self.fill(RECORD_HEADER)? {
            return match (self.end - self.start, self.remaining) {
                (0, None | Some(0)) => Ok(None),
                _ => corrupt(self.cut_short()),
            };
        }
        if self.buffer[self.start..self.end].starts_with(MAGIC) {
            return Err(ReadError::Trailing(explain_second(self.offset)));
        }
        if self.offset > 0 && record_type(&self.buffer[self.start..]) > MAX_TYPE {
            return Err(ReadError::Trailing(explain_other(self.offset)));
        }
        let size = record_size(&self.buffer[self.start..]).unwrap_or_default();
        if size < RECORD_HEADER {
            return corrupt(format!("corrupt: no record at byte {} of its records", self.offset));
        }
        if !self.fill(size)? {
            return corrupt(self.cut_short());
        }
        let start = self.start;
        self.start += size;
        self.offset += size as u64;
        Ok(Some(&self.buffer[start..start + size]))
    }

    /// Skips bytes between records.
    pub(super) fn skip(&mut self, mut bytes: u64) -> Result<(), ReadError> {
        while bytes > 0 {
            if !self.fill(1)? {
                return corrupt(self.cut_short());
            }
            let skipped = ((self.end - self.start) as u64).min(bytes);
            self.start += skipped as usize;
            self.offset += skipped;
            bytes -= skipped;
        }
        Ok(())
    }

    fn cut_short(&self) -> String {
        let buffered = (self.end - self.start) as u64;
        match self.remaining {
            Some(missing) => {
                let all = self.offset.saturating_add(buffered).saturating_add(missing);
                format!("cut short after {} of {all} bytes of records", self.offset)
            }
            None => format!("cut short after {} bytes of records", self.offset),
        }
    }

    /// Reads until the buffer has `bytes` bytes. False if the input ends before.
    #[inline]
    fn fill(&mut self, bytes: usize) -> Result<bool, ReadError> {
        if self.end - self.start >= bytes {
            return Ok(true);
        }
        self.read_more(bytes)
    }

    fn read_more(&mut self, bytes: usize) -> Result<bool, ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < bytes && !self.is_at_end {
            let room = (self.buffer.len() - self.end).min(BLOCK);
            let wanted = self.remaining.map_or(room, |remaining| remaining.min(room as u64) as usize);
            match self.reader.read(&mut self.buffer[self.end..self.end + wanted]) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => {
                    self.end += read;
                    self.remaining = self.remaining.map(|remaining| remaining - read as u64);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.end >= bytes)
    }
}
