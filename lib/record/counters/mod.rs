//! Counters and their ring buffers: for each CPU one ring of samples, and one of the side-band records that the samples
//! refer to.
//!
//! Side-band records (new mappings, programs, threads) wake the recorder at once, so that it opens files while they
//! exist. Samples wake it when their ring is half full.

mod attr;
pub mod clock_parts;
mod event_to_open;
mod open;
pub mod ring_size;
pub mod sampling;
mod scope;
mod sideband;

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use perf_event_open::count::Counter;
use perf_event_open::sample::Sampler;
use rustc_hash::{FxHashMap, FxHashSet};

use self::sampling::{Rate, SampledEvent};
use self::sideband::ThreadSideband;
use crate::perf::event::{self, Event, Layout, Sample, Stamp};
use crate::record::cpus::online_cpus;
use crate::record::events::value::SampleValue;
use crate::record::sys;

/// A counter with a ring buffer of its own, into which other counters may write too.
pub struct Ring {
    counter: Counter,
    sampler: Sampler,
    cpu: u32,
    /// The counter's ID, if records do not contain it because no other counter writes into the ring.
    counter_id: Option<u64>,
    layout: Layout,
    /// The IDs of the counters by which the BPF program writes stacks into the ring, if it does.
    stack_counters: Option<[u64; 2]>,
}

impl Ring {
    /// Returns the reader of the ring's records.
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Parses one of the ring's records, and adds the CPU and counter ID that all of its records share.
    pub fn parse<'a>(&self, record: &'a [u8]) -> Option<(Stamp, Event<'a>)> {
        let (stamp, event) = event::parse(record, self.layout)?;
        Some((Stamp { cpu: self.cpu, id: self.counter_id.unwrap_or(stamp.id), ..stamp }, event))
    }

    /// Parses one of the ring's records as raw data that the BPF program wrote: a part of a stack, or a wake-up. `None` if
    /// it is another record.
    pub fn parse_output<'a>(&self, record: &'a [u8], layout: Layout) -> Option<(Stamp, &'a [u8])> {
        if !self.stack_counters?.contains(&event::parse_counter_id(record, self.layout)?) {
            return None;
        }
        let (stamp, Event::Sample(sample)) = event::parse(record, layout)? else { return None };
        Some((Stamp { cpu: self.cpu, ..stamp }, sample.raw))
    }

    /// Returns the file that becomes readable when the ring is to be read.
    pub fn file(&self) -> &File {
        self.counter.file()
    }
}

/// The rings of a CPU.
pub struct CpuRings {
    /// The ring of samples.
    pub samples: Ring,
    /// The ring of records that samples refer to: mappings, thread names, forks and exits.
    pub sideband: Ring,
    /// The ring of context switches, if they are recorded.
    pub switches: Option<Ring>,
}

impl CpuRings {
    /// Returns all rings.
    pub fn all(&self) -> impl Iterator<Item = &Ring> {
        [&self.sideband, &self.samples].into_iter().chain(&self.switches)
    }
}

/// The sizes of copies of stacks and of the rings that contain them, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackCopies {
    /// The largest copy of a stack.
    pub copy: u32,
    /// The ring of samples of a CPU.
    pub ring: u64,
}

/// All counters of a recording.
pub struct Counters {
    /// The rings of each CPU.
    pub rings: Vec<CpuRings>,
    /// Counters without rings of their own, which write into [`Counters::rings`].
    ringless: Vec<Counter>,
    /// The BPF programs of counters that keep none themselves.
    programs: Vec<OwnedFd>,
    /// Counters for which tracepoints run the BPF program, and which count nothing.
    program_holders: Vec<Counter>,
    /// The event and owner of each counter of samples or switches, by counter ID.
    sources: FxHashMap<u64, Source>,
    /// The side-band counters of threads that are not opened with those of samples. `None` without a BPF program.
    thread_sideband: Option<ThreadSideband>,
    /// Threads that have counters of samples of their own.
    owner_threads: FxHashSet<u32>,
    /// Counters that the command's exec enables.
    enabled_by_exec: FxHashSet<u64>,
    /// True if the kernel was left out, because we lack the permission.
    pub(in crate::record) excludes_kernel: bool,
    /// True if the counters of side-band records count the CPU time of the target's threads.
    counts_thread_time: bool,
    /// True if samples contain their period.
    records_period: bool,
    /// The copies of stacks in samples, if stacks are copied.
    pub(in crate::record) stack_copies: Option<StackCopies>,
    /// The layout of the records in which the BPF program writes stacks.
    pub(in crate::record) stack_layout: Layout,
    /// The weight of a sample of each event.
    weights: Vec<SampleWeight>,
    /// The indices of events whose samples the kernel shares with other recorders, and the numbers of their kinds.
    shared_events: Vec<(u32, u64)>,
    /// The event that [`Counters::set_event_enabled`] has disabled, or [`NO_EVENT`].
    disabled_event: Cell<u32>,
    /// Notes for the user about how the counters were opened.
    pub notes: Vec<String>,
}

