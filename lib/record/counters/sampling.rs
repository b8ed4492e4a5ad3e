//! What is counted, how often, and how stacks are found.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::Error;
use crate::perf::event::{Layout, branch_type, sample_type};
use crate::perf::unwind;
use crate::record::events::spec::EventSpec;
use crate::record::events::value::SampleValue;
use crate::record::target::Target;

/// How stacks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// By frame pointers, in the kernel.
    FramePointers,
    /// By the calls that have not returned, which some CPUs keep.
    BranchRecords,
    /// By unwind information, from a copy of so many bytes of the stack.
    Dwarf(u32),
}

impl CallGraph {
    /// The layout of the records, but for what other options add.
    fn layout(self) -> Layout {
        use sample_type as bit;
        let common = bit::TID | bit::TIME | bit::CALLCHAIN;
        match self {
            Self::FramePointers => Layout::new(common, 0),
            Self::BranchRecords => {
                let kind = branch_type::USER | branch_type::CALL_STACK | branch_type::NO_FLAGS | branch_type::NO_CYCLES;
                Layout { branch_sample_type: kind, ..Layout::new(common | bit::BRANCH_STACK, 0) }
            }
            Self::Dwarf(_) => Layout::new(common | bit::REGS_USER | bit::STACK_USER, unwind::REGISTERS),
        }
    }
}

impl FromStr for CallGraph {
    type Err = String;

    /// Reads `fp`, `lbr`, `dwarf` or `dwarf,BYTES`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (how, bytes) = text.split_once(',').unwrap_or((text, "16384"));
        match how {
            "fp" => Ok(Self::FramePointers),
            "lbr" => Ok(Self::BranchRecords),
            // In words of eight bytes, as the kernel copies them.
            "dwarf" => match bytes.parse().map(|bytes: u32| bytes.next_multiple_of(8)) {
                Ok(bytes @ 8..=LARGEST_COPY) => Ok(Self::Dwarf(bytes)),
                _ => Err(format!("dwarf,BYTES takes up to {LARGEST_COPY} bytes, such as dwarf,16384")),
            },
            _ => Err("dwarf, dwarf,BYTES, fp or lbr".to_owned()),
        }
    }
}

/// The kernel copies no more of a stack.
pub(in crate::record) const LARGEST_COPY: u32 = 65528;

/// Rings hold 2 to this many pages: 512 KiB of samples, or 2 to 8 MiB where they bring their stacks; 512 KiB of the rest.
const SAMPLE_RING: u8 = 7;
const STACK_RINGS: RangeInclusive<u8> = 9..=11;
const SIDE_RING: u8 = 7;
/// 1 MiB of switches: 10,000 of them.
const SWITCH_RING: u8 = 8;
/// And where the kernel refuses that much, down to this: below, or where fewer than two stacks fit, they are of no use.
const SMALLEST_RING: u8 = 2;

/// Reads the size of a ring as perf does, in pages or in bytes: as a power of two of pages.
///
/// # Errors
/// What would be right.
pub fn parse_ring(text: &str) -> Result<u8, String> {
    let (number, unit) = text.split_at(text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len()));
    let page = rustix::param::page_size() as u64;
    let unit = match unit {
        "" => Some(page),
        "B" => Some(1),
        "K" | "k" => Some(1 << 10),
        "M" | "m" => Some(1 << 20),
        "G" | "g" => Some(1 << 30),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    let pages = bytes.filter(|bytes| (1..=LARGEST_RING).contains(bytes)).map(|bytes| bytes.div_ceil(page));
    pages
        .map(|pages| pages.next_power_of_two().ilog2() as u8)
        .ok_or_else(|| "pages such as 128, or bytes such as 512K, up to 1G".to_owned())
}

/// No ring is larger, in bytes.
const LARGEST_RING: u64 = 1 << 30;

/// What comes in so long must fit in the ring, where that is known: so late a recorder may be that has to share its CPU.
/// But a ring that is larger than the caches slows down who writes into it.
const LATE: Duration = Duration::from_millis(100);
/// How long samples may wait of which the stacks are read while their threads run on.
const PAUSE: Duration = Duration::from_millis(20);

/// How often a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// So many a second.
    Frequency(u64),
    /// One every so many events.
    Period(u64),
}

impl Rate {
    /// For how many events a sample stands, if that is known beforehand.
    pub(in crate::record) fn period(self) -> Option<u64> {
        if let Self::Period(events) = self { Some(events) } else { None }
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Frequency(hertz) => write!(f, "at {hertz} Hz"),
            Self::Period(1) => write!(f, "every one"),
            Self::Period(events) => write!(f, "every {events}"),
        }
    }
}

