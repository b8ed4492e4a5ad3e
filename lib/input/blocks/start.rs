//! Changes of an input before its format is known.

use std::io;

use super::{Block, Blocks, MAX_RECORD, last_line_end};
use crate::Error;
use crate::input::colours::{self, Uncoloured};
use crate::input::read::READ_SIZE;

impl Blocks {
    /// Returns all bytes without consuming them, or the first 64 MiB.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub(crate) fn whole_head(&mut self) -> Result<&[u8], Error> {
        let mut buffered = std::mem::take(&mut self.buffered);
        while !self.at_end && buffered.len() <= MAX_RECORD {
            self.read_into(&mut buffered, READ_SIZE);
        }
        self.buffered = buffered;
        self.head()
    }

    /// Returns true if the first bytes have escape sequences of colours.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub(crate) fn has_colours(&mut self) -> Result<bool, Error> {
        Ok(colours::has_colours(self.head()?))
    }

    /// Drops the escape sequences of a text, wherever they begin.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub(crate) fn drop_colours(&mut self) -> Result<(), Error> {
        if self.is_uncoloured || colours::is_binary(self.head()?) {
            return Ok(());
        }
        self.is_uncoloured = true;
        if !self.at_end {
            let raw = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            let (start, reader) = Uncoloured::after(&self.buffered[self.consumed..], raw);
            (self.buffered, self.consumed, self.reader) = (Block::from(start), 0, Box::new(reader));
        } else if self.has_colours()? {
            let text = Uncoloured::strip_whole(&self.buffered[self.consumed..]);
            (self.buffered, self.consumed) = (Block::from(text), 0);
        }
        Ok(())
    }

    /// Skips the blank lines at the beginning of a text; returns false if there is none.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub(crate) fn skip_blank_lines(&mut self) -> Result<bool, Error> {
        let head = self.head()?;
        let blanks = &head[..head.len() - head.trim_ascii_start().len()];
        let end = last_line_end(blanks).unwrap_or(0);
        let lines = memchr::memchr_iter(b'\n', &blanks[..end]).count() as u64;
        self.skip_start(end, lines);
        Ok(lines > 0)
    }

    /// Skips this number of the first bytes, which are whole lines.
    pub(crate) fn skip_start(&mut self, bytes: usize, lines: u64) {
        self.consumed += bytes;
        self.skipped_lines += lines;
    }
}
