//! Compiled script functions that run in the frame of the interpreter's loop. PHP jumps to them, and they jump back.

use super::super::Unwinder;
use super::super::arch::Architecture as _;
use super::super::native::Native;
use super::super::snapshot::ProcessSnapshot;
use super::super::stack::Stack;
use super::return_address::{is_return_address, return_address};
use super::{Caller, Regs};
use crate::perf::event::Address;
use crate::perf::objects::object::{JitMemory, Object};
use crate::perf::runtimes::find_frame_of_compiled;
use crate::perf::runtimes::loop_frame::{LoopFrame, PUSHED_SIZES};

impl Unwinder {
    /// Returns the caller of the loop in whose frame generated code runs. `None` if the code is not of that kind.
    pub(super) fn find_caller_of_loop(
        &mut self,
        snapshot: ProcessSnapshot<'_>,
        address: Address,
        regs: &Regs,
        stack: &mut Stack<'_>,
    ) -> Option<Caller> {
        if !matches!(find_object(snapshot, address)?, Object::Jit { memory: JitMemory::Shared, .. }) {
            return None;
        }
        let LoopFrame { size, saved_bp } = self.find_loop_frame(snapshot)?;
        let end = Native::stack_pointer(regs).checked_add(size.into())?;
        PUSHED_SIZES.into_iter().find_map(|pushed| {
            let cfa = end.checked_add(pushed)?;
            let place = cfa.checked_sub(8)?;
            let word = stack.read(place)?;
            let is_in_file = matches!(find_object(snapshot, return_address(word))?, Object::Elf(_));
            let frame_pointer = match saved_bp {
                0 => Native::get(regs, Native::FP),
                words => stack.read(cfa.wrapping_add_signed(8 * i64::from(words))),
            };
            (is_in_file && is_return_address(snapshot, word)).then_some(Caller { place, popped: None, frame_pointer })
        })
    }

    /// Returns the frame of the loop of the interpreter that a process runs.
    fn find_loop_frame(&mut self, snapshot: ProcessSnapshot<'_>) -> Option<LoopFrame> {
        let known = &mut self.bare_code.loop_frames;
        snapshot.processes.mappings(snapshot.pid).find_map(|mapping| {
            *known.entry(mapping.object).or_insert_with(|| match snapshot.objects.get(mapping.object) {
                Object::Elf(elf) => find_frame_of_compiled(elf),
                _ => None,
            })
        })
    }
}

/// Returns the object that is mapped at an address.
fn find_object(snapshot: ProcessSnapshot<'_>, address: Address) -> Option<&Object> {
    Some(snapshot.objects.get(snapshot.find_mapping(address)?.object))
}
