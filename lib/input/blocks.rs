//! An input in blocks of whole records.

mod start;

use std::io::{self, Read};
use std::ops::Deref;

use super::read::{READ_SIZE, read_full, read_some};
use super::read_ahead::{PIECE_SIZE, ReadAhead, ReadAheadReader};
use super::{compressed, utf16};
use crate::Error;

/// Length of the longest record that is accepted, so that a small compressed file cannot fill the memory.
const MAX_RECORD: usize = 64 << 20;

/// A buffer that [`Blocks::read_block`] fills. Each reader has its own, so that several can share one input.
#[derive(Default)]
pub struct Block {
    bytes: Vec<u8>,
    /// Number of valid bytes in `bytes`.
    filled: usize,
    /// True if the input ends with it.
    is_last: bool,
}

impl Block {
    fn set(&mut self, bytes: &[u8]) {
        self.filled = 0;
        self.spare(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.filled = bytes.len();
    }

    /// Returns true if the input ends with the block, unless it could not be read completely.
    pub(crate) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns its buffer, which is empty, and leaves the block without one.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.filled = 0;
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes
    }

    /// Returns the unused bytes after the valid ones, at least `size`. They are zeroed only when the buffer grows.
    fn spare(&mut self, size: usize) -> &mut [u8] {
        if self.bytes.len() < self.filled + size {
            self.bytes.resize(self.filled + size, 0);
        }
        &mut self.bytes[self.filled..]
    }

    /// Reads once, at most `size` bytes; `false` at the end.
    fn read_from(&mut self, reader: &mut dyn Read, size: usize) -> io::Result<bool> {
        let read = read_some(reader, &mut self.spare(size)[..size])?;
        self.filled += read;
        Ok(read > 0)
    }
}

impl From<Vec<u8>> for Block {
    fn from(bytes: Vec<u8>) -> Self {
        Self { filled: bytes.len(), bytes, is_last: false }
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

/// Fills a block with the next records; `false` at the end.
pub(crate) type BlockSource = Box<dyn FnMut(&mut Block) -> Result<bool, Error> + Send>;

/// An opened input, read in blocks of whole records.
///
/// The methods that return blocks take a function `find_boundary`: it returns where the last whole record in a text
/// ends, if there is one. The rest of the text starts the next block. The end of the input ends a record too, unless
/// the input could not be read completely.
pub struct Blocks {
    name: String,
    reader: Box<dyn Read + Send>,
    /// True if the reader drops escape sequences.
    is_uncoloured: bool,
    /// Number of bytes read at once.
    read_size: usize,
    /// True if the reader decompresses, and read-ahead has not been started.
    is_compressed: bool,
    /// Bytes that were read and not returned in a block.
    buffered: Block,
    /// Number of buffered bytes that [`Read`] has consumed.
    consumed: usize,
    /// Number of lines that were skipped before the first byte.
    skipped_lines: u64,
    block: Block,
    at_end: bool,
    /// The error that ended the input; it is returned after all bytes before it.
    failure: Option<io::Error>,
}

impl Blocks {
    /// Reads `raw`, decompressed and decoded to UTF-8 as its first bytes require; `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn new(name: String, mut raw: Box<dyn Read + Send>) -> Result<Self, Error> {
        let mut magic = [0; compressed::MAGIC_LENGTH];
        let read = read_full(&mut *raw, &mut magic).map_err(|error| Error::read(&name, error))?;
        let start = io::Cursor::new(magic[..read].to_vec());
        let is_compressed = compressed::is_compressed(&magic[..read]);
        let reader = compressed::decompress(&magic[..read], Box::new(start.chain(raw)));
        let reader = utf16::decode(reader).map_err(|error| Error::read(&name, error))?;
        Ok(Self { is_compressed, ..Self::without_decoding(name, reader, READ_SIZE) })
    }

    /// Reads bytes as they are, `read_size` at once.
    pub(super) fn without_decoding(name: String, reader: Box<dyn Read + Send>, read_size: usize) -> Self {
        Self {
            name,
            reader,
            is_uncoloured: false,
            read_size,
            is_compressed: false,
            buffered: Block::default(),
            consumed: 0,
            skipped_lines: 0,
            block: Block::default(),
            at_end: false,
            failure: None,
        }
    }

    /// Moves decompression, if there is any, to another thread.
    #[must_use]
    pub fn read_ahead(mut self) -> Self {
        if std::mem::take(&mut self.is_compressed) {
            self.reader = Box::new(ReadAheadReader::new(self.reader));
        }
        self
    }

    /// Returns the name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the first bytes without consuming them, to detect the format: 128 KiB if there are as many, and at least
    /// the first line.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn head(&mut self) -> Result<&[u8], Error> {
        let mut wanted = READ_SIZE;
        while !self.at_end && self.buffered.len() <= MAX_RECORD {
            if self.buffered.len() >= wanted {
                // A longer first line is needed completely before it tells the format.
                if memchr::memchr(b'\n', &self.buffered[wanted - READ_SIZE..]).is_some() {
                    break;
                }
                wanted += READ_SIZE;
            }
            let rest = wanted - self.buffered.len();
            let mut buffered = std::mem::take(&mut self.buffered);
            self.read_into(&mut buffered, rest);
            self.buffered = buffered;
        }
        if self.buffered.len() == self.consumed {
            self.check_failure()?;
        }
        Ok(&self.buffered[self.consumed..])
    }

