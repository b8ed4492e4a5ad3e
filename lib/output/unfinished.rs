//! A file that gets its name when it is complete.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::folder;
use crate::interrupts;

/// A file that appears at its path, or replaces the file there, when it is finished.
///
/// Until then it has no name where the system can do that, so that nothing of it is left however the process ends.
/// Otherwise it is a temporary file in the same folder, which is removed if it is dropped or a signal is handled.
pub(super) struct UnfinishedFile {
    content: Content,
    path: PathBuf,
}

enum Content {
    Unnamed(File),
    Named(NamedTempFile),
}

impl UnfinishedFile {
    /// Creates a file for `path`, which is no symbolic link, with these permissions or those of a new file.
    pub fn create(path: PathBuf, permissions: Option<Permissions>) -> io::Result<Self> {
        let content = match create_unnamed(folder(&path)) {
            Ok(file) => Content::Unnamed(file),
            // If the folder is the reason, a file with a name cannot be created either.
            Err(_) => Content::Named(create_named(folder(&path))?),
        };
        let file = Self { content, path };
        if let Some(permissions) = permissions {
            file.file().set_permissions(permissions)?;
        }
        Ok(file)
    }

    /// Gives the file its path in one step: there is always either the old file or the whole new one.
    pub fn finish(self) -> io::Result<()> {
        // A signal that ends the process waits, and removes no file from here on.
        let mut unfinished = interrupts::lock_unfinished();
        let named = match self.content {
            Content::Named(file) => file,
            Content::Unnamed(file) => match link(&file, &self.path) {
                Ok(()) => return Ok(()),
                Err(_) => name_beside(file, &self.path)?,
            },
        };
        named.persist(self.path).map_err(|error| error.error)?;
        *unfinished = None;
        Ok(())
    }

    fn file(&self) -> &File {
        match &self.content {
            Content::Unnamed(file) => file,
            Content::Named(file) => file.as_file(),
        }
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates a temporary file, which is removed if a signal ends the process.
fn create_named(folder: &Path) -> io::Result<NamedTempFile> {
    let mut unfinished = interrupts::lock_unfinished();
    let file = temporary_files().tempfile_in(folder)?;
    *unfinished = Some(file.path().to_owned());
    Ok(file)
}

fn temporary_files() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".fg-unfinished-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

/// Gives a complete file a temporary name in the folder of `path`, because a link cannot replace the file at `path`.
///
/// Where files without a name cannot be linked (without `/proc`, or hard links), the file is copied.
fn name_beside(mut file: File, path: &Path) -> io::Result<NamedTempFile> {
    let linked = temporary_files().make_in(folder(path), |name| link(&file, name).and_then(|()| file.try_clone()));
    linked.or_else(|_| {
        let mut copy = temporary_files().tempfile_in(folder(path))?;
        copy.as_file().set_permissions(file.metadata()?.permissions())?;
        io::Seek::rewind(&mut file)?;
        io::copy(&mut file, &mut copy)?;
        Ok(copy)
    })
}

/// Creates a file without a name in the folder, which [`link`] can give one.
#[cfg(target_os = "linux")]
fn create_unnamed(folder: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().read(true).write(true).mode(0o666).custom_flags(libc::O_TMPFILE).open(folder)
}

#[cfg(not(target_os = "linux"))]
fn create_unnamed(_folder: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Gives a file without a name the name `path`, which must not exist.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd as _;
    // Linking by the descriptor alone needs a privilege before Linux 6.10.
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, name, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{Content, UnfinishedFile, create_named};

    #[test]
    fn a_file_with_a_temporary_name_appears_when_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for text in ["first", "second"] {
            let content = Content::Named(create_named(folder.path()).unwrap());
            let mut file = UnfinishedFile { content, path: path.clone() };
            file.write_all(text.as_bytes()).unwrap();
            file.finish().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        drop(create_named(folder.path()).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
