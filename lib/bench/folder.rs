//! The folder that keeps the profiles of a benchmark's runs.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Side;
use crate::Error;
use crate::diagnostics::Diagnostics;

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
    /// Creates the folder, unless it exists. Runs of an earlier benchmark move to the folder with `.old` at its name, where they
    /// take the place of others: as perf-record(1) keeps one earlier file.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be created, [`Error::Invalid`] if it is a file or another benchmark uses it.
    pub fn create(path: &Path, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let is_new = !path.exists();
        if !is_new && !path.is_dir() {
            return Err(Error::Invalid(format!("--runs {}: is a file; name a folder", path.display())));
        }
        std::fs::create_dir_all(path).map_err(|error| write_error(path, error))?;
        // The name is always the same, so that two benchmarks do not share a folder.
        let scratch = tempfile::Builder::new().prefix(UNFINISHED).rand_bytes(0).tempdir_in(path);
        let scratch = scratch.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Invalid(format!(
                "{}: in use by another fg-bench; if none runs, remove {UNFINISHED} in it",
                path.display()
            )),
            _ => write_error(path, error),
        })?;
        let runs = find_runs(path).map_err(|error| write_error(path, error))?;
        if !runs.is_empty() {
            let old = with_suffix(path, ".old");
            move_runs(&runs, &old).map_err(|error| write_error(&old, error))?;
            diagnostics.warn(&format!("the runs of the last benchmark are now in {}", old.display()));
        }
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

/// Returns the files of runs in a folder; none if it does not exist.
fn find_runs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    Ok(paths.into_iter().filter(|path| is_run(path)).collect())
}

/// True for the name of a run's profile, such as `before.0001.folded`.
fn is_run(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let [side, number, "folded"] = name.split('.').collect::<Vec<_>>()[..] else { return false };
    let has_side = [Side::Before, Side::After].iter().any(|known| side == known.name());
    has_side && number.len() >= 4 && number.parse::<u32>().is_ok()
}

/// Moves runs to another folder, in the place of those that it has.
fn move_runs(runs: &[PathBuf], folder: &Path) -> io::Result<()> {
    find_runs(folder)?.iter().try_for_each(std::fs::remove_file)?;
    std::fs::create_dir_all(folder)?;
    let names = runs.iter().filter_map(|path| Some((path, path.file_name()?)));
    names.into_iter().try_for_each(|(path, name)| std::fs::rename(path, folder.join(name)))
}

/// Returns a path with more at the end of its last name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.components().as_path().as_os_str().to_owned();
    name.push(suffix);
    name.into()
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
