//! Sampling settings: the events, their rates, the method of collecting stacks, and the sizes of the rings.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::Error;
use crate::perf::event::{Layout, branch_type, sample_type};
use crate::perf::unwind;
use crate::record::events::spec::EventSpec;
use crate::record::events::value::SampleValue;
use crate::record::target::Target;

/// A method of collecting stacks (`--call-graph`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// The kernel follows frame pointers.
    FramePointers,
    /// The CPU records the calls that have not returned (last branch records); some CPUs can.
    BranchRecords,
    /// A copy of this many bytes of the stack is unwound by DWARF call frame information.
    Dwarf(u32),
}

impl CallGraph {
    /// Returns the layout of the records, without the fields that other options add.
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

    /// Parses `fp`, `lbr`, `dwarf` or `dwarf,BYTES`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (method, bytes) = text.split_once(',').unwrap_or((text, "16384"));
        match method {
            "fp" => Ok(Self::FramePointers),
            "lbr" => Ok(Self::BranchRecords),
            // The kernel copies whole words of eight bytes.
            "dwarf" => match bytes.parse().map(|bytes: u32| bytes.next_multiple_of(8)) {
                Ok(bytes @ 8..=MAX_STACK_COPY) => Ok(Self::Dwarf(bytes)),
                _ => Err(format!("expected at most {MAX_STACK_COPY} bytes, such as dwarf,16384")),
            },
            _ => Err("expected dwarf, dwarf,BYTES, fp or lbr".to_owned()),
        }
    }
}

/// The largest copy of a stack that the kernel makes, in bytes.
pub(in crate::record) const MAX_STACK_COPY: u32 = 65528;

// A ring's size is its order, as the kernel calls it: it has 2^order pages.

/// The default order of a ring of samples: 512 KiB.
const SAMPLE_RING_ORDER: u8 = 7;
/// The default orders of a ring of samples that contain copies of stacks: 2 to 8 MiB.
const STACK_RING_ORDERS: RangeInclusive<u8> = 9..=11;
/// The order of a ring of side-band records: 512 KiB.
const SIDEBAND_RING_ORDER: u8 = 7;
/// The order of a ring of context switches: 1 MiB, about 10,000 of them.
const SWITCH_RING_ORDER: u8 = 8;
/// The smallest order that is tried if the kernel refuses larger rings. Smaller rings are useless, and so are rings
/// that two copies of a stack do not fit in.
const MIN_RING_ORDER: u8 = 2;

/// The largest size of a ring that can be asked for, in bytes.
const MAX_RING_BYTES: u64 = 1 << 30;

/// The rings must hold the samples of this time, if their rate is known: a recorder that shares its CPU may be late by
/// as much. Larger rings do not fit in the caches and slow down the recorded program, which writes into them.
const MAX_READ_DELAY: Duration = Duration::from_millis(100);

/// Parses the size of a ring as perf does, in pages or in bytes, and returns its order.
///
/// # Errors
/// What was expected, in words.
pub fn parse_ring_size(text: &str) -> Result<u8, String> {
    let (number, unit) = text.split_at(text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len()));
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
    let pages = bytes.filter(|bytes| (1..=MAX_RING_BYTES).contains(bytes)).map(|bytes| bytes.div_ceil(page));
    pages
        .map(|pages| pages.next_power_of_two().ilog2() as u8)
        .ok_or_else(|| "expected pages such as 128, or bytes such as 512K, up to 1G".to_owned())
}

/// The rate at which samples of an event are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// This many samples a second.
    Frequency(u64),
    /// One sample every this many events.
    Period(u64),
}

impl Rate {
    /// Returns the number of events that a sample represents, if it is fixed.
    pub(in crate::record) fn period(self) -> Option<u64> {
        if let Self::Period(events) = self { Some(events) } else { None }
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Frequency(hertz) => write!(f, "at {hertz} Hz"),
            Self::Period(1) => write!(f, "at each event"),
            Self::Period(events) => write!(f, "every {events} events"),
        }
    }
}

