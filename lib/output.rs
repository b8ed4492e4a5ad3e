//! Where a result goes: standard output, or a file that appears only when it is complete.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::diagnostics::{Diagnostics, printable};
use crate::{Error, interrupts};

/// A buffered output with a name.
pub struct Output {
    path: Option<PathBuf>,
    name: String,
    target: Option<BufWriter<Target>>,
}

enum Target {
    Stdout(File),
    Terminal(Terminal),
    Device(File),
    /// The unfinished file, and where it will stand.
    Unfinished(NamedTempFile, PathBuf),
}

impl Output {
    /// Standard output for `None` and `-`. A regular file is written beside its place and renamed at the end; a device
    /// or a pipe is written as it is.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn create(path: Option<&Path>) -> Result<Self, Error> {
        let path = path.filter(|path| path.as_os_str() != "-" && path.as_os_str() != "/dev/stdout");
        let name = path.map_or_else(|| "stdout".to_owned(), |path| path.display().to_string());
        let target = match path {
            Some(path) => open(path),
            None if io::stdout().is_terminal() => Ok(Target::Terminal(Terminal::default())),
            None => stdout().map(Target::Stdout),
        };
        match target {
            Ok(target) => {
                let target = Some(BufWriter::with_capacity(256 * 1024, target));
                Ok(Self { path: path.map(Path::to_owned), name, target })
            }
            Err(error) => Err(Error::write(name, error)),
        }
    }

    /// Writes a whole file at once.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_file(path: &Path, content: &[u8]) -> Result<(), Error> {
        let mut output = Self::create(Some(path))?;
        output.write_with(|out| out.write_all(content))?;
        output.finish()
    }

    /// Refuses another output at the same place, or one in the place of an input, which it would replace.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn refuse_overwriting(&self, other: Option<&Path>, inputs: &[&Path]) -> Result<(), Error> {
        let own = self.path.as_deref().unwrap_or(Path::new("-"));
        let refused = |path: &Path, why| Err(Error::Usage(format!("{}: {why}", path.display())));
        if let Some(other) = other.filter(|other| place(other).is_some() && place(other) == place(own)) {
            return refused(other, "two results would be written there");
        }
        let replaced = [Some(own), other].into_iter().flatten().find(|output| {
            let place = place(output).filter(|place| place.as_os_str() != "-");
            place.is_some() && inputs.iter().any(|input| self::place(input) == place)
        });
        replaced.map_or(Ok(()), |path| refused(path, "is read, and would be overwritten by the result"))
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.target.as_ref().map(BufWriter::get_ref), Some(Target::Stdout(_) | Target::Terminal(_)))
    }

    /// Whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        matches!(self.target.as_ref().map(BufWriter::get_ref), Some(Target::Terminal(_)))
    }

    /// Hands the writer to `write` and gives its failure the output's name.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_with(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
        write(self).map_err(|error| Error::write(&self.name, error))
    }

    /// Finishes, and closes standard output if that is where the result went: who reads it need not wait for our end.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn close(&mut self) -> Result<(), Error> {
        let to_stdout = self.is_stdout();
        self.finish()?;
        if to_stdout { close_stdout().map_err(|error| Error::write(&self.name, error)) } else { Ok(()) }
    }

    /// Where the result would go to a file: leaves what stands there as it is, since the input was not complete.
    pub(super) fn give_up(&mut self, diagnostics: &mut Diagnostics) {
        if matches!(self.target.as_ref().map(BufWriter::get_ref), Some(Target::Unfinished(..))) {
            self.target = None;
            diagnostics.warn(&format!("{}: not written, since not all of the input could be read", self.name));
        }
    }

    /// Flushes, and puts a file in its place. Without this call an output file does not appear.
    ///
    /// # Errors
    /// [`Error::Write`]: a full disk shows here at the latest.
    pub fn finish(&mut self) -> Result<(), Error> {
        let Some(target) = self.target.take() else { return Ok(()) };
        let place = |target: BufWriter<Target>| -> io::Result<()> {
            let target = target.into_inner().map_err(io::IntoInnerError::into_error)?;
            match target {
                Target::Stdout(_) | Target::Device(_) => Ok(()),
                Target::Terminal(mut terminal) => terminal.flush(),
                Target::Unfinished(file, path) => {
                    let mut unfinished = interrupts::unfinished();
                    file.persist(path).map_err(|error| error.error)?;
                    *unfinished = None;
                    Ok(())
                }
            }
        };
        place(target).map_err(|error| Error::write(&self.name, error))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Some(target) => target.write(bytes),
            None => Err(io::Error::other("written after its end")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Standard output goes nowhere from here on.
#[cfg(target_os = "linux")]
fn close_stdout() -> io::Result<()> {
    // A pipe that nobody reads: an empty chroot has no /dev/null.
    let (_, nowhere) = io::pipe()?;
    Ok(rustix::stdio::dup2_stdout(nowhere)?)
}

#[cfg(not(target_os = "linux"))]
fn close_stdout() -> io::Result<()> {
    Ok(())
}

/// Standard output without the line buffer of the standard library, which would split every block in two.
fn stdout() -> io::Result<File> {
    #[cfg(unix)]
    let own = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
    #[cfg(windows)]
    let own = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
    Ok(File::from(own))
}

fn open(path: &Path) -> io::Result<Target> {
    match OpenOptions::new().write(true).open(path) {
        Ok(file) => {
            let metadata = file.metadata()?;
            if metadata.is_file() { beside(path, Some(metadata.permissions())) } else { Ok(Target::Device(file)) }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => beside(path, None),
        Err(error) => Err(error),
    }
}

/// An unfinished file in the folder where it will stand.
fn beside(path: &Path, permissions: Option<Permissions>) -> io::Result<Target> {
    let path = follow_links(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".fg-unfinished-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut unfinished = interrupts::unfinished();
    let file = builder.tempfile_in(folder(&path))?;
    *unfinished = Some(file.path().to_owned());
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    Ok(Target::Unfinished(file, path))
}

/// Where a result stands at the end, whatever the path that leads there: `-` for standard output. A device holds any number
/// of them, and has none.
fn place(path: &Path) -> Option<PathBuf> {
    if path.as_os_str() == "-" || path.as_os_str() == "/dev/stdout" {
        return Some(PathBuf::from("-"));
    }
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return None;
    }
    let path = follow_links(path);
    Some(folder(&path).canonicalize().ok()?.join(path.file_name()?))
}

/// The file behind links, whether it exists or not, so that the links stay.
fn follow_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many as Linux follows; beyond them opening has failed already.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else { break };
        path = folder(&path).join(target);
    }
    path
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(file) | Self::Device(file) => file.write(bytes),
            Self::Terminal(terminal) => terminal.write(bytes),
            Self::Unfinished(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Terminal(terminal) => terminal.flush(),
            Self::Stdout(_) | Self::Device(_) | Self::Unfinished(..) => Ok(()),
        }
    }
}

/// Standard output where it is a terminal: names in profiles are written by strangers and must not steer it.
#[derive(Default)]
struct Terminal {
    line: Vec<u8>,
}

impl Terminal {
    fn show(&mut self, upto: usize) -> io::Result<()> {
        let rest = self.line.split_off(upto);
        let text = std::mem::replace(&mut self.line, rest);
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
        self.line.extend_from_slice(bytes);
        if let Some(end) = memchr::memrchr(b'\n', &self.line) {
            self.show(end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.show(self.line.len())
    }
}
