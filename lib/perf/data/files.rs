//! The files whose code ran, found by the paths in a recording: here, below another root, or in the cache that
//! `perf record` keeps of the files it has met. Another build of a file than the one that ran is none.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::Object as _;
use rustc_hash::FxHashMap;

use super::header::BuildId;
use crate::bytes::format_hex;
use crate::perf::event::Mmap;
use crate::perf::jit::jitdump::JitDump;
use crate::perf::objects::mapped_file::{bytes_to_path, is_dump, is_plain_memory, map_file, open_at_once};
use crate::perf::objects::mount_namespace::Folder;
use crate::perf::objects::object::{Bytes, Elf, Object, ObjectId};
use crate::perf::objects::registry::Objects;

/// Where the files of a recording are.
#[derive(Debug)]
pub struct Files {
    /// What is put before every path.
    root: Option<PathBuf>,
    /// The same, for what belongs to a file.
    folder: Option<Arc<Folder>>,
    /// `perf`'s own cache.
    cache: Option<PathBuf>,
    /// Which build of a file ran.
    expected: FxHashMap<Vec<u8>, Vec<u8>>,
}

/// Why there is no file.
const NOT_FOUND: &str = "not found";
/// Why a file is not looked for: if there is one again of that name, it is another.
const REMOVED: &str = "it was removed before it was recorded";
/// Why a file is not used.
const OTHER_BUILD: &str = "another build of it ran";

impl Files {
    /// Below `root`, or here and in `perf`'s cache.
    pub fn new(root: Option<PathBuf>) -> Self {
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".debug"));
        let cache = std::env::var_os("PERF_BUILDID_DIR").map(PathBuf::from).or_else(home);
        let cache = cache.filter(|_| root.is_none());
        let folder = root.as_deref().and_then(Folder::open).map(Arc::new);
        Self { root, folder, cache, expected: FxHashMap::default() }
    }

    /// Which build of a file ran.
    pub fn expect(&mut self, build_id: &BuildId) {
        self.expected.insert(build_id.path.clone(), build_id.id.clone());
    }

    /// What tells one file from another: its path, and its build-id where the mapping itself has that.
    pub(in crate::perf) fn key(mmap: &Mmap<'_>) -> Vec<u8> {
        match mmap.build_id {
            Some(id) => [mmap.path, &b"\0"[..], id].concat(),
            None => mmap.path.to_vec(),
        }
    }

    /// The content of a mapped file.
    ///
    /// # Errors
    /// Why there is none.
    pub(in crate::perf) fn open(&self, mmap: &Mmap<'_>) -> Result<Bytes, String> {
        let expected = mmap.build_id.or_else(|| self.expected.get(mmap.path).map(|id| &id[..]));
        if expected.is_none() && mmap.path.ends_with(b" (deleted)") {
            return Err(REMOVED.to_owned());
        }
        let mut why = NOT_FOUND.to_owned();
        for path in self.candidates(mmap.path, expected) {
            let Ok(bytes) = open_regular(&path) else { continue };
            if expected.is_none_or(|expected| is_build(&bytes, expected)) {
                return Ok(bytes);
            }
            why = OTHER_BUILD.to_owned();
        }
        Err(why)
    }

    fn candidates(&self, path: &[u8], expected: Option<&[u8]>) -> Vec<PathBuf> {
        let path = bytes_to_path(path);
        let mut candidates = vec![match &self.root {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(&path)),
            None => path,
        }];
        if let (Some(cache), Some(expected)) = (&self.cache, expected) {
            let id = format_hex(expected);
            let (first, rest) = id.split_at(id.len().min(2));
            let folder = cache.join(".build-id").join(first).join(rest);
            candidates.extend(["elf", "vdso"].map(|name| folder.join(name)));
        }
        candidates
    }

    /// A file of which the build is not asked.
    fn find(&self, path: &[u8]) -> Option<PathBuf> {
        self.candidates(path, None).into_iter().next()
    }

    /// Whether a file that was opened before its build was known is another one.
    pub(in crate::perf) fn is_other_build(&self, path: &[u8], bytes: &[u8]) -> Option<String> {
        let other = self.expected.get(path).is_some_and(|expected| !is_build(bytes, expected));
        other.then(|| OTHER_BUILD.to_owned())
    }

    /// The symbols that the cache has of the kernel of a build.
    pub fn cached_kernel(&self, id: &[u8]) -> Option<PathBuf> {
        let path = self.cache.as_ref()?.join("[kernel.kallsyms]").join(format_hex(id)).join("kallsyms");
        path.is_file().then_some(path)
    }
}

