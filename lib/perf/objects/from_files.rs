//! The objects of a recording that was made before: their files are found by the paths in the recording.

use super::mapped_file::{is_jitdump, is_memory_backed, open_without_blocking};
use super::object::{Elf, JitMemory, Object, ObjectId};
use super::registry::Objects;
use crate::perf::data::files::{FileSearch, NOT_FOUND};
use crate::perf::event::Mmap;
use crate::perf::jit::jitdump::JitDump;

impl Objects {
    /// Creates the objects of a recording that was made before.
    pub fn from_files(files: FileSearch) -> Self {
        Self { files: Some(files), ..Self::default() }
    }

    /// Returns the search for the files of a recording that was made before; `None` for a live recording.
    pub fn files(&mut self) -> Option<&mut FileSearch> {
        self.files.as_mut()
    }

    /// Removes the files that turned out to be of another build than the one that ran.
    ///
    /// Call this when all build IDs are known.
    pub fn reject_other_builds(&mut self) {
        let Some(files) = &self.files else { return };
        for object in &mut self.objects {
            if let Object::Elf(elf) = object
                && let Some(reason) = files.rejects(elf.path(), elf.bytes())
            {
                *object = Object::Missing { path: elf.path().to_vec(), reason };
            }
        }
    }

    /// Returns the object of a mapping. Opens its file if it is new.
    pub(super) fn open_recorded_file(&mut self, mmap: &Mmap<'_>, files: &FileSearch) -> ObjectId {
        let key = FileSearch::key(mmap);
        if let Some(id) = self.by_name.get(&key) {
            return *id;
        }
        if is_jitdump(mmap) {
            return match open_jitdump(mmap.path, files) {
                Ok(dump) => self.add_jitdump(mmap.pid, dump),
                Err(reason) => self.add_missing_jitdump(mmap, reason),
            };
        }
        let path = mmap.path.to_vec();
        let elf = files
            .open(mmap)
            .and_then(|bytes| Elf::parse(path.clone(), bytes).ok_or_else(|| "not an ELF file".to_owned()))
            .map(|elf| elf.with_root(files.root_folder()));
        let id = match elf {
            Ok(elf) => self.push(Object::Elf(elf)),
            Err(_) if is_memory_backed(&path) => return self.intern_jit(mmap.pid, JitMemory::Shared),
            Err(reason) => self.push(Object::Missing { path, reason }),
        };
        self.by_name.insert(key, id);
        id
    }
}

/// Opens a jitdump. It has no build ID to check.
fn open_jitdump(path: &[u8], files: &FileSearch) -> Result<JitDump, &'static str> {
    let file = open_without_blocking(&files.local_path(path)).map_err(|_| NOT_FOUND)?;
    JitDump::open(file).ok_or("not a jitdump")
}
