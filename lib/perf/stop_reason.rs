//! Why walking a stack stopped.

/// The reason why walking a stack stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The root was reached.
    Root,
    /// The copy of the stack ended, and the rest could not be read.
    DumpTooSmall,
    /// The rest of the stack was read from the live thread, but it had changed since the sample.
    StaleTail,
    /// The thread had no user stack: within execve a program has left its old stack and not started on the new one.
    NoStack,
    /// The code has neither unwind information nor frame pointers.
    NoUnwindInformation,
    /// The stack is deeper than the limit.
    TooDeep,
}
