//! The frames of a stack that is being walked.

use crate::perf::event::Address;
use crate::perf::mappings::Mapping;

/// A frame of a stack.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The address of the code that runs, or to which a callee returns.
    pub address: Address,
    /// The mapping at that address.
    pub mapping: Option<Mapping>,
    /// The stack pointer in this frame: the end of the stack of its callee.
    pub stack_pointer: u64,
}
