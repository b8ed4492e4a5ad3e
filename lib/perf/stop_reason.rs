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
    /// A page of the stack was not in memory.
    NotResident,
    /// The code of a frame was mapped or unmapped around the time of the sample.
    StaleMapping,
    /// The thread had no user stack: within execve a program has left its old stack and not started on the new one.
    NoStack,
    /// The code has neither unwind information nor frame pointers.
    NoUnwindInformation,
    /// The stack is deeper than the limit.
    TooDeep,
}
