//! Sources of input: standard input and files.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::blocks::Blocks;
use super::{compressed, pipe};
use crate::Error;

/// An input that can be opened and read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The standard input of the process.
    Stdin,
    /// A file, by its path.
    File(PathBuf),
}

impl Source {
    /// Returns the sources that the operands of a command name: `-` is standard input, and so is an empty list.
    ///
    /// # Errors
    /// [`Error::Usage`] if `-` is given twice.
    pub fn from_operands(operands: &[PathBuf]) -> Result<Vec<Self>, Error> {
        if operands.iter().filter(|path| is_dash(path)).count() > 1 {
            return Err(Error::Usage("standard input (-) can be read only once".to_owned()));
        }
        if operands.is_empty() {
            return Ok(vec![Self::Stdin]);
        }
        Ok(operands.iter().map(|path| if is_dash(path) { Self::Stdin } else { Self::File(path.clone()) }).collect())
    }

    /// Returns the files that a list names, each name followed by a null byte. If the list is `-`, it is standard
    /// input. Messages begin with the name of the list.
    ///
    /// # Errors
    /// [`Error::Read`], and [`Error::Invalid`] if a name is empty or the list has none.
    pub fn from_list(list: &Path) -> Result<Vec<Self>, Error> {
        let is_stdin = is_dash(list);
        let name = if is_stdin { "stdin".to_owned() } else { list.display().to_string() };
        let mut text = Vec::new();
        let read = if is_stdin {
            io::stdin().read_to_end(&mut text)
        } else {
            File::open(list).and_then(|mut file| file.read_to_end(&mut text))
        };
        read.map_err(|error| Error::read(&name, error))?;
        if text.is_empty() {
            return Err(Error::Invalid(format!("{name}: the list names no file")));
        }
        if text.ends_with(b"\n") && !text.contains(&0) {
            let what = "each name must end with a null byte, as `find -print0` writes them, not with a line end";
            return Err(Error::Invalid(format!("{name}: {what}")));
        }
        let names = text.strip_suffix(b"\0").unwrap_or(&text).split(|byte| *byte == 0);
        let sources = names.zip(1..).map(|(path, number)| match path {
            b"" => Err(Error::Invalid(format!("{name}: name {number} is empty"))),
            b"-" if is_stdin => {
                Err(Error::Invalid(format!("{name}: name {number} is -, but the list is read from standard input")))
            }
            b"-" => Ok(Self::Stdin),
            path => Ok(Self::File(path_of(path))),
        });
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        match sources.iter().filter(|source| **source == Self::Stdin).count() {
            0 | 1 => Ok(sources),
            _ => Err(Error::Usage("standard input (-) can be read only once".to_owned())),
        }
    }

    /// Returns the name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "stdin".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// True for anything but a regular file: a pipe, a terminal, a device. Its writer may run at the same time.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::Stdin => !is_regular(Path::new("/dev/stdin")),
            Self::File(path) => !is_regular(&find_file(path)),
        }
    }

    /// True for a compressed file, which another thread decompresses.
    pub fn is_compressed(&self) -> bool {
        let mut start = Vec::with_capacity(compressed::MAGIC_LENGTH);
        let read = self.regular_file().map(|file| file.take(compressed::MAGIC_LENGTH as u64).read_to_end(&mut start));
        read.is_some_and(|read| read.is_ok()) && compressed::is_compressed(&start)
    }

    /// Opens the regular file behind the source once more, with its own file offset; `None` if there is none.
    pub fn regular_file(&self) -> Option<File> {
        let path = match self {
            // On other systems this shares its offset with standard input.
            Self::Stdin if cfg!(target_os = "linux") => Path::new("/dev/stdin"),
            Self::Stdin => return None,
            Self::File(path) => &find_file(path),
        };
        if is_regular(path) { File::open(path).ok() } else { None }
    }

    /// Returns what identifies the regular file behind the source, by whatever name it is given: device and inode. `None` if
    /// there is no regular file.
    #[cfg(unix)]
    pub fn file_id(&self) -> Option<impl Ord + use<>> {
        let metadata = self.regular_file()?.metadata().ok()?;
        Some((std::os::unix::fs::MetadataExt::dev(&metadata), std::os::unix::fs::MetadataExt::ino(&metadata)))
    }

    /// Returns what identifies the regular file behind the source: its resolved path. `None` if there is no regular file.
    #[cfg(not(unix))]
    pub fn file_id(&self) -> Option<impl Ord + use<>> {
        match self {
            Self::File(path) if is_regular(path) => path.canonicalize().ok(),
            Self::Stdin | Self::File(_) => None,
        }
    }

    /// Returns the directory of `perf record` that the source is, if it is one. What it reads is the file `data` in it.
    pub fn perf_directory(&self) -> Option<&Path> {
        match self {
            Self::File(path) if is_perf_directory(path) => Some(path),
            Self::Stdin | Self::File(_) => None,
        }
    }

    /// Opens the source. Another thread decompresses it, if its first bytes are those of a compressed file.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn open(&self) -> Result<Blocks, Error> {
        self.open_without_thread().map(Blocks::read_ahead)
    }

    /// Like [`open`](Self::open), but the reading thread decompresses.
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
    let file = File::open(find_file(path))?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, explain_directory(path)));
    }
    Ok(file)
}

/// Returns the message for a directory: it names the files of `perf record --switch-output`, if there are any.
fn explain_directory(path: &Path) -> String {
    let has_switched = std::fs::read_dir(path).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"perf.data."))
    });
    let files = if has_switched { "perf.data.*" } else { "*" };
    format!("is a directory; name the files in it: {}", path.join(files).display())
}

/// Returns true for a directory that `perf record --threads` or `--kcore` writes.
fn is_perf_directory(path: &Path) -> bool {
    let mut start = [0; 4];
    path.is_dir()
        && File::open(path.join("data")).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == *b"PERF"
}

/// Returns the file to read for a path: of a directory of `perf record`, the file that describes it.
fn find_file(path: &Path) -> Cow<'_, Path> {
    if is_perf_directory(path) { Cow::Owned(path.join("data")) } else { Cow::Borrowed(path) }
}

/// Returns the path of these bytes.
fn path_of(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    return PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    return PathBuf::from(String::from_utf8_lossy(bytes).into_owned());
}