/// An event and its sample rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledEvent {
    /// The event to sample.
    pub spec: EventSpec,
    /// The rate of its samples.
    pub rate: Rate,
}

/// The settings that counters are opened with.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// The events to sample.
    pub events: Vec<SampledEvent>,
    /// The method of collecting stacks.
    pub call_graph: CallGraph,
    /// The order of a ring of samples; `None` for the default.
    pub ring_order: Option<u8>,
    /// The largest number of addresses that the kernel records of a stack; `None` for its own limit.
    pub max_stack: Option<u16>,
    /// The CPUs to count on; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// True if all context switches are recorded too.
    pub record_switches: bool,
}

impl Sampling {
    /// Creates the default settings for one event.
    pub fn new(spec: EventSpec, rate: Rate, call_graph: CallGraph) -> Self {
        let (ring_order, max_stack, cpus) = (None, None, None);
        let events = vec![SampledEvent { spec, rate }];
        Self { events, call_graph, ring_order, max_stack, cpus, record_switches: false }
    }

    /// Returns the preferred and the smallest order of a ring of samples.
    pub(super) fn ring_orders(&self) -> (u8, u8) {
        match (self.ring_order, self.call_graph) {
            (Some(order), _) => (order, order),
            (None, CallGraph::FramePointers | CallGraph::BranchRecords) => (SAMPLE_RING_ORDER, MIN_RING_ORDER),
            (None, CallGraph::Dwarf(bytes)) => {
                let preferred = self.expected_bytes(MAX_READ_DELAY).map_or(*STACK_RING_ORDERS.end(), order_for);
                let preferred = preferred.clamp(*STACK_RING_ORDERS.start(), *STACK_RING_ORDERS.end());
                (preferred, MIN_RING_ORDER.max(order_for(2 * u64::from(bytes))))
            }
        }
    }

    /// Returns the number of bytes that samples with copies of stacks need in a time; `None` if their rate is not
    /// known.
    fn expected_bytes(&self, time: Duration) -> Option<u64> {
        let CallGraph::Dwarf(bytes) = self.call_graph else { return None };
        let hertz = self.events.iter().map(|event| match event.rate {
            Rate::Frequency(hertz) => Some(hertz),
            Rate::Period(_) => None,
        });
        let samples = hertz.sum::<Option<u64>>()?.saturating_mul(time.as_millis() as u64).div_ceil(1000);
        Some(samples.saturating_mul(u64::from(bytes) + 1024))
    }

    /// True if nothing can be recorded without events of the kernel.
    pub(in crate::record) fn needs_kernel(&self) -> bool {
        self.record_switches || self.events.iter().any(|event| event.spec.excluded.user)
    }

