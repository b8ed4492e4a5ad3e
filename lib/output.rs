//! Output to standard output, to a device, or to a file that appears only when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use self::unfinished::UnfinishedFile;
use crate::Error;
use crate::diagnostics::{Diagnostics, printable};
#[cfg(target_os = "linux")]
use crate::stdout_state;

mod unfinished;

/// A buffered output of a tool.
pub struct Output {
    path: Option<PathBuf>,
    name: String,
    /// `None` once the output is finished or discarded.
    writer: Option<BufWriter<Destination>>,
}

enum Destination {
    Stdout(File),
    Terminal(Terminal),
    Device(File),
    Unfinished(UnfinishedFile),
    /// Compresses what another destination gets.
    Compressed(GzEncoder<Box<Destination>>),
}

impl Output {
    /// Opens the output at `path`; `None` and `-` are standard output.
    ///
    /// A regular file appears, or is replaced, when [`finish`](Self::finish) is called. A device or a pipe is written
    /// directly. If the path ends with `.gz`, what is written is compressed.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn create(path: Option<&Path>) -> Result<Self, Error> {
        let path = path.filter(|path| path.as_os_str() != "-" && path.as_os_str() != "/dev/stdout");
        let name = path.map_or_else(|| "stdout".to_owned(), |path| path.display().to_string());
        let destination = match path {
            Some(path) if is_compressed(path) => {
                open(path).map(|file| Destination::Compressed(GzEncoder::new(Box::new(file), Compression::default())))
            }
            Some(path) => open(path),
            None if io::stdout().is_terminal() => Ok(Destination::Terminal(Terminal::default())),
            None => stdout().map(Destination::Stdout),
        };
        match destination {
            Ok(destination) => {
                let writer = Some(BufWriter::with_capacity(256 * 1024, destination));
                Ok(Self { path: path.map(Path::to_owned), name, writer })
            }
            Err(error) => Err(Error::write(name, error)),
        }
    }

    /// Creates or replaces a file with this content.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_file(path: &Path, content: &[u8]) -> Result<(), Error> {
        let mut output = Self::create(Some(path))?;
        output.write_with(|out| out.write_all(content))?;
        output.finish()
    }

    /// Checks that this output and `other` go to different files and that neither replaces an input.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn reject_overwriting(&self, other: Option<&Path>, inputs: &[&Path]) -> Result<(), Error> {
        let own = self.path.as_deref().unwrap_or(Path::new("-"));
        if let Some(other) = other.filter(|other| resolve(other).is_some() && resolve(other) == resolve(own)) {
            return Err(Error::Usage(format!(
                "{}: two outputs cannot go to the same file; name another one",
                other.display()
            )));
        }
        let replaced = [Some(own), other].into_iter().flatten().find(|output| {
            let file = resolve(output).filter(|file| file.as_os_str() != "-");
            file.is_some() && inputs.iter().any(|input| resolve(input) == file)
        });
        replaced.map_or(Ok(()), |path| {
            Err(Error::Usage(format!(
                "{}: is an input file, which the output would overwrite; name another file",
                path.display()
            )))
        })
    }

    /// Returns the name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if the output is standard output, a terminal or not.
    pub fn is_stdout(&self) -> bool {
        matches!(self.destination(), Some(Destination::Stdout(_) | Destination::Terminal(_)))
    }

    /// True if the output is standard output and a terminal.
    pub fn is_terminal(&self) -> bool {
        matches!(self.destination(), Some(Destination::Terminal(_)))
    }

    /// True if the output compresses what is written.
    pub fn is_compressed(&self) -> bool {
        self.path.as_deref().is_some_and(is_compressed)
    }

    fn destination(&self) -> Option<&Destination> {
        self.writer.as_ref().map(BufWriter::get_ref)
    }

    /// Calls `write` with the writer and adds the output's name to its error.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_with(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
        write(self).map_err(|error| Error::write(&self.name, error))
    }

    /// Writes text in which control characters of names are escaped already. A terminal gets it as it is, with colours.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_escaped(&mut self, text: &str) -> Result<(), Error> {
        if self.is_terminal() {
            let written = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
            return written.map_err(|error| Error::write(&self.name, error));
        }
        self.write_with(|out| out.write_all(text.as_bytes()))
    }

    /// Finishes the output and closes standard output if the result went there.
    ///
    /// The reader of a pipe then sees the end of its input before the process exits.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn close(&mut self) -> Result<(), Error> {
        let to_stdout = self.is_stdout();
        self.finish()?;
        if to_stdout { close_stdout().map_err(|error| Error::write(&self.name, error)) } else { Ok(()) }
    }

    /// Discards a result that goes to a file, because the input was not complete; an existing file stays as it is.
    pub(super) fn discard(&mut self, diagnostics: &mut Diagnostics) {
        if self.destination().is_some_and(Destination::is_unfinished) {
            self.writer = None;
            diagnostics.warn(&format!("{}: not written, since not all of the input could be read", self.name));
        }
    }

    /// Flushes the output and gives a file its path. Without this call an output file does not appear.
    ///
    /// # Errors
    /// [`Error::Write`]; a full disk is detected here at the latest.
    pub fn finish(&mut self) -> Result<(), Error> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let flushed = writer.into_inner().map_err(io::IntoInnerError::into_error);
        flushed.and_then(Destination::finish).map_err(|error| Error::write(&self.name, error))
    }
}

