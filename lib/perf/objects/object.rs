//! Objects: what code belongs to, most often a file.

use std::path::Path;
use std::sync::Arc;

use object::{Object as _, ObjectSegment as _};

use super::mount_namespace::Folder;
use crate::markers;

/// An object's number in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub(in crate::perf) u32);

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
            Self::Unknown | Self::Jit { mapped: false, .. } => markers::UNKNOWN,
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

impl Bytes {
    /// Gives back the memory of what was read of a file; it is read again if it is asked for again.
    #[cfg(unix)]
    #[allow(unsafe_code)]
    pub(in crate::perf) fn let_go(&self) {
        if let Self::Mapped(map) = self {
            // SAFETY: the mapping is read-only, so that nothing is lost but what the file has. That this fails is no harm.
            let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }

    #[cfg(not(unix))]
    pub(in crate::perf) fn let_go(&self) {}
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
    pub(in crate::perf) fn parse(path: Vec<u8>, bytes: Bytes) -> Option<Self> {
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

    /// The same file, of a process whose root folder is not ours.
    pub(in crate::perf) fn below(self, root: Option<Arc<Folder>>) -> Self {
        Self { root, ..self }
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
