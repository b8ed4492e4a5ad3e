//! Opens counters on each CPU, for each thread if threads are recorded, with rings as large as the kernel allows.

use std::cell::Cell;
use std::io;

use perf_event_open::config::{Cpu, Opts, Proc};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;
use rustc_hash::{FxHashMap, FxHashSet};

use super::attr;
use super::event_to_open::{self, EventToOpen};
use super::sampling::Sampling;
use super::scope::{Scope, open_counter};
use super::sideband::ThreadSideband;
use super::{Counters, CpuRings, NO_EVENT, Ring, STACK_EVENT, SWITCH_EVENT, Source, StackCopies};
use crate::Error;
use crate::perf::event::{Layout, sample_type};
use crate::record::bpf::StackSampler;
use crate::record::events::spec::EventSpec;
use crate::record::target::Target;
use crate::record::{cpus, errors, procfs, sys};

impl Counters {
    /// Opens the counters of a target. They count from [`Counters::enable`] on, or for a command when its program runs.
    ///
    /// # Errors
    /// [`Error::Usage`] if the requested rings are too small or stacks cannot be unwound, [`Error::System`] with the
    /// reason if the kernel refuses.
    pub fn open(target: &Target, sampling: &Sampling, sampler: Option<&StackSampler>) -> Result<Self, Error> {
        sampling.check_ring_size()?;
        sampling.check_call_graph()?;
        let cpus = sampling.cpus.as_ref().map_or_else(|| cpus::online_cpus().len(), Vec::len);
        let (preferred_order, min_order) = sampling.ring_orders(procfs::total_memory(), cpus);
        let (mut exclude_kernel, mut ring_order) = (false, preferred_order);
        loop {
            let orders = (ring_order, sampling.sideband_ring_order(ring_order, preferred_order));
            match Opener::new(target, sampling, sampler, exclude_kernel, orders).open() {
                Err(OpenError::Counter(error, _))
                    if error.raw_os_error() == Some(libc::EACCES) && !exclude_kernel && !sampling.needs_kernel() =>
                {
                    exclude_kernel = true;
                }
                Err(OpenError::Ring(error)) if error.raw_os_error() == Some(libc::EPERM) && ring_order > min_order => {
                    ring_order -= 1;
                }
                Err(OpenError::Counter(error, event)) => {
                    return Err(errors::counter_error(&error, target, sampling, event));
                }
                Err(OpenError::Filter(error, event)) => {
                    return Err(errors::filter_error(&error, &sampling.events[event].spec));
                }
                Err(OpenError::Ring(error)) => return Err(errors::ring_error(&error)),
                Ok(mut counters) => {
                    let kernel_note = exclude_kernel.then(errors::kernel_frames_note);
                    let ring_note = sampling
                        .is_limited_by_rings(ring_order, preferred_order)
                        .then(|| errors::small_rings_note(4 << ring_order));
                    counters.notes.extend(kernel_note.into_iter().chain(ring_note));
                    counters.notes.extend(sampling.misses_calls_of_new_threads(target).then(errors::new_threads_note));
                    return Ok(counters);
                }
            }
        }
    }
}

/// The system call that failed.
enum OpenError {
    /// Opening a counter of the event with this index.
    Counter(io::Error, usize),
    /// Setting the filter of the event with this index.
    Filter(io::Error, usize),
    /// Mapping a ring.
    Ring(io::Error),
}

impl OpenError {
    /// Returns the error of a counter that all events need, which is reported with the first one.
    fn from_first_event(error: io::Error) -> Self {
        Self::Counter(error, 0)
    }
}

/// Opens the counters of a target, which it collects in `counters`.
struct Opener<'a> {
    target: &'a Target,
    sampling: &'a Sampling,
    /// The BPF program that takes the user stacks, if one does.
    sampler: Option<&'a StackSampler>,
    events: Vec<EventToOpen<'a>>,
    sideband_options: Opts,
    /// The attributes of the counters by which the BPF program writes: without and with a wake-up of the recorder.
    stack_options: [Opts; 2],
    switch_options: Option<Opts>,
    sample_ring_order: u8,
    sideband_ring_order: u8,
    sample_layout: Layout,
    /// The layout of all records but samples.
    other_layout: Layout,
    cpus: Vec<u32>,
    counters: Counters,
}