/// What is counted, how often a sample is taken, and what it brings.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// The events, each with how often a sample of it is taken.
    pub metrics: Vec<(EventSpec, Rate)>,
    /// How stacks are found.
    pub call_graph: CallGraph,
    /// The size of the ring of samples, as a power of two of pages, where one was asked for.
    pub ring: Option<u8>,
    /// How many addresses the kernel writes of a stack at most; `None` for its own limit.
    pub max_stack: Option<u16>,
    /// The CPUs on which is counted; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// Whether all switches are to be told of too.
    pub switches: bool,
    /// Whether what a copy of the stack misses is read from the living thread.
    pub live_tail: bool,
}

impl Sampling {
    /// Samples of one event, and all else as it is best.
    pub fn of(metric: EventSpec, rate: Rate, call_graph: CallGraph) -> Self {
        let (ring, max_stack, cpus) = (None, None, None);
        Self { metrics: vec![(metric, rate)], call_graph, ring, max_stack, cpus, switches: false, live_tail: true }
    }

    /// The sizes of the ring of samples, as powers of two of pages: the best and the smallest.
    pub(in crate::record) fn ring_sizes(&self) -> (u8, u8) {
        match (self.ring, self.call_graph) {
            (Some(asked), _) => (asked, asked),
            (None, CallGraph::FramePointers | CallGraph::BranchRecords) => (SAMPLE_RING, SMALLEST_RING),
            (None, CallGraph::Dwarf(bytes)) => {
                let pages = |bytes: u64| bytes.div_ceil(4096).next_power_of_two().ilog2() as u8;
                let best = self.bytes_in(LATE).map_or(*STACK_RINGS.end(), pages);
                let best = best.clamp(*STACK_RINGS.start(), *STACK_RINGS.end());
                (best, SMALLEST_RING.max(pages(2 * u64::from(bytes))))
            }
        }
    }

    /// How much samples with stacks bring in so long, if that is known beforehand.
    fn bytes_in(&self, time: Duration) -> Option<u64> {
        let CallGraph::Dwarf(bytes) = self.call_graph else { return None };
        let hertz =
            self.metrics.iter().map(|(_, rate)| if let Rate::Frequency(hertz) = rate { Some(*hertz) } else { None });
        let samples = hertz.sum::<Option<u64>>()?.saturating_mul(time.as_millis() as u64).div_ceil(1000);
        Some(samples.saturating_mul(u64::from(bytes) + 1024))
    }

    /// Whether nothing is left to record where the kernel must not be looked into.
    pub(in crate::record) fn needs_kernel(&self) -> bool {
        self.switches || self.metrics.iter().any(|(metric, _)| metric.excluded.user)
    }

    /// Makes sure that a ring that was asked for can hold a sample.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub(in crate::record) fn must_fit(&self) -> Result<(), Error> {
        match (self.ring, self.call_graph) {
            (Some(ring), CallGraph::Dwarf(bytes)) if (4096 << ring) < 2 * bytes => Err(Error::Usage(format!(
                "-m {}K holds no two stacks of {bytes} bytes: every sample would be lost",
                4 << u32::from(ring)
            ))),
            _ => Ok(()),
        }
    }

    /// The size of the ring of all else, where samples have so much.
    pub(in crate::record) fn side_ring(&self, samples: u8) -> u8 {
        if self.ring.is_some() { SIDE_RING } else { SIDE_RING.min(samples - 1) }
    }

    /// The size of the ring of switches, where samples have so much.
    pub(in crate::record) fn switch_ring(&self, samples: u8) -> u8 {
        SWITCH_RING.min(samples)
    }

    /// The layout of the records, which may have to name their counter.
    pub(in crate::record) fn layout(&self, names_counter: bool) -> Layout {
        let mut layout = self.call_graph.layout();
        if names_counter {
            layout.sample_type |= sample_type::ID;
        }
        if self.tells_address() {
            layout.sample_type |= sample_type::IP;
        }
        if self.tells_period() {
            layout.sample_type |= sample_type::PERIOD;
        }
        if self.brings_fields() {
            layout.sample_type |= sample_type::RAW;
        }
        layout
    }

    /// Whether samples must name their counter: several write into one ring.
    pub(in crate::record) fn names_counters(&self, target: &Target) -> bool {
        target.is_per_thread() || self.metrics.len() > 1
    }

    /// Whether samples bring where they were taken. A switch is always at the same place, and there are many: what their
    /// samples do not need is left out.
    pub(in crate::record) fn tells_address(&self) -> bool {
        !self.switches
    }

    /// Whether samples bring the event's own count. Where they do, the kernel takes a sample of each software event and
    /// tracepoint, whatever period was asked for (`perf_swevent_event` in its `core.c`).
    pub(in crate::record) fn tells_period(&self) -> bool {
        !self.switches && !self.metrics.iter().any(|(_, rate)| matches!(rate, Rate::Period(events) if *events > 1))
    }

    /// Whether samples bring what tracepoints write.
    pub(in crate::record) fn brings_fields(&self) -> bool {
        self.metrics.iter().any(|(metric, _)| matches!(metric.quantity, Some(SampleValue::Field(_))))
    }

    /// How long a sample may wait at most before it is read, in rings of a power of two of pages: until a quarter of one is
    /// full, at the latest; `None` if until half of one is. Where stacks are unwound while their threads run on, it is to
    /// be read so soon that the rest of a stack can still be. A thread that leaves its CPU does not run on, and who would be
    /// woken by each switch would switch itself.
    pub(in crate::record) fn longest_wait(&self, ring: u8) -> Option<Duration> {
        let reads_living = matches!(self.call_graph, CallGraph::Dwarf(_)) && self.live_tail && !self.switches;
        let quarter = (4096 << ring) / 4;
        let fills = |bytes: u64| Duration::from_millis(1000 * quarter / bytes.max(1));
        let a_second = Duration::from_secs(1);
        reads_living.then(|| self.bytes_in(a_second).map_or(Duration::ZERO, |bytes| fills(bytes).min(PAUSE)))
    }
}