impl Counters {
    /// Enables all counters, unless the command's exec does. Takes up to a few times the interval between samples of a clock
    /// (`clock_parts.rs`).
    ///
    /// # Errors
    /// Errors of the system call.
    pub fn enable(&self) -> io::Result<()> {
        // Until these are enabled, what the BPF program writes is lost: the stacks of the samples before, and the names of
        // functions in them, which it sends once.
        let outputs =
            self.all().filter(|counter| self.source(counter).is_some_and(|source| source.event == STACK_EVENT));
        outputs.into_iter().try_for_each(|counter| self.enable_counter(counter))?;
        let others = self.all().filter(|counter| !(self.replaces_cpu_sideband() && self.is_sideband(counter)));
        let mut others: Vec<_> = others.map(|counter| (self.lead(counter), counter)).collect();
        others.sort_by_key(|(lead, _)| std::cmp::Reverse(*lead));
        let start = Instant::now() + others.first().map_or(Duration::ZERO, |(lead, _)| *lead);
        for (lead, counter) in others {
            thread::sleep(start.saturating_duration_since(Instant::now()).saturating_sub(lead));
            self.enable_counter(counter)?;
        }
        Ok(())
    }

    /// Returns the time before the start at which a counter is enabled.
    fn lead(&self, counter: &Counter) -> Duration {
        self.source(counter).map_or(Duration::ZERO, |source| source.lead)
    }

    fn enable_counter(&self, counter: &Counter) -> io::Result<()> {
        if self.enabled_by_exec.contains(&counter.id()?) { Ok(()) } else { counter.enable() }
    }

    /// Disables all counters.
    pub fn disable(&self) {
        for counter in self.all() {
            // It fails if the counter's thread has exited: that counts no more anyway.
            let _ = counter.disable();
        }
    }

    /// Returns the number of samples of each event that the kernel dropped; `None` if the kernel does not report it.
    pub fn lost_samples(&self) -> Option<Vec<u64>> {
        let mut lost = Vec::new();
        for (source, counter) in self.sample_counters() {
            let event = source.event as usize;
            lost.resize(lost.len().max(event + 1), 0);
            lost[event] += counter.stat().ok()?.lost_records?;
        }
        Some(lost)
    }

    /// True if some counters count on CPUs, for whichever thread runs there.
    pub fn counts_on_cpus(&self) -> bool {
        self.sample_counters().any(|(source, _)| source.on_cpu)
    }

    /// True if some counters of samples or switches count in threads.
    pub fn counts_in_threads(&self) -> bool {
        self.all().filter_map(|counter| self.source(counter)).any(|source| !source.on_cpu)
    }

    /// Returns how often each event was counted, sampled or not.
    pub fn event_counts(&self) -> Option<Vec<u64>> {
        let mut counts = vec![0; self.weights.len()];
        for (source, counter) in self.sample_counters() {
            counts[source.event as usize] += counter.stat().ok()?.count;
        }
        Some(counts)
    }

    /// Returns the CPU time in nanoseconds that the target's threads have used on the CPUs that are recorded. `None` if
    /// the counters count on CPUs, for whichever thread runs there.
    pub fn thread_time(&self) -> Option<u64> {
        let counters = self.all().filter(|counter| self.is_sideband(counter));
        self.counts_thread_time.then(|| counters.map(|counter| Some(counter.stat().ok()?.count)).sum())?
    }

    /// Returns the number of threads that ran when the counters were opened, if each has counters of its own.
    pub fn owner_thread_count(&self) -> usize {
        self.owner_threads.len()
    }

    /// True if no online CPU is left out.
    pub fn counts_on_all_cpus(&self) -> bool {
        self.rings.len() == online_cpus().len()
    }

    /// Returns the CPUs that are recorded.
    pub fn cpus(&self) -> Vec<u32> {
        self.rings.iter().map(|rings| rings.samples.cpu).collect()
    }

    /// Returns the counters that take samples.
    fn sample_counters(&self) -> impl Iterator<Item = (&Source, &Counter)> {
        let leaders = self.rings.iter().map(|rings| &rings.samples.counter);
        leaders.chain(&self.ringless).filter_map(|counter| {
            let source = self.source(counter).filter(|source| source.event < STACK_EVENT)?;
            Some((source, counter))
        })
    }

    /// Returns the number of side-band records that the kernel dropped; `None` if the kernel does not report it.
    pub fn lost_sideband_records(&self) -> Option<u64> {
        self.all().filter(|counter| self.is_sideband(counter)).map(|counter| counter.stat().ok()?.lost_records).sum()
    }

    fn is_sideband(&self, counter: &Counter) -> bool {
        self.source(counter).is_none()
    }

    fn source(&self, counter: &Counter) -> Option<&Source> {
        self.sources.get(&counter.id().ok()?)
    }