impl Objects {
    /// Of a recording that was made before: its files are looked for by their names.
    pub fn of_files(files: Files) -> Self {
        Self { files: Some(files), ..Self::default() }
    }

    /// Where the files of a recording are looked for.
    pub fn files(&mut self) -> Option<&mut Files> {
        self.files.as_mut()
    }

    /// Once all build-ids are known: other builds than those that ran are no longer objects.
    pub fn reject_other_builds(&mut self) {
        let Some(files) = &self.files else { return };
        for object in &mut self.objects {
            if let Object::Elf(elf) = object
                && let Some(why) = files.is_other_build(elf.path(), elf.bytes())
            {
                *object = Object::Missing { path: elf.path().to_vec(), why };
            }
        }
    }

    /// The object that a mapping of a recording shows, looked for by its name once.
    pub(in crate::perf) fn recorded(&mut self, mmap: &Mmap<'_>, files: &Files) -> ObjectId {
        let key = Files::key(mmap);
        if let Some(id) = self.by_name.get(&key) {
            return *id;
        }
        let path = mmap.path.to_vec();
        if is_dump(mmap) {
            return match files.find(&path).ok_or(NOT_FOUND).and_then(|path| open_dump(&path)) {
                Ok(dump) => self.add_dump(mmap.pid, dump),
                Err(why) => self.miss_dump(mmap, why),
            };
        }
        let elf = files
            .open(mmap)
            .and_then(|bytes| Elf::parse(path.clone(), bytes).ok_or_else(|| "not an ELF file".to_owned()))
            .map(|elf| elf.below(files.folder.clone()));
        let id = match elf {
            Ok(elf) => self.push(Object::Elf(elf)),
            Err(_) if is_plain_memory(&path) => return self.jit(mmap.pid, true),
            Err(why) => self.push(Object::Missing { path, why }),
        };
        self.by_name.insert(key, id);
        id
    }
}

fn open_regular(path: &Path) -> Result<Bytes, String> {
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return Err("not a regular file".to_owned());
    }
    map_file(&File::open(path).map_err(|error| crate::io_error_text(&error))?)
}

fn open_dump(path: &Path) -> Result<JitDump, &'static str> {
    let file = open_at_once(path).map_err(|_| NOT_FOUND)?;
    JitDump::open(file).ok_or("not a jitdump")
}

/// Whether an ELF file is of this build. One without a build-id cannot be told from another.
fn is_build(bytes: &[u8], expected: &[u8]) -> bool {
    let Ok(file) = object::File::parse(bytes) else { return true };
    // Build-ids that are shorter stand with zeros behind them in old recordings.
    match file.build_id() {
        Ok(Some(id)) => id == expected || (expected.len() == 20 && expected.starts_with(id)),
        _ => expected.iter().all(|byte| *byte == 0),
    }
}

/// The build-id of the running kernel.
pub fn running_kernel() -> Option<Vec<u8>> {
    const GNU_BUILD_ID: u32 = 3;
    let notes = std::fs::read("/sys/kernel/notes").ok()?;
    let mut fields = crate::perf::event::Fields::new(&notes);
    loop {
        let (name, size, kind) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let name = fields.take((name as usize).checked_next_multiple_of(4)?)?;
        let id = fields.take((size as usize).checked_next_multiple_of(4)?)?;
        if kind == GNU_BUILD_ID && name.starts_with(b"GNU\0") {
            return Some(id.get(..size as usize)?.to_vec());
        }
    }
}
