//! The ways in which the kernel runs the BPF program for an event.

/// The kinds of BPF programs that take the stacks of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramKind {
    /// The kernel runs it for each sample of a counter.
    Sample,
    /// The same for a clock, which also counts while stacks are taken.
    Clock,
    /// The kernel runs it each time that a tracepoint is reached.
    Tracepoint,
    /// The same for a tracepoint that was made for a probe.
    Probe,
    /// The kernel runs it at each call of a function, once for the counter of each CPU.
    Call,
}

impl ProgramKind {
    /// True if a tracepoint runs the program, for all of its counters.
    pub(in crate::record) fn is_of_tracepoint(self) -> bool {
        matches!(self, Self::Tracepoint | Self::Probe)
    }
}