    /// Checks that a ring whose size was given can hold two samples: with fewer, every sample would be lost.
    ///
    /// # Errors
    /// [`Error::Usage`] if it cannot.
    pub(super) fn check_ring_size(&self) -> Result<(), Error> {
        match (self.ring_order, self.call_graph) {
            (Some(order), CallGraph::Dwarf(bytes)) if (4096 << order) < 2 * bytes => Err(Error::Usage(format!(
                "-m {}K is too small: two {bytes}-byte stacks must fit; use -m {}K",
                4 << u32::from(order),
                4 << u32::from(order_for(2 * u64::from(bytes))),
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that the stacks of this machine can be unwound, if they are copied.
    ///
    /// # Errors
    /// [`Error::Usage`] if they cannot.
    pub(super) fn check_call_graph(&self) -> Result<(), Error> {
        match self.call_graph {
            CallGraph::Dwarf(_) => unwind::native::check_architecture(std::env::consts::ARCH).map_err(Error::Usage),
            CallGraph::FramePointers | CallGraph::BranchRecords => Ok(()),
        }
    }

    /// Returns the order of a ring of side-band records, given that of samples.
    pub(super) fn sideband_ring_order(&self, sample_order: u8) -> u8 {
        if self.ring_order.is_some() { SIDEBAND_RING_ORDER } else { SIDEBAND_RING_ORDER.min(sample_order - 1) }
    }

    /// Returns the order of a ring of context switches, given that of samples.
    pub(super) fn switch_ring_order(&self, sample_order: u8) -> u8 {
        SWITCH_RING_ORDER.min(sample_order)
    }

    /// Returns the layout of the records.
    pub(super) fn record_layout(&self, records_counter_id: bool) -> Layout {
        let mut layout = self.call_graph.layout();
        if records_counter_id {
            layout.sample_type |= sample_type::ID;
        }
        if self.records_address() {
            layout.sample_type |= sample_type::IP;
        }
        if self.records_period() {
            layout.sample_type |= sample_type::PERIOD;
        }
        if self.records_raw() {
            layout.sample_type |= sample_type::RAW;
        }
        layout
    }

    /// True if samples contain the ID of their counter, because several counters write into one ring.
    pub(super) fn records_counter_id(&self, target: &Target) -> bool {
        target.is_per_thread() || self.events.len() > 1
    }

    /// True if samples contain the address at which they were taken. Switches omit it: it is always the same, and there
    /// are many of them.
    pub(super) fn records_address(&self) -> bool {
        !self.record_switches
    }

    /// True if samples contain their period. Where they do, the kernel takes a sample of each software event and
    /// tracepoint, whatever period was asked for (`perf_swevent_event` in its `core.c`).
    pub(super) fn records_period(&self) -> bool {
        !self.record_switches
            && !self.events.iter().any(|event| matches!(event.rate, Rate::Period(events) if events > 1))
    }

    /// True if samples contain the raw data of tracepoints, because a field is summed up.
    pub(super) fn records_raw(&self) -> bool {
        self.events.iter().any(|event| matches!(event.spec.value, Some(SampleValue::Field(_))))
    }
}

/// Returns the order of the smallest ring that holds this many bytes.
fn order_for(bytes: u64) -> u8 {
    bytes.div_ceil(4096).next_power_of_two().ilog2() as u8
}

#[cfg(test)]
mod tests {
    use super::{CallGraph, EventSpec, Rate, Sampling, parse_ring_size};

    #[test]
    fn rings_hold_the_samples_of_a_tenth_of_a_second() {
        let orders = |rate, call_graph| Sampling::new(EventSpec::cpu_clock(), rate, call_graph).ring_orders();
        assert_eq!(orders(Rate::Frequency(99), CallGraph::FramePointers), (7, 2));
        assert_eq!(orders(Rate::Frequency(99), CallGraph::Dwarf(16384)), (9, 3));
        assert_eq!(orders(Rate::Frequency(997), CallGraph::Dwarf(16384)), (9, 3));
        assert_eq!(orders(Rate::Frequency(1999), CallGraph::Dwarf(16384)), (10, 3));
        assert_eq!(orders(Rate::Frequency(997), CallGraph::Dwarf(65528)), (11, 5));
        assert_eq!(orders(Rate::Frequency(99_999), CallGraph::Dwarf(16384)), (11, 3));
        assert_eq!(orders(Rate::Period(1000), CallGraph::Dwarf(16384)), (11, 3));
    }

    #[test]
    fn parses_ring_sizes_as_perf_does() {
        for (text, order) in
            [("1", Ok(0)), ("128", Ok(7)), ("100", Ok(7)), ("8M", Ok(11)), ("5000B", Ok(1)), ("1K", Ok(0))]
        {
            assert_eq!(parse_ring_size(text).map_err(drop), order, "{text}");
        }
        for wrong in ["", "0", "-1", "1T", "2G", "K", "99999999999999999999"] {
            assert!(parse_ring_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rounds_the_copy_of_the_stack_up_to_whole_words() {
        assert_eq!("dwarf,10001".parse(), Ok(CallGraph::Dwarf(10008)));
        assert_eq!("dwarf".parse(), Ok(CallGraph::Dwarf(16384)));
        for wrong in ["dwarf,0", "dwarf,65529", "dwarf,", "dwarf,99999999999", "dwarfs", ""] {
            assert!(wrong.parse::<CallGraph>().is_err(), "{wrong}");
        }
    }
}