    /// Returns the number of lines that were skipped.
    pub(crate) fn skipped_lines(&self) -> u64 {
        self.skipped_lines
    }

    /// True if all bytes of the input were returned.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at_end && self.buffered.len() == self.consumed
    }

    /// True if all bytes of the input are in memory.
    pub(crate) fn is_read(&self) -> bool {
        self.at_end
    }

    /// True if the thread that reads decompresses.
    pub(crate) fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Reads once, at most `size` bytes. An error ends the input; it is kept until all bytes before it are returned.
    fn read_into(&mut self, block: &mut Block, size: usize) {
        match block.read_from(&mut *self.reader, size) {
            Ok(more) => self.at_end = !more,
            Err(error) => (self.at_end, self.failure) = (true, Some(error)),
        }
    }

    /// Returns the error that ended the input, if there was one and it was not returned yet.
    pub(crate) fn check_failure(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), |error| Err(Error::read(&self.name, error)))
    }

    /// Returns the next block of whole records; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Read`], also if a single record is longer than 64 MiB.
    pub fn next_block(&mut self, find_boundary: impl Fn(&[u8]) -> Option<usize>) -> Result<Option<&[u8]>, Error> {
        let mut block = std::mem::take(&mut self.block);
        let found = self.read_block(&mut block, find_boundary);
        self.block = block;
        Ok(found?.then_some(&*self.block))
    }

    /// Like [`next_block`](Self::next_block), but reads into a buffer of the caller; `false` at the end.
    ///
    /// # Errors
    /// [`Error::Read`], also if a single record is longer than 64 MiB.
    pub fn read_block(
        &mut self,
        block: &mut Block,
        find_boundary: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<bool, Error> {
        block.set(&self.buffered[self.consumed..]);
        (self.buffered.filled, self.consumed) = (0, 0);
        // Each search covers at least twice as much as the last one, so that a long record takes linear time.
        let mut searched = 0;
        loop {
            while !self.at_end && (block.len() <= searched || block.len() < searched * 2) {
                self.read_into(block, self.read_size);
            }
            block.is_last = self.at_end && self.failure.is_none();
            if block.is_last {
                return Ok(!block.is_empty());
            }
            if let Some(end) = find_boundary(block).filter(|end| *end > 0) {
                self.buffered.set(&block[end..]);
                block.filled = end;
                return Ok(true);
            }
            self.check_failure()?;
            searched = block.len();
            if searched > MAX_RECORD {
                let error = io::Error::new(io::ErrorKind::InvalidData, "a single record is longer than 64 MiB");
                return Err(Error::read(&self.name, error));
            }
        }
    }

    /// Returns a function that reads block after block, on another thread if the input is compressed.
    pub(crate) fn into_block_source(mut self, find_boundary: fn(&[u8]) -> Option<usize>) -> BlockSource {
        if !self.is_compressed {
            return Box::new(move |block| self.read_block(block, find_boundary));
        }
        self.read_size = PIECE_SIZE;
        let mut blocks = ReadAhead::new(move |block: &mut Block| self.read_block(block, find_boundary));
        Box::new(move |block| blocks.next(block))
    }

    /// Reads everything up to the end of the input.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn read_rest(&mut self) -> Result<&[u8], Error> {
        self.block.set(&self.buffered[self.consumed..]);
        (self.buffered.filled, self.consumed) = (0, 0);
        let mut block = std::mem::take(&mut self.block);
        while !self.at_end {
            self.read_into(&mut block, READ_SIZE);
        }
        self.block = block;
        self.check_failure()?;
        Ok(&self.block)
    }
}

