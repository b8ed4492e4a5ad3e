//! Objects: the files whose code runs, opened when they are first mapped, for by the end they may be gone.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::{Object as _, ObjectSegment as _};
use rustc_hash::FxHashMap;

use super::data::files::Files;
use super::event::Mmap;
use super::jit::JitCode;
use super::jitdump::JitDump;
use super::kallsyms::KernelNames;
use super::view::{Folder, Views};

/// An object's number in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub(super) u32);

impl ObjectId {
    /// A dense index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What code belongs to.
#[derive(Clone, Debug)]
pub enum Object {
    /// Nothing that was mapped.
    Unknown,
    /// The kernel and its modules.
    Kernel,
    /// The machine code that a process made itself; its addresses are those of the process.
    Jit {
        /// The process.
        pid: u32,
        /// Whether it lies in a known anonymous mapping.
        mapped: bool,
    },
    /// An ELF file whose content is at hand.
    Elf(Elf),
    /// A file that could not be read.
    Missing {
        /// The path as the process saw it.
        path: Vec<u8>,
        /// Why not.
        why: String,
    },
}

impl Object {
    /// The object's name, as `perf script` prints it.
    pub fn path(&self) -> &[u8] {
        match self {
            Self::Unknown | Self::Jit { mapped: false, .. } => b"[unknown]",
            Self::Jit { mapped: true, .. } => b"//anon",
            Self::Kernel => b"[kernel.kallsyms]",
            Self::Elf(elf) => &elf.path,
            Self::Missing { path, .. } => path,
        }
    }

    /// The frame that stands for code without a symbol: `[unknown]`, or the object's file name in brackets.
    pub fn frame(&self) -> Vec<u8> {
        let path = self.path();
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
        if name.starts_with(b"[") { name.to_vec() } else { [b"[", name, b"]"].concat() }
    }
}

/// An ELF file's bytes.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Mapped from its file.
    Mapped(Arc<memmap2::Mmap>),
    /// Copied.
    Copied(Arc<[u8]>),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Copied(bytes) => bytes,
        }
    }
}

/// An opened ELF file.
#[derive(Clone, Debug)]
pub struct Elf {
    path: Vec<u8>,
    bytes: Bytes,
    segments: Vec<Segment>,
    entry: u64,
    root: Option<Arc<Folder>>,
}

/// A stretch of the file in which code may stand.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl Elf {
    /// Reads the headers. `None` if these bytes are no ELF file.
    pub(super) fn parse(path: Vec<u8>, bytes: Bytes) -> Option<Self> {
        let file = object::File::parse(&*bytes).ok()?;
        // Only those with code: a linker may place others so that their pages overlap these in the file.
        let segments = file
            .segments()
            .filter(|segment| match segment.flags() {
                object::SegmentFlags::Elf { p_flags, .. } => p_flags.contains(object::elf::PF_X),
                _ => false,
            })
            .map(|segment| {
                let (offset, size) = segment.file_range();
                Segment { offset, size, address: segment.address() }
            })
            .collect();
        let entry = file.entry();
        Some(Self { path, bytes, segments, entry, root: None })
    }

    /// The file's path as the process saw it.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// A path to the root folder of the process that mapped it first, unless that is ours.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_ref().map(|root| root.path())
    }

    /// The address of its first instruction; 0 if it has none.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// The address that the file itself gives to the byte at an offset.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let covers = |segment: &&Segment| offset >= segment.offset && offset - segment.offset < segment.size;
        self.segments.iter().find(covers).map(|segment| segment.address.wrapping_add(offset - segment.offset))
    }
}

/// All objects of a recording.
#[derive(Debug)]
pub struct Objects {
    pub(super) objects: Vec<Object>,
    pub(super) by_file: FxHashMap<(u64, u64, i64), ObjectId>,
    pub(super) by_name: FxHashMap<Vec<u8>, ObjectId>,
    pub(super) jit: FxHashMap<(u32, bool), ObjectId>,
    /// Numbers that are to be given again.
    pub(super) free: Vec<ObjectId>,
    /// Where files are looked for if the processes that ran them are no more.
    pub(super) files: Option<Files>,
    /// The kernel's names.
    pub kernel: KernelNames,
    pub(super) views: Views,
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
    pub(super) fn add_dump(&mut self, pid: u32, dump: JitDump) -> ObjectId {
        self.jit_code.add_dump(pid, dump);
        self.jit.retain(|(of, _), id| *of != pid || *id != UNKNOWN);
        self.jit(pid, true)
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
                    Ok(elf) => Object::Elf(Elf { root, ..elf }),
                    Err(_) if is_plain_memory(path) => return self.jit(mmap.pid, true),
                    Err(why) => Object::Missing { path: path.to_vec(), why },
                });
                self.by_file.insert(identity, id);
                id
            }
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

    pub(super) fn push(&mut self, object: Object) -> ObjectId {
        if let Some(id) = self.free.pop() {
            self.objects[id.0 as usize] = object;
            return id;
        }
        let id = ObjectId(u32::try_from(self.objects.len()).expect("fewer than 2^32 objects"));
        self.objects.push(object);
        id
    }
}

