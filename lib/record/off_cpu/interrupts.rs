//! Tells interrupts, which end some blocks, from threads.

use std::ops::Range;

use crate::markers;
use crate::perf::symbols::kallsyms::KernelSymbols;

/// The kinds of interrupts that are told apart, by functions that run in them. The first function from the inside decides.
const KINDS: [(&[u8], &[&[u8]]); 4] = [
    (
        markers::TIMER,
        &[
            b"hrtimer_wakeup",
            b"__hrtimer_run_queues",
            b"hrtimer_interrupt",
            b"process_timeout",
            b"call_timer_fn",
            b"__run_timers",
            b"run_timer_softirq",
            b"it_real_fn",
            b"update_process_times",
        ],
    ),
    (markers::NETWORK, &[b"net_rx_action", b"net_tx_action", b"__napi_poll"]),
    (
        markers::DISK,
        &[
            b"blk_done_softirq",
            b"blk_complete_reqs",
            b"blk_mq_complete_request",
            b"blk_mq_end_request",
            b"blk_mq_end_request_batch",
            b"blk_update_request",
            b"bio_endio",
        ],
    ),
    (markers::SOFTIRQ, &[b"handle_softirqs", b"__do_softirq"]),
];

/// The entries of interrupts: everything further out on a kernel stack belongs to the interrupted thread.
const ENTRIES: [&[u8]; 2] = [b"asm_common_interrupt", b"asm_sysvec_*"];

/// The function that wakes threads. The frames that it calls only run the BPF program.
const WAKER: &[u8] = b"try_to_wake_up";

/// The function that switches from one thread to another. It is left out, as the kernel does in samples of switches.
const SCHEDULER: &[u8] = b"__schedule";

/// The addresses of functions of the running kernel by which kernel stacks of wakers and switches are understood.
#[derive(Debug, Default)]
pub struct KernelFunctions {
    waker: Vec<Range<u64>>,
    scheduler: Vec<Range<u64>>,
    entries: Vec<Range<u64>>,
    kinds: Vec<(&'static [u8], Vec<Range<u64>>)>,
}

/// The kernel's part of a waker's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakerContext<'a> {
    /// The addresses, innermost first, without those of tracing and of an interrupted thread.
    pub addresses: &'a [u64],
    /// The name of the interrupt that woke; `None` if a thread did.
    pub interrupt: Option<&'static [u8]>,
}

/// The entries of exceptions, such as page faults: what happens further in belongs to the thread.
const EXCEPTIONS: &[u8] = b"asm_exc_*";

/// Returns the addresses between which all entries of interrupts are, and nothing of threads. `None` if that is not known.
pub fn interrupt_entries() -> Option<Range<u64>> {
    let names: Vec<&[u8]> = ENTRIES.into_iter().chain([EXCEPTIONS]).collect();
    let mut ranges = KernelSymbols::ranges_in_running_kernel(&names);
    let exceptions = ranges.pop()?;
    enclose(&ranges.concat(), &exceptions)
}

/// Returns the smallest range that contains some ranges, if it contains nothing of the others.
fn enclose(ranges: &[Range<u64>], others: &[Range<u64>]) -> Option<Range<u64>> {
    let start = ranges.iter().map(|range| range.start).min()?;
    let end = ranges.iter().map(|range| range.end).max()?;
    let is_alone = others.iter().all(|other| other.end <= start || other.start >= end);
    is_alone.then_some(start..end)
}

impl KernelFunctions {
    /// Looks the functions up in the running kernel. If its symbols are hidden, all wakers are taken for threads.
    pub fn of_running_kernel() -> Self {
        let mut names: Vec<&[u8]> = ENTRIES.to_vec();
        names.extend([WAKER, SCHEDULER]);
        names.extend(KINDS.iter().flat_map(|(_, functions)| functions.iter().copied()));
        let mut ranges = KernelSymbols::ranges_in_running_kernel(&names).into_iter();
        let entries = ranges.by_ref().take(ENTRIES.len()).flatten().collect();
        let [waker, scheduler] = [(); 2].map(|()| ranges.next().unwrap_or_default());
        let kinds = KINDS.map(|(kind, functions)| (kind, ranges.by_ref().take(functions.len()).flatten().collect()));
        Self { waker, scheduler, entries, kinds: kinds.into() }
    }

    /// Finds out what the kernel stack of a waker says.
    pub fn examine<'a>(&self, kernel: &'a [u64]) -> WakerContext<'a> {
        let waker = kernel.iter().position(|address| contains(&self.waker, *address));
        let kernel = &kernel[waker.unwrap_or(0)..];
        let Some(entry) = kernel.iter().position(|address| contains(&self.entries, *address)) else {
            return WakerContext { addresses: kernel, interrupt: None };
        };
        let addresses = &kernel[..=entry];
        let mut kinds = addresses.iter().flat_map(|address| self.kinds_at(*address));
        WakerContext { addresses, interrupt: Some(kinds.next().unwrap_or(markers::INTERRUPT)) }
    }

    /// Returns the kernel stack of a switch without the frames of the switch itself and of tracing.
    pub fn trim_switch<'a>(&self, kernel: &'a [u64]) -> &'a [u64] {
        let scheduler = kernel.iter().position(|address| contains(&self.scheduler, *address));
        &kernel[scheduler.map_or(0, |index| index + 1)..]
    }

    /// Returns the kinds of interrupts whose functions contain an address.
    fn kinds_at(&self, address: u64) -> impl Iterator<Item = &'static [u8]> {
        self.kinds.iter().filter(move |(_, ranges)| contains(ranges, address)).map(|(kind, _)| *kind)
    }
}

fn contains(ranges: &[Range<u64>], address: u64) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::{KernelFunctions, WakerContext};
    use crate::markers;

    fn range(start: u64, end: u64) -> Vec<Range<u64>> {
        std::iter::once(start..end).collect()
    }

    fn functions() -> KernelFunctions {
        KernelFunctions {
            waker: range(100, 200),
            scheduler: range(200, 250),
            entries: range(900, 1000),
            kinds: vec![(markers::TIMER, range(300, 310)), (markers::SOFTIRQ, range(400, 500))],
        }
    }

    #[test]
    fn entries_of_interrupts_are_enclosed_if_nothing_else_is_there() {
        let entries = [10..20, 30..40];
        assert_eq!(super::enclose(&entries, &[0..10, 40..50]), Some(10..40));
        assert_eq!(super::enclose(&entries, &[0..10, 20..30]), None);
        assert_eq!(super::enclose(&[], &[]), None);
    }

    #[test]
    fn a_thread_is_told_from_an_interrupt() {
        let functions = functions();
        for (kernel, expected, expected_interrupt) in [
            (&[1, 2, 150, 600, 700][..], &[150, 600, 700][..], None),
            (&[1, 150, 305, 450, 950, 700], &[150, 305, 450, 950], Some(markers::TIMER)),
            (&[150, 600, 450, 950], &[150, 600, 450, 950], Some(markers::SOFTIRQ)),
            (&[150, 950, 950, 1], &[150, 950], Some(markers::INTERRUPT)),
            (&[600], &[600], None),
        ] {
            let WakerContext { addresses, interrupt } = functions.examine(kernel);
            assert_eq!((addresses, interrupt), (expected, expected_interrupt), "{kernel:?}");
        }
        assert_eq!(KernelFunctions::default().examine(&[1, 950]).addresses, [1, 950]);
        assert_eq!(functions.trim_switch(&[1, 2, 210, 600, 700]), [600, 700]);
        assert_eq!(functions.trim_switch(&[600, 700]), [600, 700]);
    }
}
