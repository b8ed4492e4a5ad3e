//! The code that runs at an address of a process.

use super::snapshot::ProcessSnapshot;
use crate::perf::mappings::Mapping;
use crate::perf::objects::object::{Elf, Object, ObjectId};
use crate::perf::objects::registry::Objects;

/// Reads from processes that run. The first argument is the process ID.
#[derive(Clone, Copy, Debug)]
pub struct RunningProcesses {
    /// Reads at an address into a buffer, and returns the number of bytes that were read.
    ///
    /// Only what does not change may be read this way, such as code: unlike a stack, it is still what it was when the
    /// sample was taken.
    pub read: fn(u32, u64, &mut [u8]) -> usize,
    /// True if all code that the process generates keeps frame pointers, by the settings of its runtime.
    pub keeps_frame_pointers: fn(u32) -> bool,
    /// Returns the path of the process's cgroup, if the process exists.
    pub cgroup: fn(u32) -> Option<Vec<u8>>,
    /// Returns the addresses of the mappings of the process that are named as those of a process context (OTEP 4719).
    pub process_contexts: fn(u32) -> Vec<u64>,
}

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
        self.running().map_or(0, |running| (running.read)(self.pid, address, code))
    }

    /// True if all code that the process generates keeps frame pointers, by the settings of its runtime.
    pub(super) fn keeps_frame_pointers(&self) -> bool {
        self.running().is_some_and(|running| (running.keeps_frame_pointers)(self.pid))
    }

    /// Returns what reads from the process. What a process has run after the sample tells nothing about the sample.
    fn running(&self) -> Option<RunningProcesses> {
        self.running.filter(|_| !self.processes.has_execed_since(self.pid, self.time))
    }
}
