//! An input in blocks of whole records.

use std::io::{self, Read};
use std::ops::Deref;

use super::read_ahead::{PIECE, ReadAhead, ReadAheadReader};
use super::{compressed, utf16};
use crate::Error;

/// How much is read at once. Larger brought nothing (measured from 64 KiB to 4 MiB).
pub(super) const BLOCK: usize = 128 * 1024;

/// The longest record that is taken, so that a small compressed file cannot fill the memory.
const LONGEST: usize = 64 << 20;

/// A buffer that [`Blocks::next_into`] fills: one a reader, so that several can work on one input.
#[derive(Default)]
pub struct Block {
    bytes: Vec<u8>,
    filled: usize,
}

impl Block {
    fn set(&mut self, bytes: &[u8]) {
        self.filled = 0;
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.filled = bytes.len();
    }

    /// Room for at least `size` bytes behind what is filled; zeroed once and not at every turn.
    fn room(&mut self, size: usize) -> &mut [u8] {
        if self.bytes.len() < self.filled + size {
            self.bytes.resize(self.filled + size, 0);
        }
        &mut self.bytes[self.filled..]
    }

    /// Reads once, at most `size` bytes; `false` at the end.
    fn read(&mut self, reader: &mut dyn Read, size: usize) -> io::Result<bool> {
        let read = read_some(reader, &mut self.room(size)[..size])?;
        self.filled += read;
        Ok(read > 0)
    }
}

/// Exchanges a block for the next one; `false` at the end.
pub(crate) type BlockSource = Box<dyn FnMut(&mut Block) -> Result<bool, Error> + Send>;

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

/// An opened input, read in blocks of whole records.
pub struct Blocks {
    name: String,
    reader: Box<dyn Read + Send>,
    /// How much of it is read at once.
    size: usize,
    /// Whether reading it is work.
    is_compressed: bool,
    /// What was read and not handed out yet.
    ahead: Block,
    /// How much of that was read since.
    taken: usize,
    block: Block,
    ended: bool,
    /// Why it ended early, until what was read before is handed out.
    failure: Option<io::Error>,
}

impl Blocks {
    /// Reads `raw`, decompressed if its first bytes say so; `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn new(name: String, mut raw: Box<dyn Read + Send>) -> Result<Self, Error> {
        let mut magic = [0; 4];
        let read = read_full(&mut *raw, &mut magic).map_err(|error| Error::read(&name, error))?;
        let start = io::Cursor::new(magic[..read].to_vec());
        let is_compressed = compressed::is_compressed(&magic[..read]);
        let reader = compressed::decompress(&magic[..read], Box::new(start.chain(raw)));
        let reader = utf16::decode(reader).map_err(|error| Error::read(&name, error))?;
        Ok(Self { is_compressed, ..Self::plain(name, reader, BLOCK) })
    }

    /// Reads text as it is, so much at once.
    pub(super) fn plain(name: String, reader: Box<dyn Read + Send>, size: usize) -> Self {
        Self {
            name,
            reader,
            size,
            is_compressed: false,
            ahead: Block::default(),
            taken: 0,
            block: Block::default(),
            ended: false,
            failure: None,
        }
    }

    /// Decompresses, if there is anything to decompress, in a thread of its own.
    #[must_use]
    pub fn read_ahead(mut self) -> Self {
        if std::mem::take(&mut self.is_compressed) {
            self.reader = Box::new(ReadAheadReader::new(self.reader));
        }
        self
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes without taking them, a block of them and the first line at least: for telling the format.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn head(&mut self) -> Result<&[u8], Error> {
        let mut wanted = BLOCK;
        while !self.ended && self.ahead.len() <= LONGEST {
            if self.ahead.len() >= wanted {
                // A first line that is longer tells nothing until all of it is there.
                if memchr::memchr(b'\n', &self.ahead[wanted - BLOCK..]).is_some() {
                    break;
                }
                wanted += BLOCK;
            }
            let rest = wanted - self.ahead.len();
            let mut ahead = std::mem::take(&mut self.ahead);
            self.read_into(&mut ahead, rest);
            self.ahead = ahead;
        }
        if self.ahead.len() == self.taken {
            self.told()?;
        }
        Ok(&self.ahead[self.taken..])
    }

    /// Reads once, at most `size` bytes. Where that fails it is the end, and is told when all that came before is taken.
    fn read_into(&mut self, block: &mut Block, size: usize) {
        match block.read(&mut *self.reader, size) {
            Ok(more) => self.ended = !more,
            Err(error) => (self.ended, self.failure) = (true, Some(error)),
        }
    }

    /// Says why the input ended early, if it did and it was not said.
    pub(crate) fn told(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), |error| Err(Error::read(&self.name, error)))
    }

    /// The next block of whole records. `cut` finds where the last whole record in some text ends, if there is one;
    /// what stands behind it comes first in the next block. The input's end is an end of a record, unless it could not be
    /// read to its end.
    ///
    /// # Errors
    /// [`Error::Read`], also where a single record is longer than 64 MiB.
    pub fn next(&mut self, cut: impl Fn(&[u8]) -> Option<usize>) -> Result<Option<&[u8]>, Error> {
        let mut block = std::mem::take(&mut self.block);
        let found = self.next_into(&mut block, cut);
        self.block = block;
        Ok(found?.then_some(&*self.block))
    }

    /// As [`next`](Self::next), into a buffer of the caller's; `false` at the end.
    ///
    /// # Errors
    /// [`Error::Read`], also where a single record is longer than 64 MiB.
    pub fn next_into(&mut self, block: &mut Block, cut: impl Fn(&[u8]) -> Option<usize>) -> Result<bool, Error> {
        block.set(&self.ahead[self.taken..]);
        (self.ahead.filled, self.taken) = (0, 0);
        // Twice as much at every vain search, so that a long record is not searched over and over.
        let mut searched = 0;
        loop {
            while !self.ended && (block.len() <= searched || block.len() < searched * 2) {
                self.read_into(block, self.size);
            }
            if self.ended && self.failure.is_none() {
                return Ok(!block.is_empty());
            }
            if let Some(end) = cut(block).filter(|end| *end > 0) {
                self.ahead.set(&block[end..]);
                block.filled = end;
                return Ok(true);
            }
            self.told()?;
            searched = block.len();
            if searched > LONGEST {
                let error = io::Error::new(io::ErrorKind::InvalidData, "a single record is longer than 64 MiB");
                return Err(Error::read(&self.name, error));
            }
        }
    }

    /// All blocks that [`next_into`](Self::next_into) gives: from a thread of its own if they are decompressed.
    pub(crate) fn each(mut self, cut: fn(&[u8]) -> Option<usize>) -> BlockSource {
        if !self.is_compressed {
            return Box::new(move |block| self.next_into(block, cut));
        }
        self.size = PIECE;
        let mut ahead = ReadAhead::new(move |block: &mut Block| self.next_into(block, cut));
        Box::new(move |block| ahead.next(block))
    }

    /// Everything that is left.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn rest(&mut self) -> Result<&[u8], Error> {
        self.block.set(&self.ahead[self.taken..]);
        (self.ahead.filled, self.taken) = (0, 0);
        let mut block = std::mem::take(&mut self.block);
        while !self.ended {
            self.read_into(&mut block, BLOCK);
        }
        self.block = block;
        self.told()?;
        Ok(&self.block)
    }
}

