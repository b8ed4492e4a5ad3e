//! Finds debug information outside the object that it describes.
//!
//! It may be in a debug file, found by build ID or by `.gnu_debuglink`; in a supplementary file that several debug
//! files share (made by `dwz`); or in split files that a compiler leaves beside its object files (`.dwo`, `.dwp`).
//!
//! A file counts only if its build ID, checksum or unit ID matches.

use std::cell::RefCell;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bstr::ByteSlice as _;
use object::Object as _;

use super::byte_arena::ByteArena;
use crate::bytes::format_hex;
use crate::perf::objects::mapped_file::{bytes_to_path, map_file, open_without_blocking};
use crate::perf::objects::object::Bytes;

/// The folder in which distributions install debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// A search for the debug files of one object. It owns the bytes that it finds.
#[derive(Debug)]
pub struct DebugFileSearch<'a> {
    /// The object's path as the process saw it.
    path: &'a Path,
    /// The root folder of the process, unless it is ours.
    root: Option<&'a Path>,
    /// True if `debuginfod-find` may download missing files.
    debuginfod: bool,
    warnings: RefCell<Vec<String>>,
    arena: ByteArena,
}

/// A file with debug information.
#[derive(Debug)]
pub struct DebugFile {
    /// The path as the process would see it.
    pub path: PathBuf,
    /// The file's content.
    pub bytes: Bytes,
}

impl<'a> DebugFileSearch<'a> {
    /// Creates a search for the object at `path` below the root folder of its process.
    pub fn new(path: &'a Path, root: Option<&'a Path>, debuginfod: bool) -> Self {
        Self { path, root, debuginfod, warnings: RefCell::default(), arena: ByteArena::default() }
    }

    /// Returns the messages that explain missing debug information.
    pub fn into_warnings(self) -> Vec<String> {
        self.warnings.into_inner()
    }

    /// Takes ownership of `bytes` and lends them for as long as the search lives.
    pub fn store(&self, bytes: impl Deref<Target = [u8]> + 'static) -> &[u8] {
        self.arena.add(bytes)
    }

    /// Adds a warning.
    pub fn warn(&self, warning: String) {
        self.warnings.borrow_mut().push(warning);
    }

    /// Finds the debug file of an object: by build ID, by its debug link, or with debuginfod.
    pub fn find_debug_file(&self, file: &object::File<'_>) -> Option<DebugFile> {
        let build_id = file.build_id().ok().flatten();
        let installed = build_id.and_then(|id| self.find_by_build_id(id)).or_else(|| self.find_by_debug_link(file));
        installed.or_else(|| if self.debuginfod { self.download(build_id?) } else { None })
    }

    /// Finds the supplementary file of a debug file at `path` (`.gnu_debugaltlink`), if it names one.
    pub fn find_supplementary_file(&self, file: &object::File<'_>, path: &Path) -> Option<DebugFile> {
        let (name, build_id) = file.gnu_debugaltlink().ok()??;
        let linked = path.parent().unwrap_or(Path::new("/")).join(bytes_to_path(name));
        let found = self.open(&linked).filter(|found| self.has_build_id(found, build_id));
        found.or_else(|| self.find_by_build_id(build_id)).or_else(|| {
            self.warn(format!(
                "{}: {} is missing: some function names are unknown",
                self.path.display(),
                linked.display()
            ));
            None
        })
    }

    /// Finds the package of split debug information (`.dwp`) beside the object or its debug file.
    pub fn find_package(&self, debug_file: &Path) -> Option<DebugFile> {
        [self.path, debug_file].into_iter().find_map(|path| {
            let mut path = path.as_os_str().to_owned();
            path.push(".dwp");
            self.open(Path::new(&path))
        })
    }

    /// Returns the existing files that may be the split debug information (`.dwo`) that a compiler wrote to `name`
    /// while its working directory was `folder`.
    pub fn find_split_files(&self, folder: &Path, name: &Path) -> impl Iterator<Item = DebugFile> {
        let object_folder = self.path.parent().unwrap_or(Path::new("/"));
        let file_name = Path::new(name.file_name().unwrap_or_default());
        let candidates = [folder.join(name), object_folder.join(name), object_folder.join(file_name)];
        candidates.into_iter().filter_map(|candidate| self.open(&candidate))
    }

