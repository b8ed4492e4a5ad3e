//! The objects of a `perf.data` file: their files are found by the paths in the recording.

use super::mapped_file::{is_dump, is_plain_memory, open_at_once};
use super::object::{Elf, Object, ObjectId};
use super::registry::Objects;
use crate::perf::data::files::{FileSearch, NOT_FOUND};
use crate::perf::event::Mmap;
use crate::perf::jit::jitdump::JitDump;

impl Objects {
    /// Creates the objects of a recording that was made before.
    pub fn from_files(files: FileSearch) -> Self {
        Self { files: Some(files), ..Self::default() }
    }

    /// The search for the files of a recording that was made before; `None` for a live recording.
    pub fn files(&mut self) -> Option<&mut FileSearch> {
        self.files.as_mut()
    }

    /// Drops the files that turned out to be of another build than the one that ran.
    ///
    /// To be called when all build IDs are known.
    pub fn reject_other_builds(&mut self) {
        let Some(files) = &self.files else { return };
        for object in &mut self.objects {
            if let Object::Elf(elf) = object
                && let Some(why) = files.rejects(elf.path(), elf.bytes())
            {
                *object = Object::Missing { path: elf.path().to_vec(), why };
            }
        }
    }

    /// Returns the object of a mapping. Its file is opened if it is new.
    pub(super) fn recorded(&mut self, mmap: &Mmap<'_>, files: &FileSearch) -> ObjectId {
        let key = FileSearch::key(mmap);
        if let Some(id) = self.by_name.get(&key) {
            return *id;
        }
        if is_dump(mmap) {
            return match open_dump(mmap.path, files) {
                Ok(dump) => self.add_dump(mmap.pid, dump),
                Err(why) => self.miss_dump(mmap, why),
            };
        }
        let path = mmap.path.to_vec();
        let elf = files
            .open(mmap)
            .and_then(|bytes| Elf::parse(path.clone(), bytes).ok_or_else(|| "not an ELF file".to_owned()))
            .map(|elf| elf.below(files.root_folder()));
        let id = match elf {
            Ok(elf) => self.push(Object::Elf(elf)),
            Err(_) if is_plain_memory(&path) => return self.jit(mmap.pid, true),
            Err(why) => self.push(Object::Missing { path, why }),
        };
        self.by_name.insert(key, id);
        id
    }
}

/// Opens a jitdump, of whatever build: it has no build ID.
fn open_dump(path: &[u8], files: &FileSearch) -> Result<JitDump, &'static str> {
    let file = open_at_once(&files.local_path(path)).map_err(|_| NOT_FOUND)?;
    JitDump::open(file).ok_or("not a jitdump")
}
