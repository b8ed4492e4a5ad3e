//! The sizes of rings, and of the copies of stacks in them.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::sampling::{CallGraph, Rate, Sampling};
use crate::Error;

/// The largest copy of a stack that the kernel makes, in bytes.
pub(in crate::record) const MAX_STACK_COPY: u32 = 65528;

/// The sizes of copies that are chosen from, in bytes.
const STACK_COPIES: [u32; 4] = [MAX_STACK_COPY, 32768, 16384, 8192];

/// The size of a sample beside its copy of the stack, in bytes: registers, and callchains that are deep.
const SAMPLE_OVERHEAD: u64 = 1024;

/// The rate that is assumed of events whose rate is not known, in samples a second on a CPU.
const ASSUMED_RATE: u64 = 16_000;

// A ring's size is its order, as the kernel calls it: it has 2^order pages.

/// The default order of a ring of samples: 512 KiB.
const SAMPLE_RING_ORDER: u8 = 7;
/// The default orders of a ring of samples that contain copies of stacks: 2 to 16 MiB.
const STACK_RING_ORDERS: RangeInclusive<u8> = 9..=12;
/// The share of the machine's memory that rings of stacks take, at most, as a divisor.
const MEMORY_DIVISOR: u64 = 64;
/// The smallest order of a ring of samples whose stacks are taken: 256 KiB, some large stacks.
const STACK_RECORD_RING_ORDER: u8 = 6;
/// The order of a ring of side-band records: 512 KiB.
const SIDEBAND_RING_ORDER: u8 = 7;
/// The order of a ring of side-band records where the kernel refused larger rings: 256 KiB.
const SMALL_SIDEBAND_RING_ORDER: u8 = 6;
/// The order of a ring of context switches: 1 MiB, about 10,000 of them.
const SWITCH_RING_ORDER: u8 = 8;
/// The smallest order that is tried if the kernel refuses larger rings. Smaller rings are useless, and so are rings
/// that two copies of a stack do not fit in.
const MIN_RING_ORDER: u8 = 2;

/// The largest size of a ring that can be asked for, in bytes.
const MAX_RING_BYTES: u64 = 1 << 30;

/// The rings hold the samples of this time, if they may be so large: a recorder that shares its CPU, or opens large
/// files, may be late by as much.
const PREFERRED_RING_TIME: Duration = Duration::from_millis(200);
/// Where rings cannot hold the samples of this time, copies of stacks are smaller.
const MIN_RING_TIME: Duration = Duration::from_millis(25);

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

impl Sampling {
    /// Returns the preferred and the smallest order of a ring of samples, on a machine with `memory` bytes.
    pub(super) fn ring_orders(&self, memory: u64, cpus: usize) -> (u8, u8) {
        match (self.ring_order, self.call_graph) {
            (Some(order), _) => (order, order),
            (None, CallGraph::FramePointers | CallGraph::BranchRecords) => (SAMPLE_RING_ORDER, MIN_RING_ORDER),
            (None, CallGraph::Dwarf(copy)) => {
                let affordable = (memory / MEMORY_DIVISOR / cpus.max(1) as u64 / 4096).max(1).ilog2() as u8;
                let (least, most) = (*STACK_RING_ORDERS.start(), *STACK_RING_ORDERS.end());
                // Stacks of words, which a program sends until it has the rows of a large library, may be as large.
                let preferred = order_for(self.expected_bytes(copy.unwrap_or(MAX_STACK_COPY), PREFERRED_RING_TIME));
                (preferred.min(affordable).clamp(least, most), self.min_ring_order())
            }
        }
    }

    /// Returns the smallest order of a ring that holds two samples: in a smaller one, every sample would be lost.
    fn min_ring_order(&self) -> u8 {
        match self.call_graph {
            CallGraph::Dwarf(_) if self.takes_stacks => STACK_RECORD_RING_ORDER,
            CallGraph::Dwarf(copy) => {
                let smallest = copy.unwrap_or(STACK_COPIES[STACK_COPIES.len() - 1]);
                MIN_RING_ORDER.max(order_for(2 * u64::from(smallest)))
            }
            CallGraph::FramePointers | CallGraph::BranchRecords => MIN_RING_ORDER,
        }
    }

