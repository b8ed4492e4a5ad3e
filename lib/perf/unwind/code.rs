//! The code that runs at an address of a process, at a time.

use super::SpecialFrames;
use super::stack::Stack;
use crate::perf::event::Address;
use crate::perf::objects::object::{Elf, Object, ObjectId};
use crate::perf::objects::registry::Objects;
use crate::perf::process::{Mapping, Processes};

/// A process at a time, and all that is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The time.
    pub time: u64,
    /// What is mapped where.
    pub processes: &'a Processes,
    /// And what that is.
    pub objects: &'a Objects,
}

impl Moment<'_> {
    pub(super) fn find(&self, address: Address) -> Option<Mapping> {
        self.processes.find(self.pid, address.lookup(), self.time)
    }

    /// How to unwind the code at an address, if it was made at run time and whoever made it told.
    pub(super) fn own_unwinding(&self, address: u64) -> Option<&SpecialFrames> {
        self.objects.jit_code.dump(self.pid)?.find(address, self.time)?.unwinding()
    }

    /// Reads the code before an address, from its file or from the process. `None` if that cannot be done.
    pub(super) fn read_before(
        &self,
        mapping: Mapping,
        address: u64,
        into: &mut [u8],
        stack: &mut Stack<'_>,
    ) -> Option<()> {
        let start = address.checked_sub(into.len() as u64)?;
        match self.objects.get(mapping.object) {
            Object::Elf(elf) => {
                let offset = usize::try_from(start.checked_sub(mapping.start)?.wrapping_add(mapping.offset)).ok()?;
                into.copy_from_slice(elf.bytes().get(offset..)?.get(..into.len())?);
                Some(())
            }
            _ => stack.read_process(start, into),
        }
    }
}

/// Some code of an object.
pub(super) struct Code<'a> {
    /// Which.
    pub(super) object: ObjectId,
    /// What is known of it.
    pub(super) elf: &'a Elf,
    /// Its address, as the object counts.
    pub(super) svma: u64,
}

impl<'a> Code<'a> {
    pub(super) fn at(mapping: Mapping, address: u64, objects: &'a Objects) -> Option<Self> {
        let Object::Elf(elf) = objects.get(mapping.object) else { return None };
        let svma = elf.address_of((address - mapping.start).wrapping_add(mapping.offset))?;
        Some(Self { object: mapping.object, elf, svma })
    }

    /// Whether it is the first function of a program or of the dynamic linker: nobody called it, and not all of them
    /// say so in their unwind information.
    pub(super) fn is_entry_point(&self) -> bool {
        let entry = self.elf.entry();
        entry != 0 && self.svma.checked_sub(entry).is_some_and(|behind| behind < 64)
    }
}
