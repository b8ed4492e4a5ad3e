//! Where profiles come from: standard input, files, plain or compressed; in blocks cut where the format says.

mod compressed;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Error;

/// How much is read at once. Larger brought nothing (measured from 64 KiB to 4 MiB).
const BLOCK: usize = 256 * 1024;

/// The longest record that is taken, so that a small compressed file cannot fill the memory.
const LONGEST: usize = 64 << 20;

/// Something that can be opened and read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl Source {
    /// The sources that the operands name: `-` is standard input, and so are no operands at all.
    ///
    /// # Errors
    /// [`Error::Usage`] if `-` stands there twice.
    pub fn from_operands(operands: &[PathBuf]) -> Result<Vec<Self>, Error> {
        if operands.iter().filter(|path| is_dash(path)).count() > 1 {
            return Err(Error::Usage("standard input (-) can be read only once".to_owned()));
        }
        if operands.is_empty() {
            return Ok(vec![Self::Stdin]);
        }
        Ok(operands.iter().map(|path| if is_dash(path) { Self::Stdin } else { Self::File(path.clone()) }).collect())
    }

    /// The name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "stdin".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Opens it and, by its first bytes, decompresses gzip and zstd.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn open(&self) -> Result<Blocks, Error> {
        let name = self.name();
        let raw: Box<dyn Read + Send> = match self {
            Self::Stdin => Box::new(io::stdin()),
            Self::File(path) => Box::new(open_file(path).map_err(|error| Error::read(&name, error))?),
        };
        Blocks::new(name, raw)
    }
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn open_file(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
    }
    Ok(file)
}

/// An opened input, read in blocks of whole records.
pub struct Blocks {
    name: String,
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    taken: usize,
    filled: usize,
    ended: bool,
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
        let reader = compressed::decompress(&magic[..read], Box::new(start.chain(raw)));
        Ok(Self { name, reader, buffer: Vec::new(), taken: 0, filled: 0, ended: false })
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes, at most one block of them, without taking them: for telling the format.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn head(&mut self) -> Result<&[u8], Error> {
        while self.filled - self.taken < BLOCK && !self.ended {
            self.fill()?;
        }
        Ok(&self.buffer[self.taken..self.filled])
    }

    /// The next block of whole records. `cut` finds where the last whole record in some text ends, if there is one;
    /// what stands behind it comes first in the next block. The input's end is an end of a record.
    ///
    /// # Errors
    /// [`Error::Read`], also where a single record is longer than 64 MiB.
    pub fn next(&mut self, cut: impl Fn(&[u8]) -> Option<usize>) -> Result<Option<&[u8]>, Error> {
        let mut searched = self.taken;
        loop {
            let text = &self.buffer[self.taken..self.filled];
            if self.ended {
                let rest = self.taken..self.filled;
                self.taken = self.filled;
                return Ok((!rest.is_empty()).then(|| &self.buffer[rest]));
            }
            if self.filled > searched
                && let Some(end) = cut(text)
            {
                let block = self.taken..self.taken + end;
                self.taken = block.end;
                return Ok(Some(&self.buffer[block]));
            }
            if text.len() > LONGEST {
                let error = io::Error::new(io::ErrorKind::InvalidData, "a single record is longer than 64 MiB");
                return Err(Error::read(&self.name, error));
            }
            let moved = self.taken;
            self.fill()?;
            searched = self.filled.min(searched.saturating_sub(moved));
        }
    }

    /// Everything that is left.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn rest(&mut self) -> Result<&[u8], Error> {
        while !self.ended {
            self.fill()?;
        }
        let rest = self.taken..self.filled;
        self.taken = self.filled;
        Ok(&self.buffer[rest])
    }

    fn fill(&mut self) -> Result<(), Error> {
        if self.taken > 0 {
            self.buffer.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        if self.buffer.len() - self.filled < BLOCK {
            self.buffer.resize((self.filled + BLOCK).max(self.buffer.len() * 2).max(BLOCK), 0);
        }
        let read = read_some(&mut *self.reader, &mut self.buffer[self.filled..])
            .map_err(|error| Error::read(&self.name, error))?;
        self.filled += read;
        self.ended = read == 0;
        Ok(())
    }
}

/// Where the last whole line in a text ends: the usual cut for formats of one line a record.
pub fn after_last_line(text: &[u8]) -> Option<usize> {
    memchr::memrchr(b'\n', text).map(|end| end + 1)
}

fn read_some(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn read_full(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
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
    use super::{Blocks, after_last_line};

    fn blocks(text: &[u8]) -> Blocks {
        Blocks::new("test".to_owned(), Box::new(std::io::Cursor::new(text.to_vec()))).unwrap()
    }

    #[test]
    fn blocks_are_whole_lines_and_lose_nothing() {
        let text: Vec<u8> = (0..60_000).flat_map(|n| format!("line {n}\n").into_bytes()).chain(*b"tail").collect();
        let mut input = blocks(&text);
        let mut seen = Vec::new();
        while let Some(block) = input.next(after_last_line).unwrap() {
            assert!(block.ends_with(b"\n") || seen.len() + block.len() == text.len());
            seen.extend_from_slice(block);
        }
        assert_eq!(seen, text);
    }

    #[test]
    fn the_head_is_not_taken() {
        let mut input = blocks(b"one\ntwo\n");
        assert_eq!(input.head().unwrap(), b"one\ntwo\n");
        assert_eq!(input.rest().unwrap(), b"one\ntwo\n");
    }
}
