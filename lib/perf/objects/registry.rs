//! All objects of a recording. Each file is opened when it is first mapped, because it may be gone by the end.

use rustc_hash::FxHashMap;

use super::mapped_file::{FileIdentity, copy_vdso, is_jitdump, is_memory_backed, map_file, open_mapped};
use super::mount_namespace::ProcessFolders;
use super::object::{Elf, JitMemory, Object, ObjectId, UPROBES};
use super::vsyscall;
use crate::perf::data::files::FileSearch;
use crate::perf::event::{Inode, Mmap};
use crate::perf::jit::code::JitCode;
use crate::perf::jit::jitdump::JitDump;
use crate::perf::runtimes::functions::ScriptFrames;
use crate::perf::symbols::kallsyms::KernelSymbols;

/// All objects of a recording.
#[derive(Debug)]
pub struct Objects {
    pub(in crate::perf) objects: Vec<Object>,
    pub(in crate::perf) by_file: FxHashMap<FileIdentity, ObjectId>,
    /// The files that were opened. The inode of a mapping finds its file when the process has exited.
    pub(in crate::perf) by_inode: FxHashMap<Inode, ObjectId>,
    pub(in crate::perf) by_name: FxHashMap<Vec<u8>, ObjectId>,
    /// The generated code of each process, by the memory that contains it.
    pub(in crate::perf) jit: FxHashMap<(u32, JitMemory), ObjectId>,
    /// Numbers of removed objects, to be reused.
    pub(in crate::perf) free: Vec<ObjectId>,
    /// Finds the files of a recording that was made before; `None` for a live recording.
    pub(in crate::perf) files: Option<FileSearch>,
    /// The source of kernel symbols.
    pub kernel: KernelSymbols,
    pub(in crate::perf) folders: ProcessFolders,
    /// The names of generated code.
    pub jit_code: JitCode,
    /// The functions of interpreted languages.
    pub script_frames: ScriptFrames,
}

/// The object of addresses outside of all known mappings.
pub const UNKNOWN: ObjectId = ObjectId(0);
/// The kernel and its modules.
pub const KERNEL: ObjectId = ObjectId(1);
/// The functions of interpreted languages.
pub const SCRIPT: ObjectId = ObjectId(2);

impl Default for Objects {
    fn default() -> Self {
        Self {
            objects: vec![Object::Unknown, Object::Kernel, Object::Script],
            by_file: FxHashMap::default(),
            by_inode: FxHashMap::default(),
            by_name: FxHashMap::default(),
            jit: FxHashMap::default(),
            free: Vec::new(),
            files: None,
            kernel: KernelSymbols::default(),
            folders: ProcessFolders::default(),
            jit_code: JitCode::default(),
            script_frames: ScriptFrames::default(),
        }
    }
}

impl Objects {
    /// Returns an object.
    pub fn get(&self, id: ObjectId) -> &Object {
        &self.objects[id.index()]
    }

