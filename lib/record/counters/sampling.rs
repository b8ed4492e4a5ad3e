//! Sampling settings: the events, their rates, and the method of collecting stacks.

use std::str::FromStr;

use super::ring_size::MAX_STACK_COPY;
use crate::Error;
use crate::perf::event::{Layout, branch_type, sample_type};
use crate::perf::unwind;
use crate::record::events::program_kind::ProgramKind;
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
    /// A copy of this many bytes of the stack is unwound by DWARF call frame information. `None` for as many bytes as
    /// the rings have room for.
    Dwarf(Option<u32>),
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
        match text.split_once(',') {
            None if text == "fp" => Ok(Self::FramePointers),
            None if text == "lbr" => Ok(Self::BranchRecords),
            None if text == "dwarf" => Ok(Self::Dwarf(None)),
            // The kernel copies whole words of eight bytes.
            Some(("dwarf", bytes)) => match bytes.parse().map(|bytes: u32| bytes.next_multiple_of(8)) {
                Ok(bytes @ 8..=MAX_STACK_COPY) => Ok(Self::Dwarf(Some(bytes))),
                _ => Err(format!("expected at most {MAX_STACK_COPY} bytes, such as dwarf,16384")),
            },
            _ => Err("expected dwarf, dwarf,BYTES, fp or lbr".to_owned()),
        }
    }
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
    /// True if a BPF program takes the user stacks.
    pub takes_stacks: bool,
}

impl Sampling {
    /// Creates the default settings for one event.
    pub fn new(spec: EventSpec, rate: Rate, call_graph: CallGraph) -> Self {
        let (ring_order, max_stack, cpus) = (None, None, None);
        let events = vec![SampledEvent { spec, rate }];
        Self { events, call_graph, ring_order, max_stack, cpus, record_switches: false, takes_stacks: false }
    }

    /// Returns of how many events the BPF program is to take one, if it takes some without counters.
    pub(in crate::record) fn period_of_program(&self) -> Option<u64> {
        self.events.iter().find(|event| event.spec.is_taken_by_program).and_then(|event| event.rate.period())
    }

    /// Has a BPF program take the user stacks. Where it needs no counters, those of an event that never happens replace them.
    pub(in crate::record) fn take_stacks(&mut self) {
        self.takes_stacks = true;
        for event in self.events.iter_mut().filter(|event| event.spec.is_taken_by_program) {
            *event = SampledEvent { spec: EventSpec::dummy(), rate: Rate::Period(1) };
        }
    }

    /// True if a BPF program can take the user stacks. The kernel runs it for each sample, but at tracepoints each time
    /// that one is reached, by whichever process of its scope: only every sample that is every event gets its stack so.
    pub(in crate::record) fn can_take_stacks(&self, target: &Target) -> bool {
        let is_in_cgroup = matches!(target, Target::Cgroup(_));
        let mut kinds = self.events.iter().map(|event| (event.spec.program_kind(), event.rate));
        self.call_graph == CallGraph::Dwarf(None)
            && kinds.all(|(kind, rate)| match kind {
                ProgramKind::Tracepoint | ProgramKind::Probe | ProgramKind::Call => {
                    rate == Rate::Period(1) && !is_in_cgroup
                }
                ProgramKind::Sample | ProgramKind::Clock => true,
            })
    }

    /// True if the counters of an event count on CPUs, for whichever thread runs there, so that each thread counts from
    /// its first instant. Unless all processes are recorded, the BPF program drops the samples of other threads.
    pub(super) fn counts_on_cpus(&self, target: &Target, event: &SampledEvent) -> bool {
        if matches!(target, Target::System | Target::Cgroup(_)) {
            return true;
        }
        // The kernel adapts the period to the events of all threads: it would miss those of the target.
        let is_adapted = event.rate.period().is_none() && event.spec.is_software() && !event.spec.is_clock();
        // Switches and tracepoints are many. The switches of threads come with an event that is counted in threads.
        let counts_switches = self.events.iter().any(|event| !event.spec.is_clock());
        let is_frequent =
            event.spec.is_tracepoint() || self.record_switches && !(event.spec.is_clock() && counts_switches);
        self.takes_stacks && !is_adapted && !is_frequent
    }

    /// True if calls are not counted in threads that are created while the recording runs.
    pub(super) fn misses_calls_of_new_threads(&self, target: &Target) -> bool {
        target.includes_children()
            && self.events.iter().any(|event| event.spec.is_uprobe() && !self.counts_on_cpus(target, event))
    }

    /// True if some counters count in threads.
    pub(in crate::record) fn counts_in_threads(&self, target: &Target) -> bool {
        self.events.iter().any(|event| !self.counts_on_cpus(target, event))
    }

    /// True if side-band records are those of the target's threads alone. The processes of a command are known from their
    /// start, so that those of others need not wake the recorder.
    pub(super) fn has_sideband_of_threads(&self, target: &Target) -> bool {
        matches!(target, Target::Command(_)) || self.counts_in_threads(target)
    }

    /// True if nothing can be recorded without events of the kernel.
    pub(in crate::record) fn needs_kernel(&self) -> bool {
        self.record_switches || self.events.iter().any(|event| event.spec.excluded.user)
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

    /// Returns the layout of the records in which the BPF program writes stacks.
    pub(super) fn stack_layout(&self) -> Layout {
        use sample_type as bit;
        let address = if self.records_address() { bit::IP } else { 0 };
        Layout::new(address | bit::TID | bit::TIME | bit::ID | bit::RAW, 0)
    }

    /// True if each thread that already runs gets counters of its own, beside the counters of other threads.
    pub(super) fn is_per_thread(&self, target: &Target) -> bool {
        target.is_per_thread() && self.counts_in_threads(target)
    }

    /// Returns the layout of the records.
    pub(super) fn record_layout(&self, records_counter_id: bool) -> Layout {
        let mut layout = self.call_graph.layout();
        if self.takes_stacks {
            layout.sample_type &= !sample_type::STACK_USER;
        }
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
        self.takes_stacks || target.is_per_thread() || self.events.len() > 1
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

#[cfg(test)]
mod tests {
    use super::CallGraph;

    #[test]
    fn rounds_the_copy_of_the_stack_up_to_whole_words() {
        assert_eq!("dwarf,10001".parse(), Ok(CallGraph::Dwarf(Some(10008))));
        assert_eq!("dwarf".parse(), Ok(CallGraph::Dwarf(None)));
        for wrong in ["dwarf,0", "dwarf,65529", "dwarf,", "dwarf,99999999999", "dwarfs", "fp,8", ""] {
            assert!(wrong.parse::<CallGraph>().is_err(), "{wrong}");
        }
    }
}
