//! A byte range of a file, for threads that read one file at several places.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::blocks::Blocks;
use super::colours::Uncoloured;
use super::source::Source;
use super::{compressed, utf16};
use crate::Error;
use crate::bytes::BOM;
use crate::parallel::lock;

/// Number of bytes read at once. Buffers of several ranges should fit in the CPU cache together.
const READ_SIZE: usize = 64 * 1024;

/// A byte range of a file of plain text.
#[derive(Clone)]
pub struct FileRange {
    name: String,
    file: Arc<Mutex<File>>,
    /// Offset of its first byte in the file.
    pub start: u64,
    /// Offset after its last byte.
    pub end: u64,
}

impl FileRange {
    /// Opens a whole file; `None` if the source is not a regular file, is compressed or UTF-16, or has a byte order mark.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn open(source: &Source) -> Result<Option<Self>, Error> {
        let Some(file) = source.regular_file() else { return Ok(None) };
        let end = file.metadata().map_err(|error| Error::read(source.name(), error))?.len();
        let range = Self { name: source.name(), file: Arc::new(Mutex::new(file)), start: 0, end };
        let length = compressed::MAGIC_LENGTH.max(utf16::START_LENGTH);
        let mut first = Vec::with_capacity(length);
        range.clone().take(length as u64).read_to_end(&mut first).map_err(|error| Error::read(source.name(), error))?;
        let magic = &first[..first.len().min(compressed::MAGIC_LENGTH)];
        let is_plain = !first.starts_with(BOM) && !utf16::may_be_utf16(&first) && !compressed::is_compressed(magic);
        Ok(is_plain.then_some(range))
    }

    /// Returns the name of the file for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns another range of the same file.
    pub fn subrange(&self, range: Range<u64>) -> Self {
        Self { start: range.start, end: range.end, ..self.clone() }
    }

    /// Removes and returns the part before `end`, an offset in the file.
    pub fn split_to(&mut self, end: u64) -> Self {
        let front = self.subrange(self.start..end);
        self.start = end;
        front
    }

    /// Returns the bytes of the range in blocks.
    pub fn into_blocks(self) -> Blocks {
        Blocks::without_decoding(self.name.clone(), Box::new(Uncoloured::new(Box::new(self))), READ_SIZE)
    }
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size =
            usize::try_from(self.end.saturating_sub(self.start)).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        let mut file = lock(&self.file);
        file.seek(SeekFrom::Start(self.start))?;
        let read = file.read(&mut buffer[..size])?;
        self.start += read as u64;
        Ok(read)
    }
}