#[cfg(test)]
mod tests {
    use super::{CallGraph, Duration, PAUSE, Rate, Sampling, parse_ring};
    use crate::record::events::spec::EventSpec;

    #[test]
    fn samples_wait_only_where_there_is_room_for_more() {
        let wait = |rate, call_graph, ring| Sampling::of(EventSpec::cpu_clock(), rate, call_graph).longest_wait(ring);
        assert_eq!(wait(Rate::Frequency(997), CallGraph::Dwarf(16384), 11), Some(PAUSE));
        assert_eq!(wait(Rate::Frequency(99_999), CallGraph::Dwarf(16384), 11), Some(Duration::from_millis(1)));
        assert_eq!(wait(Rate::Frequency(99_999), CallGraph::Dwarf(16384), 9), Some(Duration::ZERO));
        assert_eq!(wait(Rate::Frequency(997), CallGraph::Dwarf(16384), 7), Some(Duration::from_millis(7)));
        assert_eq!(wait(Rate::Frequency(997), CallGraph::Dwarf(16384), 5), Some(Duration::from_millis(1)));
        assert_eq!(wait(Rate::Frequency(997), CallGraph::Dwarf(16384), 4), Some(Duration::ZERO));
        assert_eq!(wait(Rate::Period(1000), CallGraph::Dwarf(16384), 11), Some(Duration::ZERO));
        assert_eq!(wait(Rate::Frequency(997), CallGraph::FramePointers, 11), None);
    }

    #[test]
    fn rings_hold_what_comes_in_a_tenth_of_a_second() {
        let sizes = |rate, call_graph| Sampling::of(EventSpec::cpu_clock(), rate, call_graph).ring_sizes();
        assert_eq!(sizes(Rate::Frequency(99), CallGraph::FramePointers), (7, 2));
        assert_eq!(sizes(Rate::Frequency(99), CallGraph::Dwarf(16384)), (9, 3));
        assert_eq!(sizes(Rate::Frequency(997), CallGraph::Dwarf(16384)), (9, 3));
        assert_eq!(sizes(Rate::Frequency(1999), CallGraph::Dwarf(16384)), (10, 3));
        assert_eq!(sizes(Rate::Frequency(997), CallGraph::Dwarf(65528)), (11, 5));
        assert_eq!(sizes(Rate::Frequency(99_999), CallGraph::Dwarf(16384)), (11, 3));
        assert_eq!(sizes(Rate::Period(1000), CallGraph::Dwarf(16384)), (11, 3));
    }

    #[test]
    fn rings_are_as_large_as_perfs() {
        for (text, size) in
            [("1", Ok(0)), ("128", Ok(7)), ("100", Ok(7)), ("8M", Ok(11)), ("5000B", Ok(1)), ("1K", Ok(0))]
        {
            assert_eq!(parse_ring(text).map_err(drop), size, "{text}");
        }
        for wrong in ["", "0", "-1", "1T", "2G", "K", "99999999999999999999"] {
            assert!(parse_ring(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_copy_of_the_stack_is_whole_words() {
        assert_eq!("dwarf,10001".parse(), Ok(CallGraph::Dwarf(10008)));
        assert_eq!("dwarf".parse(), Ok(CallGraph::Dwarf(16384)));
        for wrong in ["dwarf,0", "dwarf,65529", "dwarf,", "dwarf,99999999999", "dwarfs", ""] {
            assert!(wrong.parse::<CallGraph>().is_err(), "{wrong}");
        }
    }
}