/// Whether a mapping may be by which a compiler tells where its jitdump is: `jit-PID.dump`, its first page, executable.
pub(super) fn is_dump(mmap: &Mmap<'_>) -> bool {
    let name = &mmap.path[memchr::memrchr(b'/', mmap.path).map_or(0, |slash| slash + 1)..];
    mmap.offset == 0 && name.starts_with(b"jit-") && name.ends_with(b".dump")
}

/// Files in name only, in which compilers put their code; unless a program was copied there and is run from it.
pub(super) fn is_plain_memory(path: &[u8]) -> bool {
    let names: [&[u8]; 4] = [b"/dev/zero", b"/SYSV", b"/dev/shm/", b"/memfd:"];
    names.iter().any(|name| path.starts_with(name))
}

/// Opens the file of a mapping as the process sees it, and makes sure that it is the very file that was mapped.
fn open(mmap: &Mmap<'_>) -> Result<(File, (u64, u64, i64)), String> {
    let path = bytes_to_path(mmap.path);
    let end = mmap.start + mmap.length;
    let candidates = [
        path.strip_prefix("/").ok().map(|below| PathBuf::from(format!("/proc/{}/root", mmap.pid)).join(below)),
        Some(path.clone()),
        Some(PathBuf::from(format!("/proc/{}/map_files/{:x}-{end:x}", mmap.pid, mmap.start))),
        // Those may be followed by root alone; this one by whoever may record the process.
        mmap.inode.map(|_| PathBuf::from(format!("/proc/{}/exe", mmap.pid))),
    ];
    let mut why = "not found".to_owned();
    for candidate in candidates.into_iter().flatten() {
        match open_at_once(&candidate).and_then(|file| file.metadata().map(|metadata| (file, metadata))) {
            Ok((file, metadata)) if metadata.is_file() => {
                let identity = identity(&metadata);
                if mmap.inode.is_none_or(|inode| inode == identity.1) {
                    return Ok((file, identity));
                }
                why = "another file stands there now".to_owned();
            }
            Ok(_) => why = "not a regular file".to_owned(),
            Err(_) => {}
        }
    }
    Err(why)
}

/// Opens a file of whatever kind without waiting for anybody: a pipe may stand by now where a program's file was.
#[cfg(unix)]
pub(super) fn open_at_once(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

#[cfg(not(unix))]
pub(super) fn open_at_once(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> (u64, u64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino(), metadata.mtime_nsec() ^ metadata.mtime().wrapping_mul(1_000_000_007))
}

#[cfg(not(unix))]
fn identity(metadata: &std::fs::Metadata) -> (u64, u64, i64) {
    (0, metadata.len(), 0)
}

#[cfg(unix)]
pub(super) fn bytes_to_path(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    // The kernel says so behind the path of a file that was removed.
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    Path::new(std::ffi::OsStr::from_bytes(path)).to_owned()
}

#[cfg(not(unix))]
pub(super) fn bytes_to_path(path: &[u8]) -> PathBuf {
    Path::new(&*String::from_utf8_lossy(path)).to_owned()
}

#[allow(unsafe_code)]
pub(super) fn map_file(file: &File) -> Result<Bytes, String> {
    #[cfg(unix)]
    super::truncation::survive();
    // SAFETY: the mapping is read-only and private; should somebody shorten the file while it is mapped, zeros are read.
    // Nothing that is read is trusted.
    let map = unsafe { memmap2::Mmap::map(file) }.map_err(|error| crate::plain(&error))?;
    Ok(Bytes::Mapped(Arc::new(map)))
}

/// The kernel maps the same code into every process: ours will do.
#[cfg(target_os = "linux")]
fn open_vdso() -> Option<Elf> {
    use std::os::unix::fs::FileExt as _;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Elf::parse(b"[vdso]".to_vec(), Bytes::Copied(bytes.into()))
}

#[cfg(not(target_os = "linux"))]
fn open_vdso() -> Option<Elf> {
    None
}

#[cfg(test)]
mod tests {
    use super::Object;

    #[test]
    fn code_without_a_symbol_is_named_by_its_file() {
        let missing = |path: &[u8]| Object::Missing { path: path.to_vec(), why: String::new() }.frame();
        assert_eq!(missing(b"/usr/lib/libc.so.6"), b"[libc.so.6]");
        assert_eq!(missing(b"/memfd:runc (deleted)"), b"[memfd:runc (deleted)]");
        assert_eq!(Object::Kernel.frame(), b"[kernel.kallsyms]");
        assert_eq!(Object::Unknown.frame(), b"[unknown]");
        assert_eq!(Object::Jit { pid: 1, mapped: true }.frame(), b"[anon]");
    }
}
