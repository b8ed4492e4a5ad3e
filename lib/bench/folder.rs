//! The folder that keeps the profiles of a benchmark's runs.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Side;
use crate::Error;

/// Name of the folder for incomplete results.
const UNFINISHED: &str = ".fg-unfinished";

/// A folder with a file for each run, and, during the benchmark, a folder for results that are not complete.
#[derive(Debug)]
pub(super) struct RunFolder {
    path: PathBuf,
    /// True if the folder was made for this benchmark.
    is_new: bool,
    scratch: TempDir,
}

/// Returns the file of a run.
pub(super) fn profile_path(folder: &Path, side: Side, number: u32) -> PathBuf {
    folder.join(format!("{}.{number:04}.folded", side.name()))
}

impl RunFolder {
    /// Creates the folder, unless it exists.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be created, [`Error::Invalid`] if it has runs already, or another benchmark uses it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let is_new = !path.exists();
        std::fs::create_dir_all(path).map_err(|error| write_error(path, error))?;
        if [Side::Before, Side::After].iter().any(|side| profile_path(path, *side, 1).exists()) {
            let path = path.display();
            return Err(Error::Invalid(format!("{path}: has runs already; remove it, or name another with --runs")));
        }
        // The name is always the same, so that two benchmarks do not share a folder.
        let scratch = tempfile::Builder::new().prefix(UNFINISHED).rand_bytes(0).tempdir_in(path);
        let scratch = scratch.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Invalid(format!(
                "{}: in use by another fg-bench; if none runs, remove {UNFINISHED} in it",
                path.display()
            )),
            _ => write_error(path, error),
        })?;
        Ok(Self { path: path.to_owned(), is_new, scratch })
    }

    /// Returns the file of a run.
    pub fn profile_path(&self, side: Side, number: u32) -> PathBuf {
        profile_path(&self.path, side, number)
    }

    /// Returns the folder for results that are not complete.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Removes what an earlier run left in the folder for incomplete results.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn empty_scratch(&self) -> Result<(), Error> {
        remove_files(self.scratch()).map_err(|error| write_error(self.scratch(), error))
    }

    /// Removes the profiles of a pair. Those that are not there are of no concern.
    pub fn remove_pair(&self, number: u32) {
        for side in [Side::Before, Side::After] {
            let _ = std::fs::remove_file(self.profile_path(side, number));
        }
    }

    /// Removes all that the benchmark has written, so that the next one finds the folder as this one did.
    pub fn remove_pairs(self, pairs: u32) {
        (1..=pairs).for_each(|number| self.remove_pair(number));
        drop(self.scratch);
        if self.is_new {
            // A folder with files of others stays.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

fn write_error(path: &Path, error: io::Error) -> Error {
    Error::write(path.display().to_string(), error)
}

/// Removes the files of a folder.
fn remove_files(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        std::fs::remove_file(entry?.path())?;
    }
    Ok(())
}
