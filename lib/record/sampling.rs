//! What is counted, how often, and how stacks are found.

use std::str::FromStr;

use super::events::Metric;
use crate::perf::event::{Layout, sample_type};
use crate::perf::unwind;

/// How stacks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// By frame pointers, in the kernel.
    FramePointers,
    /// By unwind information, from a copy of so many bytes of the stack.
    Dwarf(u32),
}

impl CallGraph {
    /// The sizes of the ring of samples: the best and the smallest.
    pub(super) fn ring_sizes(self) -> (u8, u8) {
        match self {
            Self::FramePointers => (SAMPLE_RING, SMALLEST_RING),
            Self::Dwarf(bytes) => (STACK_RING, SMALLEST_RING.max((2 * bytes / 4096).next_power_of_two().ilog2() as u8)),
        }
    }

    /// The layout of the records.
    pub(super) fn layout(self) -> Layout {
        use sample_type as bit;
        let common = bit::IP | bit::TID | bit::TIME | bit::ID | bit::CPU | bit::PERIOD | bit::CALLCHAIN;
        match self {
            Self::FramePointers => Layout::new(common, 0),
            Self::Dwarf(_) => Layout::new(common | bit::REGS_USER | bit::STACK_USER, unwind::REGISTERS),
        }
    }
}

impl FromStr for CallGraph {
    type Err = String;

    /// Reads `fp`, `dwarf` or `dwarf,BYTES`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (how, bytes) = text.split_once(',').unwrap_or((text, "16384"));
        match how {
            "fp" => Ok(Self::FramePointers),
            "dwarf" => match bytes.parse() {
                Ok(bytes @ 8..=LARGEST_COPY) if bytes % 8 == 0 => Ok(Self::Dwarf(bytes)),
                _ => Err(format!("dwarf,BYTES takes a multiple of 8 up to {LARGEST_COPY}, such as dwarf,16384")),
            },
            _ => Err("dwarf, dwarf,BYTES or fp".to_owned()),
        }
    }
}

/// The kernel copies no more of a stack.
pub(super) const LARGEST_COPY: u32 = 65528;

/// Rings hold 2 to this many pages: 512 KiB of samples, or 8 MiB where they bring their stacks; 256 KiB of the rest.
const SAMPLE_RING: u8 = 7;
const STACK_RING: u8 = 11;
pub(super) const SIDE_RING: u8 = 6;
/// And where the kernel refuses that much, down to this: below, or where fewer than two stacks fit, they are of no use.
pub(super) const SMALLEST_RING: u8 = 2;

/// What is counted, and how often a sample is taken.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// The event.
    pub metric: Metric,
    /// Samples a second.
    pub frequency: u64,
    /// How stacks are found.
    pub call_graph: CallGraph,
}

impl Sampling {
    /// After how many bytes samples wake the recorder: half a ring, but where stacks are unwound while their threads run
    /// on, so soon that the rest of a stack can still be read.
    pub(super) fn wake_after(&self) -> Option<u32> {
        match self.call_graph {
            CallGraph::FramePointers => None,
            CallGraph::Dwarf(bytes) => Some(bytes),
        }
    }
}
