//! All objects of a recording: each is opened when it is first mapped, for by the end it may be gone.

use rustc_hash::FxHashMap;

use super::mapped_file::{is_dump, is_plain_memory, map_file, open, open_vdso};
use super::mount_namespace::Views;
use super::object::{Elf, Object, ObjectId};
use crate::perf::data::files::FileSearch;
use crate::perf::event::Mmap;
use crate::perf::jit::code::JitCode;
use crate::perf::jit::jitdump::JitDump;
use crate::perf::symbols::kallsyms::KernelNames;

/// All objects of a recording.
#[derive(Debug)]
pub struct Objects {
    pub(in crate::perf) objects: Vec<Object>,
    pub(in crate::perf) by_file: FxHashMap<(u64, u64, i64), ObjectId>,
    pub(in crate::perf) by_name: FxHashMap<Vec<u8>, ObjectId>,
    pub(in crate::perf) jit: FxHashMap<(u32, bool), ObjectId>,
    /// Numbers that are to be given again.
    pub(in crate::perf) free: Vec<ObjectId>,
    /// Where files are looked for if the processes that ran them are no more.
    pub(in crate::perf) files: Option<FileSearch>,
    /// The kernel's names.
    pub kernel: KernelNames,
    pub(in crate::perf) views: Views,
    /// What is known of the code that processes make themselves.
    pub jit_code: JitCode,
}

/// The object of unknown addresses.
pub const UNKNOWN: ObjectId = ObjectId(0);
/// The kernel.
pub const KERNEL: ObjectId = ObjectId(1);

impl Default for Objects {
    fn default() -> Self {
        Self {
            objects: vec![Object::Unknown, Object::Kernel],
            by_file: FxHashMap::default(),
            by_name: FxHashMap::default(),
            jit: FxHashMap::default(),
            free: Vec::new(),
            files: None,
            kernel: KernelNames::default(),
            views: Views::default(),
            jit_code: JitCode::default(),
        }
    }
}

impl Objects {
    /// The object.
    pub fn get(&self, id: ObjectId) -> &Object {
        &self.objects[id.0 as usize]
    }

    /// All of them with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        self.objects.iter().enumerate().map(|(index, object)| (ObjectId(index as u32), object))
    }

    /// The machine code that a process makes itself; `mapped` if a mapping is known at the address.
    pub fn jit(&mut self, pid: u32, mapped: bool) -> ObjectId {
        if let Some(id) = self.jit.get(&(pid, mapped)) {
            return *id;
        }
        // Of a recording that was made before, the number may be another process's by now.
        match self.files {
            None => self.jit_code.meet(pid, &mut self.views),
            Some(_) => self.jit_code.meet_traces(pid),
        }
        let id = if mapped || self.jit_code.may_tell(pid) { self.push(Object::Jit { pid, mapped }) } else { UNKNOWN };
        self.jit.insert((pid, mapped), id);
        id
    }

    /// Whether an address in an object may have a name of its own.
    pub fn tell_of_addresses(&self, id: ObjectId) -> bool {
        match self.get(id) {
            Object::Unknown | Object::Missing { .. } => false,
            Object::Jit { pid, .. } => self.jit_code.may_tell(*pid),
            Object::Kernel | Object::Elf(_) => true,
        }
    }

    /// A jitdump that a process has mapped.
    pub(in crate::perf) fn add_dump(&mut self, pid: u32, dump: JitDump) -> ObjectId {
        self.jit_code.add_dump(pid, dump);
        self.jit.retain(|(of, _), id| *of != pid || *id != UNKNOWN);
        self.jit(pid, true)
    }

    /// A jitdump that a process has mapped and that is not to be had.
    pub(in crate::perf) fn miss_dump(&mut self, mmap: &Mmap<'_>, why: &str) -> ObjectId {
        self.jit_code.miss_dump(mmap.pid, format!("{}: {why}", String::from_utf8_lossy(mmap.path)));
        self.jit(mmap.pid, true)
    }

    /// The object that a mapping shows: opened now if it is new.
    pub fn of_mapping(&mut self, mmap: &Mmap<'_>) -> ObjectId {
        let path = mmap.path;
        if path == b"[vdso]" {
            return self.named(path, || open_vdso().ok_or_else(|| "not found in this process".to_owned()));
        }
        if path.starts_with(b"[vsyscall]") {
            return self.named(path, || Err("a page of the kernel's".to_owned()));
        }
        if path.is_empty() || path.starts_with(b"[") || path.starts_with(b"//anon") {
            return self.jit(mmap.pid, true);
        }
        if let Some(files) = self.files.take() {
            let id = self.recorded(mmap, &files);
            self.files = Some(files);
            return id;
        }
        match open(mmap) {
            Ok((file, identity)) => {
                if is_dump(mmap)
                    && let Some(dump) = file.try_clone().ok().and_then(JitDump::open)
                {
                    return self.add_dump(mmap.pid, dump);
                }
                if let Some(id) = self.by_file.get(&identity) {
                    return *id;
                }
                let object = map_file(&file)
                    .and_then(|bytes| Elf::parse(path.to_vec(), bytes).ok_or_else(|| "not an ELF file".to_owned()));
                let root = self.views.root(mmap.pid);
                let id = self.push(match object {
                    Ok(elf) => Object::Elf(elf.below(root)),
                    Err(_) if is_plain_memory(path) => return self.jit(mmap.pid, true),
                    Err(why) => Object::Missing { path: path.to_vec(), why },
                });
                self.by_file.insert(identity, id);
                id
            }
            Err(why) if is_dump(mmap) => self.miss_dump(mmap, &why),
            Err(_) if is_plain_memory(path) => self.jit(mmap.pid, true),
            Err(why) => self.named(path, || Err(why)),
        }
    }

    fn named(&mut self, path: &[u8], open: impl FnOnce() -> Result<Elf, String>) -> ObjectId {
        if let Some(id) = self.by_name.get(path) {
            return *id;
        }
        let object = match open() {
            Ok(elf) => Object::Elf(elf),
            Err(why) => Object::Missing { path: path.to_vec(), why },
        };
        let id = self.push(object);
        self.by_name.insert(path.to_vec(), id);
        id
    }

    pub(in crate::perf) fn push(&mut self, object: Object) -> ObjectId {
        if let Some(id) = self.free.pop() {
            self.objects[id.0 as usize] = object;
            return id;
        }
        let id = ObjectId(u32::try_from(self.objects.len()).expect("fewer than 2^32 objects"));
        self.objects.push(object);
        id
    }
}
