//! Where profiles come from: standard input, files, plain or compressed; in blocks cut where the format says.

mod blocks;
mod compressed;
mod file_range;
mod pipe;
mod read_ahead;
mod utf16;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub(crate) use blocks::BlockSource;
pub use blocks::{Block, Blocks, last_line_end};
pub(crate) use file_range::FileRange;
pub(crate) use read_ahead::ReadAhead;

use crate::Error;

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

    /// Whether a program that writes it may run at the same time.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::Stdin => !is_regular(Path::new("/dev/stdin")),
            Self::File(path) => !is_regular(path),
        }
    }

    /// Whether it is a compressed file, which is decompressed in a thread of its own.
    pub fn is_compressed(&self) -> bool {
        let mut start = Vec::with_capacity(4);
        let read = self.regular_file().map(|file| file.take(4).read_to_end(&mut start));
        read.is_some_and(|read| read.is_ok()) && compressed::is_compressed(&start)
    }

    /// The file itself, opened once more, where there is one in which one can jump about.
    pub fn regular_file(&self) -> Option<File> {
        let path = match self {
            // Elsewhere this is no file of its own: jumping about in it would move standard input too.
            Self::Stdin if cfg!(target_os = "linux") => Path::new("/dev/stdin"),
            Self::Stdin => return None,
            Self::File(path) => path,
        };
        if is_regular(path) { File::open(path).ok() } else { None }
    }

    /// Opens it and, by its first bytes, decompresses gzip and zstd, in a thread of its own.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn open(&self) -> Result<Blocks, Error> {
        self.open_without_thread().map(Blocks::read_ahead)
    }

    /// The same, but decompressed by whoever reads.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn open_without_thread(&self) -> Result<Blocks, Error> {
        let name = self.name();
        let raw: Box<dyn Read + Send> = match self {
            Self::Stdin => match pipe::enlarge_stdin() {
                Some(size) => Box::new(pipe::Pipe::new(io::stdin(), size)),
                None => Box::new(io::stdin()),
            },
            Self::File(path) => Box::new(open_file(path).map_err(|error| Error::read(&name, error))?),
        };
        Blocks::new(name, raw)
    }
}

fn is_regular(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
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