/// Reads the bytes that were not returned in a block.
impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.consumed == self.buffered.len() {
            (self.buffered.filled, self.consumed) = (0, 0);
            return match self.failure.take() {
                Some(error) => Err(error),
                None if self.at_end => Ok(0),
                None => self.reader.read(buffer),
            };
        }
        let read = (&self.buffered[self.consumed..]).read(buffer)?;
        self.consumed += read;
        Ok(read)
    }
}

/// Returns where the last whole line in a text ends: the boundary for formats of one record per line.
pub fn last_line_end(text: &[u8]) -> Option<usize> {
    memchr::memrchr(b'\n', text).map(|end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::{Blocks, last_line_end};

    fn blocks(text: &[u8]) -> Blocks {
        Blocks::new("test".to_owned(), Box::new(std::io::Cursor::new(text.to_vec()))).unwrap()
    }

    #[test]
    fn returns_all_bytes_in_blocks_of_whole_lines() {
        let text: Vec<u8> = (0..60_000).flat_map(|n| format!("line {n}\n").into_bytes()).chain(*b"tail").collect();
        let mut input = blocks(&text);
        let mut seen = Vec::new();
        while let Some(block) = input.next_block(last_line_end).unwrap() {
            assert!(block.ends_with(b"\n") || seen.len() + block.len() == text.len());
            seen.extend_from_slice(block);
        }
        assert_eq!(seen, text);
    }

    #[test]
    fn returns_a_long_record_in_one_block() {
        let text = [&[b'x'; 1_000_000][..], b"\nshort\n"].concat();
        let mut input = blocks(&text);
        assert!(input.head().unwrap().contains(&b'\n'), "the head contains the first line");
        let mut seen = Vec::new();
        while let Some(block) = input.next_block(last_line_end).unwrap() {
            assert!(block.ends_with(b"\n"));
            seen.extend_from_slice(block);
        }
        assert!(seen == text);
    }

    #[test]
    fn head_consumes_nothing() {
        let mut input = blocks(b"one\ntwo\n");
        assert_eq!(input.head().unwrap(), b"one\ntwo\n");
        assert_eq!(input.read_rest().unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn skips_blank_lines_at_the_beginning() {
        let mut input = blocks(b"\n  \r\n\t one\n\ntwo\n");
        assert!(input.skip_blank_lines().unwrap() && !input.skip_blank_lines().unwrap());
        assert_eq!((input.skipped_lines(), input.head().unwrap()), (2, &b"\t one\n\ntwo\n"[..]));
        assert_eq!(input.read_rest().unwrap(), b"\t one\n\ntwo\n");
        assert!(!blocks(b"one\n").skip_blank_lines().unwrap());
    }

    #[test]
    fn drops_a_byte_order_mark() {
        assert_eq!(blocks(b"\xef\xbb\xbfone\n").read_rest().unwrap(), b"one\n");
    }

    #[test]
    fn reads_bytes_after_the_last_block() {
        let text: Vec<u8> = (0..90_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let mut input = blocks(&text);
        input.head().unwrap();
        let (mut seen, mut piece) = (vec![0; 10], [0; 999]);
        std::io::Read::read_exact(&mut input, &mut seen).unwrap();
        seen.extend_from_slice(input.next_block(last_line_end).unwrap().unwrap());
        while let read @ 1.. = std::io::Read::read(&mut input, &mut piece).unwrap() {
            seen.extend_from_slice(&piece[..read]);
        }
        assert!(seen == text);
    }

    #[test]
    fn returns_what_was_read_before_a_failure() {
        let text = b"one\ntwo\nthr";
        let failing = std::io::Read::chain(&text[..], Failing);
        let mut input = Blocks::new("test".to_owned(), Box::new(failing)).unwrap();
        assert_eq!(input.head().unwrap(), text);
        assert_eq!(input.next_block(last_line_end).unwrap().unwrap(), b"one\ntwo\n", "an incomplete record is dropped");
        assert!(input.next_block(last_line_end).is_err());
        assert!(input.next_block(last_line_end).unwrap().is_none());
        let failing = std::io::Read::chain(&text[..], Failing);
        let mut input = Blocks::new("test".to_owned(), Box::new(failing)).unwrap();
        assert!(input.read_rest().is_err(), "an incomplete document is an error");
    }

    struct Failing;

    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::InvalidData.into())
        }
    }
}