    /// Returns all objects with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        self.objects.iter().enumerate().map(|(index, object)| (ObjectId(index as u32), object))
    }

    /// Returns the object of the code that a process generated; [`UNKNOWN`] if it is neither in a mapping nor described
    /// by a jitdump or perf map.
    pub fn intern_jit(&mut self, pid: u32, memory: JitMemory) -> ObjectId {
        if let Some(id) = self.jit.get(&(pid, memory)) {
            return *id;
        }
        match self.files {
            None => self.jit_code.add_running_process(pid, &mut self.folders),
            // The pid of an old recording may belong to another process by now.
            Some(_) => self.jit_code.add_past_process(pid),
        }
        let is_known = memory != JitMemory::Unmapped || self.jit_code.may_have_symbols(pid);
        let id = if is_known { self.push(Object::Jit { pid, memory }) } else { UNKNOWN };
        self.jit.insert((pid, memory), id);
        id
    }

    /// Returns true if the addresses of an object may have symbols.
    pub fn may_have_symbols(&self, id: ObjectId) -> bool {
        match self.get(id) {
            Object::Unknown | Object::Missing { .. } => false,
            Object::Jit { pid, .. } => self.jit_code.may_have_symbols(*pid),
            Object::Kernel | Object::Script | Object::Elf(_) => true,
        }
    }

    /// Adds a jitdump that a process has mapped.
    pub(in crate::perf) fn add_jitdump(&mut self, pid: u32, dump: JitDump) -> ObjectId {
        self.jit_code.add_jitdump(pid, dump);
        // Code outside of mappings can have symbols now.
        self.jit.retain(|(owner, _), id| *owner != pid || *id != UNKNOWN);
        self.intern_jit(pid, JitMemory::Private)
    }

    /// Notes that the jitdump of a mapping could not be opened.
    pub(in crate::perf) fn add_missing_jitdump(&mut self, mmap: &Mmap<'_>, reason: &str) -> ObjectId {
        self.jit_code.add_missing_jitdump(mmap.pid, format!("{}: {reason}", String::from_utf8_lossy(mmap.path)));
        self.intern_jit(mmap.pid, JitMemory::Private)
    }

    /// Returns the object of a mapping. Opens its file if it is new.
    pub fn open_mapping(&mut self, mmap: &Mmap<'_>) -> ObjectId {
        self.open_mapping_of_child(mmap, std::iter::empty())
    }

    /// Returns the object of the page with functions that the kernel executes. The kernel does not report that it is mapped.
    pub(in crate::perf) fn intern_vsyscall(&mut self) -> ObjectId {
        self.intern_by_name(vsyscall::NAME, || Err("a page that the kernel provides".to_owned()))
    }

    /// Returns the object of a mapping of a process with these ancestors. If it has exited, they see the same files.
    pub fn open_mapping_of_child(&mut self, mmap: &Mmap<'_>, ancestors: impl Iterator<Item = u32>) -> ObjectId {
        let path = mmap.path;
        if path == b"[vdso]" {
            return self.intern_by_name(path, || copy_vdso().ok_or_else(|| "not found in this process".to_owned()));
        }
        if path == UPROBES {
            return self.intern_by_name(path, || Err("a page that the kernel provides for probes".to_owned()));
        }
        if path.starts_with(vsyscall::NAME) {
            return self.intern_vsyscall();
        }
        if path.is_empty() || path.starts_with(b"[") || path.starts_with(b"//anon") {
            return self.intern_jit(mmap.pid, JitMemory::Private);
        }
        if let Some(files) = self.files.take() {
            let id = self.open_recorded_file(mmap, &files);
            self.files = Some(files);
            return id;
        }
        self.open_live_file(mmap, ancestors)
    }

    /// Returns the object of a file that a process has mapped. If the process has exited meanwhile, so that its file cannot be
    /// reached, the file may have been opened for another process.
    fn open_live_file(&mut self, mmap: &Mmap<'_>, ancestors: impl Iterator<Item = u32>) -> ObjectId {
        let path = mmap.path;
        let inode = mmap.inode.filter(|inode| inode.is_unique());
        let opened_before = inode.and_then(|inode| self.by_inode.get(&inode)).copied();
        let (file, identity) = match (open_mapped(mmap, ancestors), opened_before) {
            (Ok(opened), _) => opened,
            (Err(_), Some(id)) => return id,
            (Err(reason), None) if is_jitdump(mmap) => return self.add_missing_jitdump(mmap, &reason),
            (Err(_), None) if is_memory_backed(path) => return self.intern_jit(mmap.pid, JitMemory::Shared),
            (Err(reason), None) => return self.intern_by_name(path, || Err(reason)),
        };
        if is_jitdump(mmap)
            && let Some(dump) = file.try_clone().ok().and_then(JitDump::open)
        {
            return self.add_jitdump(mmap.pid, dump);
        }
        let id = match self.by_file.get(&identity) {
            Some(id) => *id,
            None => {
                let elf = map_file(&file)
                    .and_then(|bytes| Elf::parse(path.to_vec(), bytes).ok_or_else(|| "not an ELF file".to_owned()));
                let root = self.folders.root(mmap.pid);
                self.push(match elf {
                    Ok(elf) => Object::Elf(elf.with_root(root)),
                    Err(_) if is_memory_backed(path) => return self.intern_jit(mmap.pid, JitMemory::Shared),
                    Err(reason) => Object::Missing { path: path.to_vec(), reason },
                })
            }
        };
        self.by_file.insert(identity, id);
        self.by_inode.extend(inode.map(|inode| (inode, id)));
        id
    }

    /// Returns the object with a name. Opens it if it is new.
    fn intern_by_name(&mut self, name: &[u8], open: impl FnOnce() -> Result<Elf, String>) -> ObjectId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let object = match open() {
            Ok(elf) => Object::Elf(elf),
            Err(reason) => Object::Missing { path: name.to_vec(), reason },
        };
        let id = self.push(object);
        self.by_name.insert(name.to_vec(), id);
        id
    }

    /// Adds an object.
    pub(in crate::perf) fn push(&mut self, object: Object) -> ObjectId {
        if let Some(id) = self.free.pop() {
            self.objects[id.index()] = object;
            return id;
        }
        let id = ObjectId(u32::try_from(self.objects.len()).expect("fewer than 2^32 objects"));
        self.objects.push(object);
        id
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Objects, UNKNOWN};
    use crate::perf::event::{Inode, Mmap};
    use crate::perf::objects::object::Object;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn finds_a_file_by_its_inode_when_its_process_has_exited() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::copy("/proc/self/exe", &path).unwrap();
        let number = path.metadata().unwrap().ino();
        let text = path.to_str().unwrap().as_bytes();
        let mut objects = Objects::default();
        let mut open = |pid, generation| {
            let inode = Some(Inode { device: 1, number, generation });
            let (start, length, offset, build_id) = (0, 4096, 0, None);
            let mmap =
                Mmap { pid, start, length, offset, inode, build_id, executable: true, writable: false, path: text };
            objects.open_mapping(&mmap)
        };
        let opened = open(std::process::id(), 7);
        std::fs::remove_file(&path).unwrap();
        let exited = u32::MAX;
        let found = [7, 8, 0].map(|generation| open(exited, generation));
        assert_eq!(found[0], opened);
        assert!(opened != UNKNOWN && matches!(objects.get(opened), Object::Elf(_)));
        assert!(found[1..].iter().all(|id| matches!(objects.get(*id), Object::Missing { .. })));
    }
}
