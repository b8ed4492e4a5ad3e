//! The frames of a stack that is being walked.

use crate::perf::event::Address;
use crate::perf::process::Mapping;

/// A return address on the stack: where it is, and its value.
pub type Slot = (u64, u64);

/// A frame of a stack.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The address of the code that runs, or to which a callee returns.
    pub address: Address,
    /// The mapping at that address.
    pub mapping: Option<Mapping>,
    /// The stack pointer in this frame: the end of the stack of its callee.
    pub(super) stack_pointer: u64,
}

impl Frame {
    /// Returns what identifies the frame: its address and its stack pointer.
    pub(super) fn key(&self) -> (u64, u64) {
        (self.address.value, self.stack_pointer)
    }

    /// Returns the slot of the frame's return address, if a call put it there.
    pub(super) fn slot(&self) -> Slot {
        (self.stack_pointer.wrapping_sub(8), self.address.value)
    }
}
