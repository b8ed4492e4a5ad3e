//! Why walking a stack stopped.

/// The reason why walking a stack stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The root was reached.
    Root,
    /// The copy of the stack ended.
    DumpTooSmall,
    /// The stack is larger than what the BPF program scans or can send.
    StackTooLarge,
    /// The interrupted function's stack is another one than was copied: the signal is handled on an alternate stack.
    OtherStack,
    /// The native frames further out are those of another greenlet, or of another interpreter of the process.
    OtherGreenlet,
    /// The function was unwinding for an exception, and had written over the registers that it had saved.
    Overwritten,
    /// A page of the stack was not in memory.
    NotResident,
    /// The code of a frame was mapped or unmapped around the time of the sample.
    StaleMapping,
    /// Within execve the thread had no user stack: the old program's was gone, and the new program had not started.
    Execve,
    /// The stack is missing: its record was lost, or the thread's memory was gone because it was exiting.
    Missing,
    /// The program is a 32-bit one, which has other registers.
    Abi32,
    /// The code has neither unwind information nor frame pointers.
    NoUnwindInformation,
    /// The stack is deeper than the limit.
    TooDeep,
}

impl StopReason {
    /// True if frames are missing.
    pub fn is_truncated(self) -> bool {
        !matches!(self, Self::Root | Self::Execve)
    }
}
