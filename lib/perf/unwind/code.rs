//! The code that runs at an address of a process.

use super::snapshot::ProcessSnapshot;
use crate::perf::objects::object::{Elf, Object, ObjectId};
use crate::perf::objects::registry::Objects;
use crate::perf::process::Mapping;

/// Reads code of a running process into a buffer, and returns the number of bytes that were read.
///
/// The arguments are the process ID, the address and the buffer. Only code may be read this way: unlike a stack, it
/// is still what it was when the sample was taken.
pub type ReadCode = fn(u32, u64, &mut [u8]) -> usize;

/// Code of an ELF file.
pub(super) struct Code<'a> {
    /// The object that the code belongs to.
    pub(super) object: ObjectId,
    /// The ELF file of that object.
    pub(super) elf: &'a Elf,
    /// The address in the file's own address space (SVMA).
    pub(super) svma: u64,
}

/// The assumed size of the function at an entry point, in bytes.
pub(super) const ENTRY_FUNCTION_SIZE: u64 = 64;

impl<'a> Code<'a> {
    /// Returns the code at an address of a mapping. `None` if the mapping is not of an ELF file.
    pub(super) fn find(mapping: Mapping, address: u64, objects: &'a Objects) -> Option<Self> {
        let Object::Elf(elf) = objects.get(mapping.object) else { return None };
        let svma = elf.address_of_offset((address - mapping.start).wrapping_add(mapping.offset))?;
        Some(Self { object: mapping.object, elf, svma })
    }

    /// True in the first function of a program or of the dynamic linker.
    ///
    /// Nobody called it, and not every linker says so in its unwind information.
    pub(super) fn is_entry_point(&self) -> bool {
        let entry = self.elf.entry();
        entry != 0 && self.svma.checked_sub(entry).is_some_and(|distance| distance < ENTRY_FUNCTION_SIZE)
    }
}

impl ProcessSnapshot<'_> {
    /// Reads code that a program has generated into a buffer, and returns the number of bytes that were read.
    pub(super) fn read_generated_code(&self, address: u64, code: &mut [u8]) -> usize {
        // What a process has run after the sample tells nothing about the sample.
        match self.read_code {
            Some(read_code) if !self.processes.has_execed_since(self.pid, self.time) => {
                read_code(self.pid, address, code)
            }
            _ => 0,
        }
    }
}
