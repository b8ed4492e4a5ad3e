//! Records, one after the other.

use std::io::Read;

use super::{Fault, broken};

/// How much is read at once.
const BLOCK: usize = 256 * 1024;
/// A record's header: its kind, flags, and length.
pub(super) const RECORD_HEADER: usize = 8;

/// Records from a reader, which need not be a file.
pub(super) struct Stream<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes have been handed out.
    pub(super) offset: u64,
    /// How many are left; `None` if they go on to the end.
    left: Option<u64>,
    ended: bool,
}

impl<R: Read> Stream<R> {
    /// The records of so many bytes, or of all.
    pub(super) fn new(reader: R, left: Option<u64>) -> Self {
        Self { reader, buffer: vec![0; 2 * BLOCK], start: 0, end: 0, offset: 0, left, ended: false }
    }

    /// The next record whole. `None` at the end.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read, is cut short, or is no record.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
        if !self.have(RECORD_HEADER)? {
            return match (self.end - self.start, self.left) {
                (0, None | Some(0)) => Ok(None),
                _ => broken(self.cut_short()),
            };
        }
        let size = usize::from(u16::from_le_bytes([self.buffer[self.start + 6], self.buffer[self.start + 7]]));
        if size < RECORD_HEADER {
            return broken(format!("corrupt: no record stands at byte {} of its records", self.offset));
        }
        if !self.have(size)? {
            return broken(self.cut_short());
        }
        let start = self.start;
        self.start += size;
        self.offset += size as u64;
        Ok(Some(&self.buffer[start..start + size]))
    }

    /// Passes over what is no record.
    pub(super) fn skip(&mut self, mut bytes: u64) -> Result<(), Fault> {
        while bytes > 0 {
            if !self.have(1)? {
                return broken(self.cut_short());
            }
            let passed = ((self.end - self.start) as u64).min(bytes);
            self.start += passed as usize;
            self.offset += passed;
            bytes -= passed;
        }
        Ok(())
    }

    fn cut_short(&self) -> String {
        format!("cut short after {} bytes of records", self.offset)
    }

    /// Whether so many bytes are there, after reading on if need be.
    #[inline]
    fn have(&mut self, bytes: usize) -> Result<bool, Fault> {
        if self.end - self.start >= bytes {
            return Ok(true);
        }
        self.read_on(bytes)
    }

    fn read_on(&mut self, bytes: usize) -> Result<bool, Fault> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < bytes && !self.ended {
            let room = (self.buffer.len() - self.end).min(BLOCK);
            let wanted = self.left.map_or(room, |left| left.min(room as u64) as usize);
            match self.reader.read(&mut self.buffer[self.end..self.end + wanted]) {
                Ok(0) => self.ended = true,
                Ok(read) => {
                    self.end += read;
                    self.left = self.left.map(|left| left - read as u64);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.end >= bytes)
    }
}
