//! Parses the kernel's perf records without copying.
//!
//! The format is that of `perf_event_open(2)`, section "MMAP layout". No record is trusted: one that is shorter than
//! its fields does not parse.

mod branches;
mod callchain;
mod fields;
mod layout;
mod parse;
mod stack_record;

pub use branches::Branches;
pub use callchain::{Address, Callchain};
pub use fields::Fields;
pub use layout::{Layout, branch_type, record_type, sample_type};
pub use parse::{parse, parse_counter_id};
pub use stack_record::{SentContext, StackRecord, StackRecordPart};

use super::runtimes::merge::ScriptStack;

/// The time, the thread, the CPU and the counter of a record (`struct sample_id`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The process ID.
    pub pid: u32,
    /// The thread ID.
    pub tid: u32,
    /// The time in nanoseconds of the recording's clock.
    pub time: u64,
    /// The ID of the counter.
    pub id: u64,
    /// The CPU number.
    pub cpu: u32,
}

/// A mapping of a file or of anonymous memory into a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// The process ID.
    pub pid: u32,
    /// The first address.
    pub start: u64,
    /// The length in bytes.
    pub length: u64,
    /// The offset of the mapping in the file, in bytes.
    pub offset: u64,
    /// The inode of the file, if the record has one.
    pub inode: Option<Inode>,
    /// The build ID of the file, if the record has one instead of the inode.
    pub build_id: Option<&'a [u8]>,
    /// True if the mapping is executable.
    pub executable: bool,
    /// True if the mapping is writable.
    pub writable: bool,
    /// The path as the process sees it, or a name such as `[vdso]` or `//anon`.
    pub path: &'a [u8],
}

/// A file as the kernel knows it, whatever its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inode {
    /// The device, with the major number in the upper half.
    pub device: u64,
    /// The number of the inode.
    pub number: u64,
    /// Tells a file from an earlier one with the same number, which was removed. 0 if that is not known.
    pub generation: u64,
}

impl Inode {
    /// True if no other file has the same inode, not even after this one was removed.
    pub fn is_unique(self) -> bool {
        self.generation != 0
    }
}

/// The content of a record.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A sample of an event.
    Sample(Sample<'a>),
    /// A new mapping.
    Mmap(Mmap<'a>),
    /// A new name of a thread.
    Comm {
        /// The process ID.
        pid: u32,
        /// The thread ID.
        tid: u32,
        /// True if the thread got the name by execve.
        exec: bool,
        /// The new name.
        comm: &'a [u8],
    },
    /// A new thread or process.
    Fork {
        /// The process ID of the new thread.
        pid: u32,
        /// The thread ID of the new thread.
        tid: u32,
        /// The process ID of the thread that created it.
        parent_pid: u32,
        /// The thread ID of the thread that created it.
        parent_tid: u32,
    },
    /// The end of a thread.
    Exit {
        /// The process ID.
        pid: u32,
        /// The thread ID.
        tid: u32,
    },
    /// A context switch.
    Switch {
        /// True if the thread leaves its CPU, false if it gets one.
        out: bool,
        /// True if the thread leaves its CPU although it could run on.
        preempted: bool,
    },
    /// Number of records that did not fit into the ring.
    Lost(u64),
    /// The kernel throttled sampling.
    Throttle,
    /// A record of another type.
    Other,
}

/// A sample of an event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// The index of the sample's event in the recording. [`parse`] sets it to 0.
    pub event: u32,
    /// The instruction pointer.
    pub ip: u64,
    /// The number by which the event's counter has advanced since the previous sample.
    pub period: u64,
    /// True if the instruction pointer is in the kernel.
    pub in_kernel: bool,
    /// The fields of a tracepoint; empty if they were not requested.
    pub raw: &'a [u8],
    /// The callchain that the kernel wrote.
    pub callchain: Callchain<'a>,
    /// The calls that have not returned, from the branch records of the CPU; empty if they were not requested.
    pub branches: Branches<'a>,
    /// The user registers and a copy of the user stack, if they were requested and the thread has them.
    pub user: Option<UserState<'a>>,
}

impl<'a> Sample<'a> {
    /// Iterates over the addresses that need no unwinding, innermost first.
    ///
    /// They are those of the callchain. If there are branch records, these replace the user part.
    pub fn addresses(&self) -> impl Iterator<Item = Address> + 'a {
        let has_no_branches = self.branches.is_empty();
        let user_ip = (!self.in_kernel).then_some(self.ip);
        let callchain = self.callchain.addresses().filter(move |address| address.in_kernel || has_no_branches);
        callchain.chain(self.branches.stack(user_ip))
    }
}

/// The user registers and a copy of the user stack when a sample was taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct UserState<'a> {
    /// A bit for each register that is present, as in [`Layout::user_registers`].
    pub mask: u64,
    /// 8 bytes per register, in the order of the bits.
    ///
    /// Empty for 32-bit programs on a 64-bit machine, which have other registers.
    pub registers: &'a [u8],
    /// A copy of the stack from the stack pointer up; `None` if samples have none.
    pub stack: Option<&'a [u8]>,
    /// True if the kernel copied less of the stack than was asked for: it stops at the first page that is not in memory.
    pub is_copy_short: bool,
    /// The stack as the BPF program took it, if it did.
    pub record: Option<StackRecord<'a>>,
    /// The script frames, if they were read from the memory of a thread that sleeps.
    pub scripts: Option<ScriptStack<'a>>,
}