    /// Returns the event that counter `id` sampled in thread `tid`.
    ///
    /// A thread that was created while counters were opened may have both its own and those inherited from its parent,
    /// and then its children inherit both. Only those of the nearest ancestor that has its own are used.
    pub fn sampled_event(&self, tid: u32, inherited_from: Option<u32>, id: u64) -> SampleOrigin {
        let Some(source) = self.sources.get(&id) else {
            return self.event_of_foreign_id().map_or(SampleOrigin::Unknown, SampleOrigin::Event);
        };
        let expected = self.owner(tid, inherited_from);
        let is_used = expected.is_none() || source.owner.is_none() || source.owner == expected;
        if is_used { SampleOrigin::Event(source.event) } else { SampleOrigin::Duplicate }
    }

    /// Returns the event of a sample without an ID, or with that of another recorder's counter. `None` if it can be of
    /// several.
    ///
    /// Where several recorders count switches or page faults, the kernel fills in a sample once and gives it to all of
    /// their counters, with the ID of one (`do_perf_sw_event`).
    fn event_of_foreign_id(&self) -> Option<u32> {
        if self.weights.len() == 1 {
            return Some(0);
        }
        let mut enabled = self.shared_events.iter().filter(|(event, _)| *event != self.disabled_event.get());
        let (event, kind) = enabled.next()?;
        enabled.all(|(_, other)| other == kind).then_some(*event)
    }

    /// Returns the thread whose counters count in thread `tid`: itself if it has its own, or the one from which it has
    /// inherited them, if that is known.
    pub fn owner(&self, tid: u32, inherited_from: Option<u32>) -> Option<u32> {
        if self.owner_threads.contains(&tid) { Some(tid) } else { inherited_from }
    }

    /// Divides the frequency of all counters. Returns false, and changes nothing, if some counters cannot be changed:
    /// those with a fixed period, and those of threads, whose inherited copies are out of reach.
    pub fn divide_frequencies(&self, events: &[SampledEvent], divisor: u32) -> bool {
        // The kernel turns the frequency of a clock into a period when it is opened (`perf_swevent_init_hrtimer`), and its
        // samples keep the period that they had then.
        let has_fixed = events.iter().any(|event| event.rate.period().is_some() || event.spec.is_clock());
        if has_fixed || self.sample_counters().any(|(source, _)| !source.on_cpu) {
            return false;
        }
        for counter in self.all() {
            let event = self.source(counter).and_then(|source| events.get(source.event as usize));
            if let Some(SampledEvent { rate: Rate::Frequency(hertz), .. }) = event {
                sys::set_period(counter.file(), (hertz / u64::from(divisor)).max(1));
            }
        }
        true
    }

    /// Returns the weight of a sample of an event: its period, times the value that it carries if values are summed up.
    pub fn sample_weight(&self, event: u32, sample: &Sample<'_>) -> u64 {
        let SampleWeight { period, value, is_divided } = &self.weights[event as usize];
        match value {
            Some(value) => value.read(sample).saturating_mul(period.unwrap_or(sample.period)),
            None if self.records_period && !is_divided => sample.period,
            None => period.unwrap_or(1),
        }
    }

    /// Enables or disables the counters of an event.
    pub fn set_event_enabled(&self, event: u32, is_enabled: bool) {
        self.disabled_event.set(if is_enabled { NO_EVENT } else { event });
        for counter in self.all().filter(|counter| self.source(counter).is_some_and(|source| source.event == event)) {
            // It fails if the counter's thread has exited: that counts no more anyway.
            let _ = if is_enabled { counter.enable() } else { counter.disable() };
        }
    }

    fn all(&self) -> impl Iterator<Item = &Counter> {
        let of_rings = self.rings.iter().flat_map(CpuRings::all).map(|ring| &ring.counter);
        of_rings.chain(&self.ringless).chain(self.thread_sideband.iter().flat_map(ThreadSideband::counters))
    }
}

/// The event of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOrigin {
    /// The event with this index.
    Event(u32),
    /// One of which another counter has taken this sample too.
    Duplicate,
    /// One of several.
    Unknown,
}

/// The index of no event.
const NO_EVENT: u32 = u32::MAX;

/// The event index of counters that only record context switches.
const SWITCH_EVENT: u32 = u32::MAX;

/// The event index of counters by which the BPF program writes stacks.
const STACK_EVENT: u32 = u32::MAX - 1;

/// The event and the owner of a counter.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// The event's index, or [`SWITCH_EVENT`].
    event: u32,
    /// The thread, if each thread has counters of its own.
    owner: Option<u32>,
    /// True if the counter counts on a CPU, for whichever thread runs there.
    on_cpu: bool,
    /// The time before the start at which the counter is enabled.
    lead: Duration,
}

impl Source {
    /// Describes a counter that takes no samples.
    fn of_records(event: u32, owner: Option<u32>, on_cpu: bool) -> Self {
        Self { event, owner, on_cpu, lead: Duration::ZERO }
    }
}

/// The factors of the weight of a sample.
#[derive(Clone, Debug)]
struct SampleWeight {
    /// The event's period, if it is fixed.
    period: Option<u64>,
    /// The value to sum up, if any.
    value: Option<SampleValue>,
    /// True if several counters of a CPU take the samples: each has a longer period.
    is_divided: bool,
}