impl<'a> Opener<'a> {
    fn new(
        target: &'a Target,
        sampling: &'a Sampling,
        sampler: Option<&'a StackSampler>,
        exclude_kernel: bool,
        (sample_ring_order, sideband_ring_order): (u8, u8),
    ) -> Self {
        let events = sampling.events.iter();
        let stack_copy = sampling.stack_copy(sample_ring_order);
        Self {
            target,
            sampling,
            sampler,
            events: EventToOpen::list(target, sampling, exclude_kernel, stack_copy),
            sideband_options: attr::sideband_options(target, sampling, exclude_kernel),
            stack_options: [false, true].map(|wakes| attr::stack_options(sampling, wakes)),
            switch_options: sampling.record_switches.then(|| attr::switch_options(target, sampling)),
            sample_ring_order,
            sideband_ring_order,
            sample_layout: sampling.record_layout(sampling.records_counter_id(target)),
            other_layout: sampling.record_layout(sampling.is_per_thread(target)),
            cpus: sampling.cpus.clone().unwrap_or_else(cpus::online_cpus),
            counters: Counters {
                rings: Vec::new(),
                ringless: Vec::new(),
                programs: Vec::new(),
                program_holders: Vec::new(),
                sources: FxHashMap::default(),
                thread_sideband: None,
                owner_threads: FxHashSet::default(),
                records_period: sampling.records_period(),
                stack_copies: stack_copy.map(|copy| StackCopies { copy, ring: 4096 << sample_ring_order }),
                stack_layout: sampling.stack_layout(),
                shared_events: (0..)
                    .zip(events)
                    .filter_map(|(index, event)| Some((index, event.spec.shared_kind()?)))
                    .collect(),
                weights: event_to_open::sample_weights(target, sampling),
                disabled_event: Cell::new(NO_EVENT),
                enabled_by_exec: FxHashSet::default(),
                excludes_kernel: exclude_kernel,
                counts_thread_time: false,
                notes: Vec::new(),
            },
        }
    }

    fn open(mut self) -> Result<Counters, OpenError> {
        if let Some(sampler) = self.sampler {
            self.attach_to_tracepoints(sampler)?;
        }
        if self.sampling.counts_in_threads(self.target) {
            self.open_in_threads()?;
            if self.counters.rings.is_empty() {
                return Err(OpenError::Counter(io::Error::from_raw_os_error(libc::ESRCH), 0));
            }
        }
        if self.events.iter().any(|event| event.on_cpus) {
            match self.target {
                Target::Cgroup(directory) => self.open_scope(Scope::Cgroup(directory))?,
                _ => self.open_scope(Scope::System)?,
            }
        }
        if let Some(sampler) = self.sampler {
            self.open_stack_outputs(sampler)?;
            if self.target.is_followed() {
                let replaces_cpus = !self.sampling.has_sideband_of_threads(self.target);
                let options = self.sideband_options.clone();
                self.counters.thread_sideband = Some(ThreadSideband::new(self.target, options, replaces_cpus));
            }
        }
        Ok(self.counters)
    }

    fn open_in_threads(&mut self) -> Result<(), OpenError> {
        match self.target {
            Target::Command(pid) => self.open_scope(Scope::TaskAndChildren(*pid)),
            Target::Threads(tids) => tids.iter().try_for_each(|tid| self.open_thread(*tid)),
            target @ Target::Processes { .. } => target.attach_to_processes(|pid| self.open_process(pid)),
            Target::Cgroup(_) | Target::System => Ok(()),
        }
    }

