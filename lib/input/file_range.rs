//! A part of a file, for threads that read one file in several places.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Blocks, Source, compressed, utf16};
use crate::Error;
use crate::bytes::BOM;

/// How much is read at once: of several sections this much is to stay in the cache.
const BLOCK: usize = 64 * 1024;

/// A part of a file of plain text.
#[derive(Clone)]
pub struct FileRange {
    name: String,
    file: Arc<Mutex<File>>,
    /// Its first byte in the file.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

impl FileRange {
    /// A whole file; nothing if the source is none, or if it is compressed or begins with a byte-order mark.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn open(source: &Source) -> Result<Option<Self>, Error> {
        let Some(file) = source.regular_file() else { return Ok(None) };
        let named = |error| Error::read(source.name(), error);
        let end = file.metadata().map_err(named)?.len();
        let section = Self { name: source.name(), file: Arc::new(Mutex::new(file)), start: 0, end };
        let mut first = Vec::with_capacity(4);
        section.clone().take(4).read_to_end(&mut first).map_err(named)?;
        let is_marked = first.starts_with(BOM) || utf16::is_marked(&first);
        let is_plain = !is_marked && !compressed::is_compressed(&first);
        Ok(is_plain.then_some(section))
    }

    /// Its name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What of it lies in this range of the file.
    pub fn within(&self, range: Range<u64>) -> Self {
        Self { start: range.start, end: range.end, ..self.clone() }
    }

    /// Takes away what lies before this place in the file.
    pub fn split_to(&mut self, end: u64) -> Self {
        let taken = self.within(self.start..end);
        self.start = end;
        taken
    }

    /// Reads it in blocks.
    pub fn into_blocks(self) -> Blocks {
        Blocks::plain(self.name.clone(), Box::new(self), BLOCK)
    }
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size =
            usize::try_from(self.end.saturating_sub(self.start)).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.start))?;
        let read = file.read(&mut buffer[..size])?;
        self.start += read as u64;
        Ok(read)
    }
}
