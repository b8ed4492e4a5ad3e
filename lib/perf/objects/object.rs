//! An object: a file whose code runs, the kernel, or generated code.

use std::path::Path;
use std::sync::Arc;

use object::{Architecture, Object as _, ObjectSegment as _};

use super::mount_namespace::Folder;
use crate::markers;

/// An object's number in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub(in crate::perf) u32);

impl ObjectId {
    /// Returns the number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The owner of a range of code.
#[derive(Clone, Debug)]
pub enum Object {
    /// No mapping is known.
    Unknown,
    /// The kernel and its modules.
    Kernel,
    /// The functions of interpreted languages. Their addresses are numbers of
    /// [`ScriptFrames`](crate::perf::runtimes::functions::ScriptFrames).
    Script,
    /// Machine code that a process generated. Its addresses are those of the process.
    Jit {
        /// The ID of the process.
        pid: u32,
        /// The memory that contains it.
        memory: JitMemory,
    },
    /// An ELF file.
    Elf(Elf),
    /// A file that could not be read.
    Missing {
        /// The path as the process saw it.
        path: Vec<u8>,
        /// The reason why it could not be read.
        reason: String,
    },
}

/// The memory that contains generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JitMemory {
    /// No mapping is known there.
    Unmapped,
    /// An anonymous mapping of the process alone.
    Private,
    /// A mapping that processes may share, which has the path of a file.
    Shared,
}

/// The name of the page to which functions return whose returns are probed (uretprobes).
pub const UPROBES: &[u8] = b"[uprobes]";

impl Object {
    /// Returns the ID of the process that generated the code.
    pub fn jit_process(&self) -> Option<u32> {
        if let Self::Jit { pid, .. } = self { Some(*pid) } else { None }
    }

    /// Returns the object's name as `perf script` prints it.
    pub fn path(&self) -> &[u8] {
        match self {
            Self::Unknown | Self::Jit { memory: JitMemory::Unmapped, .. } => markers::UNKNOWN,
            Self::Jit { .. } => b"//anon",
            Self::Kernel => b"[kernel.kallsyms]",
            Self::Script => b"[script]",
            Self::Elf(elf) => &elf.path,
            Self::Missing { path, .. } => path,
        }
    }

    /// True for musl, whose C library is also the dynamic linker: `ld-musl-ARCH.so.1`, often a link to `libc.so`.
    pub fn is_musl(&self) -> bool {
        let path = self.path();
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
        name.starts_with(b"ld-musl-") || name == b"libc.so"
    }

    /// Returns the frame of code without a symbol: `[unknown]`, or the object's file name in brackets.
    pub fn frame_without_symbol(&self) -> Vec<u8> {
        let path = self.path();
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
        if name.starts_with(b"[") { name.to_vec() } else { [b"[", name, b"]"].concat() }
    }
}

/// The content of a file.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// A memory-mapped file.
    Mapped(Arc<memmap2::Mmap>),
    /// A copy in memory.
    Copied(Arc<[u8]>),
}

impl Bytes {
    /// Releases the memory of a mapped file. The kernel reads the file again on the next access.
    #[cfg(unix)]
    #[allow(unsafe_code)]
    pub(in crate::perf) fn release(&self) {
        if let Self::Mapped(map) = self {
            // SAFETY: the mapping is read-only, so the file has everything that is dropped. A failure is harmless.
            let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }

    #[cfg(not(unix))]
    pub(in crate::perf) fn release(&self) {}
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
    /// The executable segments.
    segments: Vec<Segment>,
    architecture: Architecture,
    entry: u64,
    root: Option<Arc<Folder>>,
}

/// A part of the file that is mapped as code.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl Elf {
    /// Parses the headers of an ELF file; `None` if `bytes` are not one.
    pub(in crate::perf) fn parse(path: Vec<u8>, bytes: Bytes) -> Option<Self> {
        let file = object::File::parse(&*bytes).ok()?;
        // Executable segments only: linkers place others so that their pages overlap these in the file.
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
        let (architecture, entry) = (file.architecture(), file.entry());
        Some(Self { path, bytes, segments, architecture, entry, root: None })
    }