    /// Opens counters for all threads of a process, including those that it creates in the meantime.
    fn open_process(&mut self, pid: u32) -> Result<(), OpenError> {
        loop {
            let threads = procfs::list_threads(pid).unwrap_or_default();
            let new: Vec<u32> = threads.into_iter().filter(|tid| !self.counters.owner_threads.contains(tid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for tid in new {
                self.open_thread(tid)?;
            }
        }
    }

    fn open_thread(&mut self, tid: u32) -> Result<(), OpenError> {
        self.counters.owner_threads.insert(tid);
        match self.open_scope(Scope::Thread(tid)) {
            // The thread has exited in the meantime.
            Err(OpenError::Counter(error, _)) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            result => result,
        }
    }

    /// Opens the counters of a scope on all CPUs. The first scope's counters get rings, further ones write into those.
    fn open_scope(&mut self, scope: Scope<'_>) -> Result<(), OpenError> {
        for index in 0..self.cpus.len() {
            let mut sideband = self.open_sideband(index, scope)?;
            let mut switches = self.open_switches(index, scope)?;
            for number in 0..self.events.len() {
                let EventToOpen { spec, index: event, on_cpus, .. } = self.events[number];
                if on_cpus == scope.is_of_threads() {
                    continue;
                }
                let failed = |error| OpenError::Counter(error, event);
                let samples = self.open_samples(index, scope, number).map_err(failed)?;
                if let Some(filter) = &spec.filter {
                    sys::set_filter(samples.file(), filter).map_err(|error| OpenError::Filter(error, event))?;
                }
                match (self.counters.rings.get(index), sideband.take()) {
                    (Some(rings), sideband) => {
                        if let Some(sideband) = sideband {
                            sys::share_ring(sideband.file(), rings.sideband.file()).map_err(failed)?;
                            self.counters.ringless.push(sideband);
                        }
                        sys::share_ring(samples.file(), rings.samples.file()).map_err(failed)?;
                        self.counters.ringless.push(samples);
                    }
                    (None, sideband) => {
                        let sideband = sideband.expect("the first event takes it, and creates the rings");
                        let cpu = self.cpus[index];
                        let sideband = map_ring(sideband, self.sideband_ring_order, cpu, self.other_layout)?;
                        let samples = map_ring(samples, self.sample_ring_order, cpu, self.sample_layout)?;
                        self.counters.rings.push(CpuRings { samples, sideband, switches: switches.take() });
                    }
                }
            }
        }
        Ok(())
    }
}

impl Opener<'_> {
    /// Opens a counter of samples on a CPU.
    fn open_samples(&mut self, index: usize, scope: Scope<'_>, number: usize) -> io::Result<Counter> {
        let EventToOpen { spec, index: event, options, on_cpus, lead } = &mut self.events[number];
        let samples = open_counter(*spec, scope, self.cpus[index], options)?;
        if let Some(sampler) = self.sampler.filter(|_| !spec.program_kind().is_of_tracepoint()) {
            let program = sampler.attach(samples.file(), spec.program_kind(), self.cpus[index])?;
            self.counters.programs.extend(program);
        }
        let source = Source { event: *event as u32, owner: scope.owner(), on_cpu: *on_cpus, lead: *lead };
        self.note_counter(&samples, scope, Some(source))?;
        Ok(samples)
    }

    /// Makes the tracepoints run the BPF program. They run it for all counters, but only until the counter is closed to which it was
    /// attached, or the copy of it in a thread that exits. So it is attached to counters of which there are no copies.
    fn attach_to_tracepoints(&mut self, sampler: &StackSampler) -> Result<(), OpenError> {
        for EventToOpen { spec, index, .. } in &self.events {
            if spec.program_kind().is_of_tracepoint() {
                let failed = |error| OpenError::Counter(error, *index);
                let holder = Counter::new(*spec, (Proc::CURRENT, Cpu::ALL), Opts::default()).map_err(failed)?;
                sampler.attach(holder.file(), spec.program_kind(), 0).map_err(failed)?;
                self.counters.program_holders.push(holder);
            }
        }
        Ok(())
    }

    /// True if a scope is that of a CPU, whose rings get the records of the target's threads already.
    fn has_rings_of_threads(&self, index: usize, scope: Scope<'_>) -> bool {
        !scope.is_of_threads() && self.counters.rings.get(index).is_some()
    }

    /// Opens the counter of the side-band records that samples of a scope need, unless there are some already.
    fn open_sideband(&mut self, index: usize, scope: Scope<'_>) -> Result<Option<Counter>, OpenError> {
        if self.has_rings_of_threads(index, scope) {
            return Ok(None);
        }
        let scope = match (self.target, scope) {
            (Target::Command(pid), _) => Scope::TaskAndChildren(*pid),
            // A process may enter a cgroup with all its mappings.
            (_, Scope::Cgroup(_)) => Scope::System,
            (_, scope) => scope,
        };
        // Beside side-band records, those of threads count the CPU time of the target.
        let event = if scope.is_of_threads() { Software::TaskClock } else { Software::Dummy };
        self.counters.counts_thread_time |= scope.is_of_threads();
        let sideband = open_counter(event, scope, self.cpus[index], &mut self.sideband_options);
        let sideband = sideband.map_err(OpenError::from_first_event)?;
        self.note_counter(&sideband, scope, None).map_err(OpenError::from_first_event)?;
        Ok(Some(sideband))
    }

    /// Opens the counters by which the BPF program writes stacks into the rings of samples.
    fn open_stack_outputs(&mut self, sampler: &StackSampler) -> Result<(), OpenError> {
        for (rings, cpu) in self.counters.rings.iter_mut().zip(&self.cpus) {
            let [plain_options, waking_options] = &mut self.stack_options;
            let (plain, plain_id) = open_output(*cpu, plain_options, &rings.samples)?;
            let (waking, waking_id) = open_output(*cpu, waking_options, &rings.samples)?;
            sampler.set_outputs(*cpu, plain.file(), waking.file()).map_err(OpenError::from_first_event)?;
            rings.samples.stack_counters = Some([plain_id, waking_id]);
            for id in [plain_id, waking_id] {
                self.counters.sources.insert(id, Source::of_records(STACK_EVENT, None, true));
            }
            self.counters.ringless.extend([plain, waking]);
        }
        Ok(())
    }

    /// Notes how a counter is enabled, and which event it counts if it is not one of side-band records.
    fn note_counter(&mut self, counter: &Counter, scope: Scope<'_>, source: Option<Source>) -> io::Result<()> {
        let id = counter.id()?;
        if let Scope::TaskAndChildren(_) = scope {
            self.counters.enabled_by_exec.insert(id);
        }
        if let Some(source) = source {
            self.counters.sources.insert(id, source);
        }
        Ok(())
    }

    /// Opens the counter of context switches, if they are recorded and not yet by another. Returns its ring if it is the
    /// first one on its CPU.
    fn open_switches(&mut self, index: usize, scope: Scope<'_>) -> Result<Option<Ring>, OpenError> {
        if self.has_rings_of_threads(index, scope) {
            return Ok(None);
        }
        let Some(options) = &mut self.switch_options else { return Ok(None) };
        let switches =
            open_counter(Software::Dummy, scope, self.cpus[index], options).map_err(OpenError::from_first_event)?;
        let source = Source::of_records(SWITCH_EVENT, scope.owner(), !scope.is_of_threads());
        self.note_counter(&switches, scope, Some(source)).map_err(OpenError::from_first_event)?;
        match self.counters.rings.get(index).and_then(|rings| rings.switches.as_ref()) {
            None => {
                let order = self.sampling.switch_ring_order(self.sample_ring_order);
                Ok(Some(map_ring(switches, order, self.cpus[index], self.other_layout)?))
            }
            Some(leader) => {
                sys::share_ring(switches.file(), leader.file()).map_err(OpenError::from_first_event)?;
                self.counters.ringless.push(switches);
                Ok(None)
            }
        }
    }
}

/// Opens a counter by which the BPF program writes into a ring; returns it with its ID.
fn open_output(cpu: u32, options: &mut Opts, ring: &Ring) -> Result<(Counter, u64), OpenError> {
    let output = open_counter(&EventSpec::bpf_output(), Scope::System, cpu, options);
    let output = output.map_err(OpenError::from_first_event)?;
    sys::share_ring(output.file(), ring.file()).map_err(OpenError::from_first_event)?;
    let id = output.id().map_err(OpenError::from_first_event)?;
    Ok((output, id))
}

/// Maps a counter's ring buffer of 2^`order` pages.
fn map_ring(counter: Counter, order: u8, cpu: u32, layout: Layout) -> Result<Ring, OpenError> {
    let id = counter.id().map_err(OpenError::from_first_event)?;
    let counter_id = (layout.sample_type & sample_type::ID == 0).then_some(id);
    let sampler = counter.sampler(order).map_err(OpenError::Ring)?;
    Ok(Ring { counter, sampler, cpu, counter_id, layout, stack_counters: None })
}
