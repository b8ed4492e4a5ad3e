//! The layout of the records of an event.

/// The types of records that are parsed (`enum perf_event_type`).
pub mod record_type {
    #![allow(missing_docs)]
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
}

/// The bits of `perf_event_attr::sample_type` that are parsed.
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

/// The bits of `perf_event_attr::branch_sample_type` that are parsed.
pub mod branch_type {
    #![allow(missing_docs)]
    pub const USER: u64 = 1 << 0;
    pub const CALL_STACK: u64 = 1 << 11;
    pub const NO_FLAGS: u64 = 1 << 14;
    pub const NO_CYCLES: u64 = 1 << 15;
    pub const HW_INDEX: u64 = 1 << 17;
    pub const COUNTERS: u64 = 1 << 19;
}

/// The layout of the records of an event: the fields of its `perf_event_attr` that determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `sample_type`: the fields of samples.
    pub sample_type: u64,
    /// `sample_regs_user`: a bit for each user register in a sample.
    pub user_registers: u64,
    /// `read_format`: the fields of each value of a counter.
    pub read_format: u64,
    /// `branch_sample_type`: the fields of each branch record.
    pub branch_sample_type: u64,
    /// `sample_id_all`: true if records other than samples end with a [`Stamp`](super::Stamp).
    pub sample_id_all: bool,
}

impl Layout {
    /// True if samples have the field of a bit of `sample_type`.
    pub(super) fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// Creates a layout with `sample_id_all` and no other options.
    pub const fn new(sample_type: u64, user_registers: u64) -> Self {
        Self { sample_type, user_registers, read_format: 0, branch_sample_type: 0, sample_id_all: true }
    }
}