    /// Returns the number of bytes that are copied of a stack into rings of this order; `None` if no stacks are copied.
    ///
    /// It is the largest with which a ring holds the samples of [`MIN_RING_TIME`], unless it was asked for.
    pub(super) fn stack_copy(&self, order: u8) -> Option<u32> {
        let CallGraph::Dwarf(copy) = self.call_graph else { return None };
        if self.takes_stacks {
            return None;
        }
        let ring_bytes = 4096 << order;
        let [.., smallest] = STACK_COPIES;
        let mut fitting =
            STACK_COPIES.into_iter().filter(|copy| self.expected_bytes(*copy, MIN_RING_TIME) <= ring_bytes);
        Some(copy.or_else(|| fitting.next()).unwrap_or(smallest))
    }

    /// True if rings of this order limit what is recorded: they are smaller than preferred, and do not hold the samples
    /// of [`MIN_RING_TIME`] with the copies of stacks that the preferred ones hold.
    pub(super) fn is_limited_by_rings(&self, order: u8, preferred: u8) -> bool {
        let copy = self.stack_copy(preferred);
        order < preferred && copy.is_none_or(|copy| self.expected_bytes(copy, MIN_RING_TIME) > 4096 << order)
    }

    /// Returns the number of bytes of the samples of a time on one CPU, with copies of stacks of `copy` bytes.
    fn expected_bytes(&self, copy: u32, time: Duration) -> u64 {
        let hertz = self.events.iter().map(|event| match event.rate {
            Rate::Frequency(hertz) => hertz,
            Rate::Period(_) => ASSUMED_RATE,
        });
        let samples = hertz.fold(0, u64::saturating_add).saturating_mul(time.as_millis() as u64).div_ceil(1000);
        samples.saturating_mul((u64::from(copy) + SAMPLE_OVERHEAD).min(1 << 16))
    }

