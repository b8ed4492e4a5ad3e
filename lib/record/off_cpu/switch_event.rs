//! What happens to threads, and the time that is charged for it.

use super::totals::Amount;
use super::waker_chains::{WakerChain, Waking};
use crate::perf::thread_state::ThreadState;

/// An event of a thread that matters for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchEvent {
    /// Nanoseconds of the recording's clock.
    pub time: u64,
    /// The thread that the event happened to.
    pub tid: u32,
    /// The kind of event.
    pub kind: SwitchEventKind,
}

/// The kinds of [`SwitchEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchEventKind {
    /// The thread already ran or slept when the recording began.
    Existing,
    /// The thread sleeps since it exists for the recording, with this stack, if that is known.
    Asleep(Option<u32>),
    /// The thread was created, and waits for a CPU.
    Created,
    /// The thread began to run a new program.
    Exec,
    /// The thread was sampled while it ran, with this stack.
    RunSample(u32),
    /// The thread was sampled when it was about to leave its CPU.
    SwitchSample(SwitchStack),
    /// The thread, which is off its CPU, has left it at about this time with this stack.
    BlockStack {
        /// The time at which it left its CPU.
        since: u64,
        /// The ID of the stack.
        stack: u32,
    },
    /// The thread left its CPU.
    Out {
        /// True if it could have run on.
        preempted: bool,
        /// True if a block that begins here is to be recorded.
        selected: bool,
    },
    /// The thread was woken.
    Woken(Waking),
    /// The thread was woken because its process ends.
    Killed,
    /// The thread came onto a CPU.
    In,
    /// The thread exited.
    Exited,
}

/// A stack that was sampled at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchStack {
    /// The ID of the stack.
    pub stack: u32,
    /// True if it was taken by the counter that samples every switch.
    pub from_every_switch: bool,
}

/// An amount of time to charge to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The thread that spent the time.
    pub tid: u32,
    /// The time of the charge. The thread is charged by the name that it has then.
    pub time: u64,
    /// The stack; `None` if it is not known.
    pub stack: Option<u32>,
    /// Those that ended the block.
    pub wakers: WakerChain,
    /// The state of the thread.
    pub state: ThreadState,
    /// The number of blocks or samples, and their duration.
    pub amount: Amount,
    /// The time at which it began, if it was without interruption.
    pub start: Option<u64>,
}

/// The time that is to be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSelection {
    /// True if time on CPUs is charged too, so that the charges of a thread add up to its lifetime.
    pub wall: bool,
    /// True if only time on CPUs is charged, shared among the threads that run at the same moment.
    pub latency: bool,
    /// Blocks shorter than this many nanoseconds are left out.
    pub min_block: u64,
    /// Blocks longer than this many nanoseconds are left out.
    pub max_block: u64,
    /// The largest number of wakers of a block, if wakers are recorded.
    pub waker_depth: Option<usize>,
    /// True if only the switches and samples of threads are those of the target: the other records are of all threads.
    pub by_switches: bool,
}