/// What was not handed out yet, as bytes.
impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ahead.len() {
            (self.ahead.filled, self.taken) = (0, 0);
            return match self.failure.take() {
                Some(error) => Err(error),
                None if self.ended => Ok(0),
                None => self.reader.read(buffer),
            };
        }
        let rest = &self.ahead[self.taken..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.taken += read;
        Ok(read)
    }
}

/// Where the last whole line in a text ends: the usual cut for formats of one line a record.
pub fn last_line_end(text: &[u8]) -> Option<usize> {
    memchr::memrchr(b'\n', text).map(|end| end + 1)
}

pub(super) fn read_some(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

pub(super) fn read_full(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some(reader, &mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::{Blocks, last_line_end};

    fn blocks(text: &[u8]) -> Blocks {
        Blocks::new("test".to_owned(), Box::new(std::io::Cursor::new(text.to_vec()))).unwrap()
    }

    #[test]
    fn blocks_are_whole_lines_and_lose_nothing() {
        let text: Vec<u8> = (0..60_000).flat_map(|n| format!("line {n}\n").into_bytes()).chain(*b"tail").collect();
        let mut input = blocks(&text);
        let mut seen = Vec::new();
        while let Some(block) = input.next(last_line_end).unwrap() {
            assert!(block.ends_with(b"\n") || seen.len() + block.len() == text.len());
            seen.extend_from_slice(block);
        }
        assert_eq!(seen, text);
    }

    #[test]
    fn a_long_record_comes_whole() {
        let text = [&[b'x'; 1_000_000][..], b"\nshort\n"].concat();
        let mut input = blocks(&text);
        assert!(input.head().unwrap().contains(&b'\n'), "the head holds the first line");
        let mut seen = Vec::new();
        while let Some(block) = input.next(last_line_end).unwrap() {
            assert!(block.ends_with(b"\n"));
            seen.extend_from_slice(block);
        }
        assert!(seen == text);
    }

    #[test]
    fn the_head_is_not_taken() {
        let mut input = blocks(b"one\ntwo\n");
        assert_eq!(input.head().unwrap(), b"one\ntwo\n");
        assert_eq!(input.rest().unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn bytes_are_read_from_where_blocks_ended() {
        let text: Vec<u8> = (0..90_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let mut input = blocks(&text);
        input.head().unwrap();
        let (mut seen, mut piece) = (vec![0; 10], [0; 999]);
        std::io::Read::read_exact(&mut input, &mut seen).unwrap();
        seen.extend_from_slice(input.next(last_line_end).unwrap().unwrap());
        while let read @ 1.. = std::io::Read::read(&mut input, &mut piece).unwrap() {
            seen.extend_from_slice(&piece[..read]);
        }
        assert!(seen == text);
    }

    #[test]
    fn what_was_read_before_a_failure_is_handed_out() {
        let text = b"one\ntwo\nthr";
        let failing = || std::io::Read::chain(&text[..], Failing);
        let mut input = Blocks::new("test".to_owned(), Box::new(failing())).unwrap();
        assert_eq!(input.head().unwrap(), text);
        assert_eq!(input.next(last_line_end).unwrap().unwrap(), b"one\ntwo\n", "half a record is none");
        assert!(input.next(last_line_end).is_err());
        assert!(input.next(last_line_end).unwrap().is_none());
        let mut input = Blocks::new("test".to_owned(), Box::new(failing())).unwrap();
        assert!(input.rest().is_err(), "a document is whole or none");
    }

    struct Failing;

    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::InvalidData.into())
        }
    }
}