    /// Opens the installed debug file of a build ID, `/usr/lib/debug/.build-id/ab/cdef….debug`.
    fn find_by_build_id(&self, build_id: &[u8]) -> Option<DebugFile> {
        let (first, rest) = build_id.split_first()?;
        let path = PathBuf::from(format!("{DEBUG_ROOT}/.build-id/{first:02x}/{}.debug", format_hex(rest)));
        self.open(&path).filter(|found| self.has_build_id(found, build_id))
    }

    /// Returns true if an ELF file has the build ID, or has none at all. Warns if it has another one.
    fn has_build_id(&self, found: &DebugFile, build_id: &[u8]) -> bool {
        let Ok(file) = object::File::parse(&*found.bytes) else { return false };
        let matches = file.build_id().ok().flatten().is_none_or(|id| id == build_id);
        if !matches {
            self.warn_ignored(&found.path, "build ID");
        }
        matches
    }

    /// Warns that a file is ignored because its build ID or checksum does not match.
    fn warn_ignored(&self, path: &Path, mismatch: &str) {
        let (path, object) = (path.display(), self.path.display());
        self.warn(format!("{path} is ignored: its {mismatch} differs from that of {object}"));
    }

    /// Finds the file that `.gnu_debuglink` names and whose checksum it contains.
    ///
    /// Like gdb, looks beside the object, in `.debug` beside it, and in the same folder below [`DEBUG_ROOT`].
    fn find_by_debug_link(&self, file: &object::File<'_>) -> Option<DebugFile> {
        let (name, checksum) = file.gnu_debuglink().ok()??;
        let name = name.to_path().ok()?;
        if name.components().count() != 1 {
            return None;
        }
        let folder = self.path.parent()?;
        let debug_folder = Path::new(DEBUG_ROOT).join(folder.strip_prefix("/").unwrap_or(folder));
        let candidates = [folder.join(name), folder.join(".debug").join(name), debug_folder.join(name)];
        candidates
            .iter()
            .filter(|candidate| *candidate != self.path)
            .find_map(|candidate| self.open_with_checksum(candidate, checksum))
    }

    /// Opens a file if its CRC-32 is `checksum`. Warns if it is not.
    fn open_with_checksum(&self, path: &Path, checksum: u32) -> Option<DebugFile> {
        let found = self.open(path)?;
        let mut crc = flate2::Crc::new();
        crc.update(&found.bytes);
        if crc.sum() != checksum {
            self.warn_ignored(path, "checksum");
            return None;
        }
        Some(found)
    }

    /// Runs `debuginfod-find`, which downloads a debug file and prints its path.
    fn download(&self, build_id: &[u8]) -> Option<DebugFile> {
        let mut command = Command::new("debuginfod-find");
        command.arg("debuginfo").arg(format_hex(build_id)).stdin(Stdio::null()).stderr(Stdio::null());
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => {
                self.warn(format!("debuginfod-find: {}", crate::io_error_text(&error)));
                return None;
            }
        };
        let path = bytes_to_path(output.stdout.trim_ascii_end());
        let bytes = map_regular_file(&path).filter(|_| output.status.success())?;
        Some(DebugFile { path, bytes }).filter(|found| self.has_build_id(found, build_id))
    }

    /// Opens a file as the process saw it, or else as we see it.
    fn open(&self, path: &Path) -> Option<DebugFile> {
        let in_root = self.root.and_then(|root| map_regular_file(&root.join(path.strip_prefix("/").ok()?)));
        let bytes = in_root.or_else(|| map_regular_file(path))?;
        Some(DebugFile { path: path.to_owned(), bytes })
    }
}

fn map_regular_file(path: &Path) -> Option<Bytes> {
    let file = open_without_blocking(path).ok()?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    map_file(&file).ok()
}
