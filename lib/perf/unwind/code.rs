//! The code of an ELF file that runs at an address of a process.

use super::snapshot::ProcessSnapshot;
use super::stack::Stack;
use crate::perf::objects::object::{Elf, Object, ObjectId};
use crate::perf::objects::registry::Objects;
use crate::perf::process::Mapping;

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
const ENTRY_FUNCTION_SIZE: u64 = 64;

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

/// Reads the code before an address of a mapping into `code`, from its file or from the live process.
///
/// `None` if it cannot be read.
pub(super) fn read_code_before(
    snapshot: ProcessSnapshot<'_>,
    mapping: Mapping,
    address: u64,
    code: &mut [u8],
    stack: &mut Stack<'_>,
) -> Option<()> {
    let start = address.checked_sub(code.len() as u64)?;
    match snapshot.objects.get(mapping.object) {
        Object::Elf(elf) => {
            let offset = usize::try_from(start.checked_sub(mapping.start)?.wrapping_add(mapping.offset)).ok()?;
            code.copy_from_slice(elf.bytes().get(offset..)?.get(..code.len())?);
            Some(())
        }
        _ => stack.read_process(start, code),
    }
}
