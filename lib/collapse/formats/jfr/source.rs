//! The bytes of a recording, which are read at any offset.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::read_bytes;

/// The first bytes of each chunk.
pub(super) const MAGIC: &[u8] = b"FLR\0";

/// Least number of bytes that a sequential reader keeps.
const WINDOW: usize = 1 << 20;

/// Number of bytes that the buffer keeps for the next read. Most checkpoints of a JVM are as large as a chunk, which has
/// 12 MiB, and memory that was returned to the kernel must be cleared again.
const MAX_KEPT: usize = 32 << 20;

/// A recording: a file, or the bytes of an input that cannot be read at any offset.
pub(super) enum Recording {
    File(File, u64),
    Memory(Vec<u8>),
}

impl Recording {
    pub(super) fn open(document: &mut Document<'_>) -> Result<Self, Error> {
        if let Some(mut file) = document.source().regular_file() {
            let mut magic = [0; MAGIC.len()];
            if file.read_exact(&mut magic).is_ok() && magic == *MAGIC {
                let length = file.metadata().map_err(|error| Error::read(document.name(), error))?.len();
                return Ok(Self::File(file, length));
            }
        }
        read_bytes(document).map(Self::Memory)
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File(_, length) => *length,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Appends up to `length` bytes at an offset to a buffer. There are fewer at the end of the recording.
    fn read_at(&mut self, offset: u64, length: usize, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        match self {
            Self::File(file, _) => {
                file.seek(SeekFrom::Start(offset))?;
                buffer.reserve_exact(length);
                file.take(length as u64).read_to_end(buffer).map(drop)
            }
            Self::Memory(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
                buffer.extend_from_slice(&rest[..rest.len().min(length)]);
                Ok(())
            }
        }
    }
}

/// A part of a recording that is being read. It keeps the bytes around the last position in memory.
pub(super) struct Window<'a> {
    recording: &'a mut Recording,
    /// The name of the input for messages.
    name: String,
    bytes: Vec<u8>,
    /// The offset of `bytes` in the recording.
    start: u64,
}

impl<'a> Window<'a> {
    pub(super) fn new(recording: &'a mut Recording, name: &str) -> Self {
        Self { recording, name: name.to_owned(), bytes: Vec::new(), start: 0 }
    }

    /// Returns the number of bytes of the recording.
    pub(super) fn len(&self) -> u64 {
        self.recording.len()
    }

    /// Returns the bytes at an offset: `length` if the recording has as many, else those up to its end.
    pub(super) fn read(&mut self, offset: u64, length: usize) -> Result<&[u8], Error> {
        let rest = usize::try_from(self.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = length.min(rest);
        let held = offset.checked_sub(self.start).and_then(|skipped| usize::try_from(skipped).ok());
        let held = held.filter(|skipped| skipped.checked_add(length).is_some_and(|end| end <= self.bytes.len()));
        if let Some(skipped) = held {
            return Ok(&self.bytes[skipped..skipped + length]);
        }
        self.bytes.clear();
        if self.bytes.capacity() > MAX_KEPT {
            self.bytes = Vec::new();
        }
        // A chain of checkpoints is followed backwards: what precedes the bytes is read next.
        let before = if offset < self.start { WINDOW.saturating_sub(length) as u64 } else { 0 };
        self.start = offset.saturating_sub(before);
        let read = self.recording.read_at(self.start, length.max(WINDOW), &mut self.bytes);
        read.map_err(|error| Error::read(&self.name, error))?;
        let rest = self.bytes.get((offset - self.start) as usize..).unwrap_or_default();
        Ok(&rest[..length.min(rest.len())])
    }
}

#[cfg(test)]
mod tests {
    use super::{Recording, WINDOW, Window};

    #[test]
    fn returns_the_bytes_at_any_offset() {
        let bytes: Vec<u8> = (0..3 * WINDOW + 5).map(|index| (index / 251) as u8).collect();
        let mut recording = Recording::Memory(bytes.clone());
        let mut window = Window::new(&mut recording, "x");
        let last = bytes.len() as u64 - 1;
        for offset in [0, 5, last, last - 9, WINDOW as u64 + 7, WINDOW as u64, 3, 0, last + 1] {
            for length in [1, 20, WINDOW + 1, 2 * WINDOW] {
                let expected = &bytes[offset as usize..bytes.len().min(offset as usize + length)];
                assert!(window.read(offset, length).unwrap() == expected, "{length} bytes at {offset}");
            }
        }
    }
}