    /// Sets the root folder of the process that runs the file; `None` if it is ours.
    pub(in crate::perf) fn with_root(self, root: Option<Arc<Folder>>) -> Self {
        Self { root, ..self }
    }

    /// Returns the path as the process saw it.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns the file's content.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns a path to the root folder of the first process that mapped the file, unless it is ours.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_ref().map(|root| root.path())
    }

    /// Returns the CPU architecture of the code.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Returns the address of the first instruction of a program; 0 if the file has none.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// Returns the code from an address on, to the end of its segment. Empty if no code is there.
    pub fn code_from(&self, address: u64) -> &[u8] {
        let found = self.segments.iter().find_map(|segment| Some((segment, segment.offset_of_address(address)?)));
        let range = found.and_then(|(segment, offset)| {
            Some(segment.offset.checked_add(offset)? as usize..segment.offset.checked_add(segment.size)? as usize)
        });
        range.and_then(|range| self.bytes.get(range)).unwrap_or_default()
    }

    /// Returns the virtual address, as the file states it, of the code at a file offset.
    pub fn address_of_offset(&self, offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.contains(offset))?;
        Some(segment.address.wrapping_add(offset - segment.offset))
    }

    /// Returns the virtual address, as the file states it, of the first byte of a mapping of `size` bytes of code.
    pub fn address_of_mapping(&self, offset: u64, size: u64) -> Option<u64> {
        // Segments need not begin at a page of the file, but mappings do.
        let mut skips = (0..size.min(PAGE_SIZE)).step_by(16);
        skips.find_map(|skip| self.address_of_offset(offset.checked_add(skip)?)?.checked_sub(skip))
    }

    /// Returns the distance of addresses in a process from those that the file states, for a mapping of `size` bytes of code.
    pub fn bias_of_mapping(&self, start: u64, offset: u64, size: u64) -> Option<u64> {
        Some(start.wrapping_sub(self.address_of_mapping(offset, size)?))
    }

    /// Returns the file offset at which the pages of code end that contain `offset`.
    pub fn end_of_code(&self, offset: u64) -> Option<u64> {
        let mut end = offset;
        while let Some(segment) = self.segments.iter().find(|segment| segment.contains_page(end)) {
            end = segment.offset.saturating_add(segment.size).checked_next_multiple_of(PAGE_SIZE)?;
        }
        (end > offset).then_some(end)
    }
}

/// The smallest size of a page.
const PAGE_SIZE: u64 = 4096;

impl Segment {
    /// Returns the offset of an address from the start of the segment. `None` if it is outside.
    fn offset_of_address(&self, address: u64) -> Option<u64> {
        address.checked_sub(self.address).filter(|offset| *offset < self.size)
    }

    fn contains(&self, offset: u64) -> bool {
        offset >= self.offset && offset - self.offset < self.size
    }

    /// Returns true if the page at an offset has a byte of the segment.
    fn contains_page(&self, page: u64) -> bool {
        page.saturating_add(PAGE_SIZE) > self.offset && page < self.offset.saturating_add(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::{JitMemory, Object};

    #[test]
    fn names_code_without_a_symbol_by_its_file() {
        for (path, frame) in
            [("/usr/lib/libc.so.6", "[libc.so.6]"), ("/memfd:runc (deleted)", "[memfd:runc (deleted)]")]
        {
            let missing = Object::Missing { path: path.into(), reason: String::new() };
            assert_eq!(missing.frame_without_symbol(), frame.as_bytes());
        }
        assert_eq!(Object::Kernel.frame_without_symbol(), b"[kernel.kallsyms]");
        assert_eq!(Object::Unknown.frame_without_symbol(), b"[unknown]");
        assert_eq!(Object::Jit { pid: 1, memory: JitMemory::Private }.frame_without_symbol(), b"[anon]");
    }
}