    /// Checks that a ring whose size was given can hold two samples: with fewer, every sample would be lost.
    ///
    /// # Errors
    /// [`Error::Usage`] if it cannot.
    pub(super) fn check_ring_size(&self) -> Result<(), Error> {
        match (self.ring_order, self.stack_copy(0)) {
            (Some(order), Some(bytes)) if (4096 << order) < 2 * bytes => Err(Error::Usage(format!(
                "-m {}K is too small: two {bytes}-byte stacks must fit; use -m {}K",
                4 << u32::from(order),
                4 << u32::from(order_for(2 * u64::from(bytes))),
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the order of a ring of side-band records, given that of samples and the preferred order of those.
    pub(super) fn sideband_ring_order(&self, sample_order: u8, preferred: u8) -> u8 {
        let order = if sample_order < preferred { SMALL_SIDEBAND_RING_ORDER } else { SIDEBAND_RING_ORDER };
        if self.ring_order.is_some() { SIDEBAND_RING_ORDER } else { order.min(sample_order - 1) }
    }

    /// Returns the order of a ring of context switches, given that of samples.
    pub(super) fn switch_ring_order(&self, sample_order: u8) -> u8 {
        SWITCH_RING_ORDER.min(sample_order)
    }
}

/// Returns the order of the smallest ring that holds this many bytes.
fn order_for(bytes: u64) -> u8 {
    bytes.div_ceil(4096).next_power_of_two().ilog2() as u8
}

#[cfg(test)]
mod tests {
    use super::{CallGraph, Rate, Sampling, parse_ring_size};
    use crate::record::events::spec::EventSpec;

    /// Returns the orders of the rings of two CPUs, and the size of the copies in the preferred ones.
    fn sizes(rate: Rate, call_graph: CallGraph, memory: u64) -> ((u8, u8), Option<u32>) {
        let sampling = Sampling::new(EventSpec::cpu_clock(), rate, call_graph);
        let orders = sampling.ring_orders(memory, 2);
        (orders, sampling.stack_copy(orders.0))
    }

    const AUTOMATIC: CallGraph = CallGraph::Dwarf(None);
    const MEMORY: u64 = 64 << 30;

    #[test]
    fn rings_hold_the_samples_of_a_fifth_of_a_second() {
        assert_eq!(sizes(Rate::Frequency(99), CallGraph::FramePointers, MEMORY), ((7, 2), None));
        assert_eq!(sizes(Rate::Frequency(99), AUTOMATIC, MEMORY), ((9, 2), Some(65528)));
        assert_eq!(sizes(Rate::Frequency(997), AUTOMATIC, MEMORY), ((12, 2), Some(65528)));
        assert_eq!(sizes(Rate::Frequency(997), CallGraph::Dwarf(Some(16384)), MEMORY), ((10, 3), Some(16384)));
        assert_eq!(sizes(Rate::Frequency(99_999), CallGraph::Dwarf(Some(65528)), MEMORY), ((12, 5), Some(65528)));
        let sampling = Sampling::new(EventSpec::cpu_clock(), Rate::Frequency(997), AUTOMATIC);
        assert_eq!(Sampling { takes_stacks: true, ..sampling }.ring_orders(MEMORY, 2), (12, 6));
    }

    #[test]
    fn copies_are_smaller_where_samples_are_many_or_rings_small() {
        assert_eq!(sizes(Rate::Frequency(9999), AUTOMATIC, MEMORY), ((12, 2), Some(65528)));
        assert_eq!(sizes(Rate::Frequency(15_999), AUTOMATIC, MEMORY), ((12, 2), Some(32768)));
        assert_eq!(sizes(Rate::Frequency(99_999), AUTOMATIC, MEMORY), ((12, 2), Some(8192)));
        assert_eq!(sizes(Rate::Period(1), AUTOMATIC, MEMORY), ((12, 2), Some(32768)));
        // On a machine with little memory or many CPUs.
        assert_eq!(sizes(Rate::Frequency(1999), AUTOMATIC, 256 << 20), ((9, 2), Some(32768)));
        // Where the kernel refuses larger rings.
        let sampling = Sampling::new(EventSpec::cpu_clock(), Rate::Frequency(997), AUTOMATIC);
        assert_eq!(
            [10, 9, 8, 7, 6].map(|order| sampling.stack_copy(order)),
            [65528, 65528, 32768, 16384, 8192].map(Some)
        );
    }

    fn is_limited(call_graph: CallGraph, order: u8) -> bool {
        let sampling = Sampling::new(EventSpec::cpu_clock(), Rate::Frequency(997), call_graph);
        let (preferred, _) = sampling.ring_orders(MEMORY, 2);
        sampling.is_limited_by_rings(order, preferred)
    }

    #[test]
    fn smaller_rings_are_reported_if_they_limit_stacks() {
        assert_eq!([12, 10, 9, 8].map(|order| is_limited(AUTOMATIC, order)), [false, false, false, true]);
        assert_eq!([7, 6].map(|order| is_limited(CallGraph::FramePointers, order)), [false, true]);
    }

    fn check(order: u8, copy: Option<u32>) -> Result<(), String> {
        let sampling = Sampling::new(EventSpec::cpu_clock(), Rate::Frequency(99), CallGraph::Dwarf(copy));
        Sampling { ring_order: Some(order), ..sampling }.check_ring_size().map_err(|error| error.to_string())
    }

    #[test]
    fn a_ring_must_hold_two_stacks() {
        assert_eq!((check(2, None), check(5, Some(65528)), check(4, None)), (Ok(()), Ok(()), Ok(())));
        let message = "-m 64K is too small: two 65528-byte stacks must fit; use -m 128K";
        assert_eq!(check(4, Some(65528)), Err(message.to_owned()));
        assert_eq!(check(0, None), Err("-m 4K is too small: two 8192-byte stacks must fit; use -m 16K".to_owned()));
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
}
