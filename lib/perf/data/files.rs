//! Finds the files whose code ran, by their paths in a recording.
//!
//! They are looked for at these paths, below another root, or in the cache in which `perf record` keeps the files that
//! it has met. A file with another build ID than the one that ran is not used.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::Object as _;
use rustc_hash::FxHashMap;

use super::header::BuildId;
use crate::bytes::format_hex;
use crate::perf::event::{Fields, Mmap};
use crate::perf::objects::mapped_file::{bytes_to_path, map_file};
use crate::perf::objects::mount_namespace::Folder;
use crate::perf::objects::object::Bytes;

/// Finds the files of a recording.
#[derive(Debug)]
pub struct FileSearch {
    /// The folder below which all paths are looked up; `None` for `/`.
    root: Option<PathBuf>,
    /// A handle to the folder `root`.
    root_folder: Option<Arc<Folder>>,
    /// The cache of `perf record`.
    cache: Option<PathBuf>,
    /// The build ID that ran, by path.
    build_ids: FxHashMap<Vec<u8>, Vec<u8>>,
}

/// The reason that is given for a file that does not exist.
pub(in crate::perf) const NOT_FOUND: &str = "not found";
/// The reason that is given for a file that is not looked for, because its name now belongs to another file.
const REMOVED: &str = "it was removed before it was recorded";
/// The reason that is given for a file with another build ID.
const OTHER_BUILD: &str = "another build of it ran";

impl FileSearch {
    /// Creates a search below `root`, or in `/` and in the cache of `perf`.
    pub fn new(root: Option<PathBuf>) -> Self {
        let cache = if root.is_none() { cache_folder() } else { None };
        let root_folder = root.as_deref().and_then(Folder::open).map(Arc::new);
        Self { root, root_folder, cache, build_ids: FxHashMap::default() }
    }

    /// Adds the build ID of a file that ran.
    pub fn add_build_id(&mut self, build_id: &BuildId) {
        self.build_ids.insert(build_id.path.clone(), build_id.id.clone());
    }

    /// The folder below which all paths are looked up; `None` for `/`.
    pub(in crate::perf) fn root_folder(&self) -> Option<Arc<Folder>> {
        self.root_folder.clone()
    }

    /// Returns the key of a mapped file: its path, followed by the build ID if the mapping has one.
    pub(in crate::perf) fn key(mmap: &Mmap<'_>) -> Vec<u8> {
        match mmap.build_id {
            Some(id) => [mmap.path, &b"\0"[..], id].concat(),
            None => mmap.path.to_vec(),
        }
    }

    /// Opens the file of a mapping.
    ///
    /// # Errors
    /// Why no file was found, or none of the right build.
    pub(in crate::perf) fn open(&self, mmap: &Mmap<'_>) -> Result<Bytes, String> {
        let expected = mmap.build_id.or_else(|| self.build_ids.get(mmap.path).map(|id| &id[..]));
        if expected.is_none() && mmap.path.ends_with(b" (deleted)") {
            return Err(REMOVED.to_owned());
        }
        let mut reason = NOT_FOUND.to_owned();
        for path in self.candidates(mmap.path, expected) {
            let Ok(bytes) = map_regular_file(&path) else { continue };
            if expected.is_none_or(|expected| has_build_id(&bytes, expected)) {
                return Ok(bytes);
            }
            reason = OTHER_BUILD.to_owned();
        }
        Err(reason)
    }

    /// Returns the paths at which a file may be, the best first.
    fn candidates(&self, path: &[u8], build_id: Option<&[u8]>) -> Vec<PathBuf> {
        let mut candidates = vec![self.local_path(path)];
        if let (Some(cache), Some(build_id)) = (&self.cache, build_id) {
            let id = format_hex(build_id);
            let (first, rest) = id.split_at(id.len().min(2));
            let folder = cache.join(".build-id").join(first).join(rest);
            candidates.extend(["elf", "vdso"].map(|name| folder.join(name)));
        }
        candidates
    }

    /// Returns the path of a file below the root.
    pub(in crate::perf) fn local_path(&self, path: &[u8]) -> PathBuf {
        let path = bytes_to_path(path);
        match &self.root {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(&path)),
            None => path,
        }
    }

    /// Returns why an opened file is not used, if its build ID became known since and is another.
    pub(in crate::perf) fn rejects(&self, path: &[u8], bytes: &[u8]) -> Option<String> {
        let is_other = self.build_ids.get(path).is_some_and(|expected| !has_build_id(bytes, expected));
        is_other.then(|| OTHER_BUILD.to_owned())
    }

    /// Returns the file in the cache that lists the symbols of a kernel.
    pub fn find_cached_kernel(&self, build_id: &[u8]) -> Option<PathBuf> {
        let path = self.cache.as_ref()?.join("[kernel.kallsyms]").join(format_hex(build_id)).join("kallsyms");
        path.is_file().then_some(path)
    }
}

/// Returns the folder of `perf`'s cache: `$PERF_BUILDID_DIR`, or else `~/.debug`.
fn cache_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("PERF_BUILDID_DIR") {
        return Some(folder.into());
    }
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".debug"))
}

fn map_regular_file(path: &Path) -> Result<Bytes, String> {
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return Err("not a regular file".to_owned());
    }
    map_file(&File::open(path).map_err(|error| crate::io_error_text(&error))?)
}

/// True if an ELF file has the expected build ID.
///
/// A file without a build ID matches one of zeros only. What is not an object file matches any, and is rejected later.
fn has_build_id(bytes: &[u8], expected: &[u8]) -> bool {
    let Ok(file) = object::File::parse(bytes) else { return true };
    // Old recordings pad shorter build IDs with zeros.
    match file.build_id() {
        Ok(Some(id)) => id == expected || (expected.len() == 20 && expected.starts_with(id)),
        _ => expected.iter().all(|byte| *byte == 0),
    }
}

/// Reads the build ID of the running kernel.
pub fn running_kernel_build_id() -> Option<Vec<u8>> {
    const GNU_BUILD_ID: u32 = 3;
    let notes = std::fs::read("/sys/kernel/notes").ok()?;
    let mut fields = Fields::new(&notes);
    loop {
        let (name, size, kind) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let name = fields.take((name as usize).checked_next_multiple_of(4)?)?;
        let id = fields.take((size as usize).checked_next_multiple_of(4)?)?;
        if kind == GNU_BUILD_ID && name.starts_with(b"GNU\0") {
            return Some(id.get(..size as usize)?.to_vec());
        }
    }
}
