//! What a perf record says: the kernel's binary records, taken apart without copying.
//!
//! The layout is that of `perf_event_open(2)`, section "MMAP layout". A record that is shorter than it claims to be is
//! no event; nothing in one is trusted.

mod branches;
mod fields;
mod parse;

pub use branches::Branches;
pub use fields::Fields;
pub use parse::parse;

/// The bits of `attr.sample_type` that are understood here.
pub mod sample_type {
    #![allow(missing_docs)]
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// The bits of `attr.branch_sample_type` that are understood here.
pub mod branch_type {
    #![allow(missing_docs)]
    pub const USER: u64 = 1 << 0;
    pub const CALL_STACK: u64 = 1 << 11;
    pub const NO_FLAGS: u64 = 1 << 14;
    pub const NO_CYCLES: u64 = 1 << 15;
    pub const HW_INDEX: u64 = 1 << 17;
    pub const COUNTERS: u64 = 1 << 19;
}

/// How the records of an event are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `attr.sample_type`.
    pub sample_type: u64,
    /// `attr.sample_regs_user`: a bit for each register that a sample brings.
    pub user_registers: u64,
    /// `attr.read_format`: what stands beside each value of a counter.
    pub read_format: u64,
    /// `attr.branch_sample_type`: what stands beside each branch taken.
    pub branches: u64,
    /// `attr.sample_id_all`: whether records that are no samples end with a stamp.
    pub stamps_all: bool,
}

impl Layout {
    /// Of samples of this type, stamps on all records, nothing else.
    pub const fn new(sample_type: u64, user_registers: u64) -> Self {
        Self { sample_type, user_registers, read_format: 0, branches: 0, stamps_all: true }
    }
}

/// When, where and for whom a record was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Nanoseconds of the recording's clock.
    pub time: u64,
    /// The counter's id.
    pub id: u64,
    /// The CPU.
    pub cpu: u32,
}

/// A mapping of a file, or of anonymous memory, into a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// The process.
    pub pid: u32,
    /// The first address.
    pub start: u64,
    /// The length in bytes.
    pub length: u64,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// The file's inode number, if the record has one.
    pub inode: Option<u64>,
    /// The file's build-id, if the record has that instead.
    pub build_id: Option<&'a [u8]>,
    /// Whether code may run in it.
    pub executable: bool,
    /// The path as the process sees it, or a name such as `[vdso]` or `//anon`.
    pub path: &'a [u8],
}

/// What a record says.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A sample.
    Sample(Sample<'a>),
    /// A new mapping.
    Mmap(Mmap<'a>),
    /// A thread's new name.
    Comm {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// Whether the name comes from running a new program.
        exec: bool,
        /// The name.
        comm: &'a [u8],
    },
    /// A new thread or process.
    Fork {
        /// The new thread's process.
        pid: u32,
        /// The new thread.
        tid: u32,
        /// The process of the thread that made it.
        parent_pid: u32,
        /// The thread that made it.
        parent_tid: u32,
    },
    /// The end of a thread.
    Exit {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// A thread leaves its CPU, or comes onto one.
    Switch {
        /// Whether it leaves.
        out: bool,
        /// Though it could go on.
        preempted: bool,
    },
    /// Records that did not fit into the ring.
    Lost(u64),
    /// The kernel held sampling back, or let it go on.
    Throttle,
    /// Anything else.
    Other,
}

/// One observation.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Which of a recording's events it is of: 0, unless who reads the records knows better.
    pub event: u32,
    /// Where the CPU was.
    pub ip: u64,
    /// The event's own count since the last sample.
    pub period: u64,
    /// Whether it was in the kernel.
    pub in_kernel: bool,
    /// What a tracepoint wrote, if that was asked for.
    pub raw: &'a [u8],
    /// The addresses, innermost first, with context markers between kernel and user part.
    pub callchain: Callchain<'a>,
    /// The calls that have not returned, where the CPU keeps them and that was asked for.
    pub branches: Branches<'a>,
    /// The program's registers and a copy of its stack, where they are to be unwound.
    pub user: Option<UserState<'a>>,
}

impl<'a> Sample<'a> {
    /// The addresses on its stack that need no unwinding, innermost first: those that the kernel found, but of the program
    /// those that the CPU kept, if it did.
    pub fn addresses(&self) -> impl Iterator<Item = Address> + 'a {
        let keeps_user = self.branches.is_empty();
        let of_user = (!self.in_kernel).then_some(self.ip);
        let by_kernel = self.callchain.addresses().filter(move |address| address.in_kernel || keeps_user);
        by_kernel.chain(self.branches.stack(of_user))
    }
}

/// A program's state when a sample was taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct UserState<'a> {
    /// A bit for each register that is there, as in [`Layout::user_registers`].
    pub mask: u64,
    /// Eight bytes a register, in the order of those bits. None for the 32-bit programs of a 64-bit machine, whose
    /// registers are others.
    pub registers: &'a [u8],
    /// The stack from the stack pointer on.
    pub stack: &'a [u8],
}

/// A callchain as the kernel wrote it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Callchain<'a>(&'a [u8]);

/// An entry of a callchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub value: u64,
    /// Whether it lies in the kernel.
    pub in_kernel: bool,
    /// Whether it is an instruction pointer; else it is a return address, and the call stands before it.
    pub exact: bool,
}

impl Address {
    /// The address by which to look the function up.
    pub const fn lookup(self) -> u64 {
        if self.exact { self.value } else { self.value.wrapping_sub(1) }
    }
}

/// Addresses from here up mark a change of context (`enum perf_callchain_context`).
const CONTEXT_MAX: u64 = -4095i64 as u64;
const CONTEXT_KERNEL: u64 = -128i64 as u64;
const CONTEXT_USER: u64 = -512i64 as u64;

impl<'a> Callchain<'a> {
    /// A callchain as the kernel would have written it, of addresses that came another way, into bytes.
    pub fn write(kernel: &[u64], user: &[u64], bytes: &'a mut Vec<u8>) -> Self {
        bytes.clear();
        for (context, addresses) in [(CONTEXT_KERNEL, kernel), (CONTEXT_USER, user)] {
            bytes.extend_from_slice(&context.to_le_bytes());
            addresses.iter().for_each(|address| bytes.extend_from_slice(&address.to_le_bytes()));
        }
        Self(bytes)
    }

    /// The addresses, innermost first. Contexts other than kernel and user (guests, hypervisors) are passed over.
    pub fn addresses(self) -> impl Iterator<Item = Address> + 'a {
        let mut context = None;
        let mut exact = true;
        self.0.chunks_exact(8).filter_map(move |bytes| {
            let value = u64::from_le_bytes(bytes.try_into().ok()?);
            if value >= CONTEXT_MAX {
                context = match value {
                    CONTEXT_KERNEL => Some(true),
                    CONTEXT_USER => Some(false),
                    _ => None,
                };
                exact = true;
                return None;
            }
            let address = Address { value, in_kernel: context?, exact };
            exact = false;
            Some(address)
        })
    }
}