impl Destination {
    /// True for a file that appears when it is finished.
    fn is_unfinished(&self) -> bool {
        match self {
            Self::Unfinished(..) => true,
            Self::Compressed(encoder) => encoder.get_ref().is_unfinished(),
            Self::Stdout(_) | Self::Terminal(_) | Self::Device(_) => false,
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(_) | Self::Device(_) => Ok(()),
            Self::Compressed(encoder) => encoder.finish()?.finish(),
            Self::Terminal(mut terminal) => terminal.flush(),
            Self::Unfinished(file) => file.finish(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(io::Error::other("the output is closed already")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Replaces standard output by a pipe without a reader.
#[cfg(target_os = "linux")]
fn close_stdout() -> io::Result<()> {
    // Not /dev/null, which an empty chroot lacks.
    let (_, unread) = io::pipe()?;
    Ok(rustix::stdio::dup2_stdout(unread)?)
}

#[cfg(not(target_os = "linux"))]
fn close_stdout() -> io::Result<()> {
    Ok(())
}

/// Returns standard output without the line buffer of the standard library, which would split every block in two.
fn stdout() -> io::Result<File> {
    // Linux alone tells.
    #[cfg(target_os = "linux")]
    if stdout_state::was_closed() {
        return Err(rustix::io::Errno::BADF.into());
    }
    #[cfg(unix)]
    let stdout = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
    #[cfg(windows)]
    let stdout = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
    Ok(File::from(stdout))
}

fn open(path: &Path) -> io::Result<Destination> {
    let permissions = match OpenOptions::new().write(true).open(path) {
        Ok(file) => {
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Ok(Destination::Device(file));
            }
            Some(metadata.permissions())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    UnfinishedFile::create(follow_links(path), permissions).map(Destination::Unfinished)
}

/// Returns the canonical path of a file that may not exist yet, or `-` for standard output.
///
/// `None` for a device or a pipe: several results can be written to one.
fn resolve(path: &Path) -> Option<PathBuf> {
    if path.as_os_str() == "-" || path.as_os_str() == "/dev/stdout" {
        return Some(PathBuf::from("-"));
    }
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return None;
    }
    let path = follow_links(path);
    Some(folder(&path).canonicalize().ok()?.join(path.file_name()?))
}

/// Follows symbolic links to a file that may not exist, so that the file is replaced and not a link to it.
fn follow_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // Linux follows at most 40 links; opening a longer chain has failed already.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else { break };
        path = folder(&path).join(target);
    }
    path
}

/// True if the name of a file says that it is compressed with gzip.
fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(file) | Self::Device(file) => file.write(bytes),
            Self::Terminal(terminal) => terminal.write(bytes),
            Self::Unfinished(file) => file.write(bytes),
            Self::Compressed(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Terminal(terminal) => terminal.flush(),
            Self::Compressed(encoder) => encoder.flush(),
            Self::Stdout(_) | Self::Device(_) | Self::Unfinished(..) => Ok(()),
        }
    }
}

/// Standard output that is a terminal: control characters in profiles, which may be untrusted, are escaped.
#[derive(Default)]
struct Terminal {
    /// Text that is not printed yet, up to the end of a line.
    pending: Vec<u8>,
}

impl Terminal {
    fn print(&mut self, length: usize) -> io::Result<()> {
        let rest = self.pending.split_off(length);
        let text = std::mem::replace(&mut self.pending, rest);
        let mut stdout = io::stdout();
        for line in String::from_utf8_lossy(&text).split_inclusive('\n') {
            let (shown, end) = line.strip_suffix('\n').map_or((line, ""), |shown| (shown, "\n"));
            stdout.write_all(printable(shown).as_bytes())?;
            stdout.write_all(end.as_bytes())?;
        }
        stdout.flush()
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if let Some(end) = memchr::memrchr(b'\n', &self.pending) {
            self.print(end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.print(self.pending.len())
    }
}
