//! Opens counters on each CPU, for each thread if threads are recorded, with rings as large as the kernel allows.

use std::fs::File;
use std::io;

use perf_event_open::config::{Cgroup, Cpu, Opts, Proc};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;
use rustc_hash::{FxHashMap, FxHashSet};

use super::attr;
use super::sampling::Sampling;
use super::{Counters, CpuRings, Ring, STACK_EVENT, SWITCH_EVENT, SampleWeight, Source, StackCopies};
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
        raise_file_limit();
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
                Err(OpenError::Ring(error)) => return Err(errors::ring_error(&error)),
                Ok(mut counters) => {
                    let kernel_note = exclude_kernel.then(errors::kernel_frames_note);
                    let ring_note = sampling
                        .is_limited_by_rings(ring_order, preferred_order)
                        .then(|| errors::small_rings_note(4 << ring_order));
                    counters.notes.extend(kernel_note.into_iter().chain(ring_note));
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
    /// Mapping a ring.
    Ring(io::Error),
}

/// Opens the counters of a target, which it collects in `counters`.
struct Opener<'a> {
    target: &'a Target,
    sampling: &'a Sampling,
    /// The BPF program that takes the user stacks, if one does.
    sampler: Option<&'a StackSampler>,
    events: Vec<(&'a EventSpec, Opts)>,
    sideband_options: Opts,
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
        let sample_options = |event| attr::sample_options(target, sampling, event, exclude_kernel, stack_copy);
        Self {
            target,
            sampling,
            sampler,
            events: events.clone().map(|event| (&event.spec, sample_options(event))).collect(),
            sideband_options: attr::sideband_options(target, sampling, exclude_kernel),
            switch_options: sampling.record_switches.then(|| attr::switch_options(target, sampling)),
            sample_ring_order,
            sideband_ring_order,
            sample_layout: sampling.record_layout(sampling.records_counter_id(target)),
            other_layout: sampling.record_layout(sampling.is_per_thread(target)),
            cpus: sampling.cpus.clone().unwrap_or_else(cpus::online_cpus),
            counters: Counters {
                rings: Vec::new(),
                ringless: Vec::new(),
                sources: FxHashMap::default(),
                owner_threads: FxHashSet::default(),
                records_period: sampling.records_period(),
                stack_copies: stack_copy.map(|copy| StackCopies { copy, ring: 4096 << sample_ring_order }),
                stack_layout: sampling.stack_layout(),
                weights: events
                    .map(|event| SampleWeight { period: event.rate.period(), value: event.spec.value.clone() })
                    .collect(),
                enable_explicitly: !sampling.is_enabled_by_exec(target),
                is_per_cpu: sampling.is_per_cpu(target),
                notes: Vec::new(),
            },
        }
    }

    fn open(mut self) -> Result<Counters, OpenError> {
        match self.target {
            Target::System => self.open_on_cpus(Scope::System)?,
            Target::Cgroup(directory) => self.open_on_cpus(Scope::Cgroup(directory))?,
            _ if self.sampling.takes_stacks => self.open_on_cpus(Scope::System)?,
            Target::Command(pid) => self.open_on_cpus(Scope::TaskAndChildren(*pid))?,
            Target::Threads(tids) => {
                for tid in tids {
                    self.open_thread(*tid)?;
                }
            }
            Target::Processes(pids) => {
                for pid in pids {
                    self.open_process(*pid)?;
                }
            }
        }
        if self.counters.rings.is_empty() {
            return Err(OpenError::Counter(io::Error::from_raw_os_error(libc::ESRCH), 0));
        }
        Ok(self.counters)
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
        match self.open_on_cpus(Scope::Thread(tid)) {
            // The thread has exited in the meantime.
            Err(OpenError::Counter(error, _)) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            result => result,
        }
    }

    /// Opens the counters of a scope on all CPUs. The first scope's counters get rings, further ones write into those.
    fn open_on_cpus(&mut self, scope: Scope<'_>) -> Result<(), OpenError> {
        for index in 0..self.cpus.len() {
            let cpu = self.cpus[index];
            let sideband = open_counter(Software::Dummy, self.sideband_scope(scope), cpu, &mut self.sideband_options);
            let mut sideband = Some(sideband.map_err(|error| OpenError::Counter(error, 0))?);
            let mut switches = self.open_switches(index, scope)?;
            for (event, (spec, options)) in self.events.iter_mut().enumerate() {
                let failed = |error| OpenError::Counter(error, event);
                let samples = open_counter(*spec, scope, cpu, options).map_err(failed)?;
                if let Some(sampler) = self.sampler {
                    sampler.attach(samples.file()).map_err(failed)?;
                }
                let source = Source { event: event as u32, owner: scope.owner() };
                self.counters.sources.insert(samples.id().map_err(failed)?, source);
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
                        let sideband = map_ring(sideband, self.sideband_ring_order, cpu, self.other_layout)?;
                        let samples = map_ring(samples, self.sample_ring_order, cpu, self.sample_layout)?;
                        self.counters.rings.push(CpuRings { samples, sideband, switches: switches.take() });
                    }
                }
            }
            self.open_stack_output(index)?;
        }
        Ok(())
    }
}

impl Opener<'_> {
    /// Returns the scope of the side-band records that samples of a scope need. The processes of a command are known
    /// from their start, so that those of others need not wake the recorder.
    fn sideband_scope<'s>(&self, scope: Scope<'s>) -> Scope<'s> {
        match self.target {
            Target::Command(pid) => Scope::TaskAndChildren(*pid),
            _ => scope.for_sideband(),
        }
    }

    /// Opens the counter by which the BPF program writes stacks into the ring of samples of a CPU.
    fn open_stack_output(&mut self, index: usize) -> Result<(), OpenError> {
        let failed = |error| OpenError::Counter(error, 0);
        let (Some(sampler), Some(rings)) = (self.sampler, self.counters.rings.get_mut(index)) else { return Ok(()) };
        let mut options = attr::stack_options(self.target, self.sampling);
        let output = open_counter(&EventSpec::bpf_output(), Scope::System, self.cpus[index], &mut options);
        let output = output.map_err(failed)?;
        sys::share_ring(output.file(), rings.samples.file()).map_err(failed)?;
        sampler.set_output(self.cpus[index], output.file()).map_err(failed)?;
        let id = output.id().map_err(failed)?;
        rings.samples.stack_counter = Some(id);
        self.counters.sources.insert(id, Source { event: STACK_EVENT, owner: None });
        self.counters.ringless.push(output);
        Ok(())
    }

    /// Opens the counter of context switches, if they are recorded. Returns its ring if it is the first one on its CPU.
    fn open_switches(&mut self, index: usize, scope: Scope<'_>) -> Result<Option<Ring>, OpenError> {
        let failed = |error| OpenError::Counter(error, 0);
        let Some(options) = &mut self.switch_options else { return Ok(None) };
        let switches = open_counter(Software::Dummy, scope, self.cpus[index], options).map_err(failed)?;
        let source = Source { event: SWITCH_EVENT, owner: scope.owner() };
        self.counters.sources.insert(switches.id().map_err(failed)?, source);
        match self.counters.rings.get(index).and_then(|rings| rings.switches.as_ref()) {
            None => {
                let order = self.sampling.switch_ring_order(self.sample_ring_order);
                Ok(Some(map_ring(switches, order, self.cpus[index], self.other_layout)?))
            }
            Some(leader) => {
                sys::share_ring(switches.file(), leader.file()).map_err(failed)?;
                self.counters.ringless.push(switches);
                Ok(None)
            }
        }
    }
}

/// The threads that a counter counts.
#[derive(Clone, Copy)]
enum Scope<'a> {
    System,
    Cgroup(&'a File),
    /// A thread, and all threads and processes that it creates.
    TaskAndChildren(u32),
    /// A thread whose siblings have counters of their own.
    Thread(u32),
}

impl Scope<'_> {
    fn owner(self) -> Option<u32> {
        if let Self::Thread(tid) = self { Some(tid) } else { None }
    }

    /// Returns the scope of the side-band records that samples of this scope need. A cgroup needs those of the whole
    /// system: a process may enter it with all its mappings.
    fn for_sideband(self) -> Self {
        if let Self::Cgroup(_) = self { Self::System } else { self }
    }
}

/// Maps a counter's ring buffer of 2^`order` pages.
fn map_ring(counter: Counter, order: u8, cpu: u32, layout: Layout) -> Result<Ring, OpenError> {
    let id = counter.id().map_err(|error| OpenError::Counter(error, 0))?;
    let counter_id = (layout.sample_type & sample_type::ID == 0).then_some(id);
    let sampler = counter.sampler(order).map_err(OpenError::Ring)?;
    Ok(Ring { counter, sampler, cpu, counter_id, layout, stack_counter: None })
}

fn open_counter(
    event: impl TryInto<perf_event_open::event::Event, Error = io::Error> + Clone,
    scope: Scope<'_>,
    cpu: u32,
    options: &mut Opts,
) -> io::Result<Counter> {
    let open = |options: &Opts| match scope {
        Scope::System => Counter::new(event.clone(), (Proc::ALL, Cpu(cpu)), options),
        Scope::Cgroup(directory) => Counter::new(event.clone(), (Cgroup(directory), Cpu(cpu)), options),
        Scope::TaskAndChildren(task) | Scope::Thread(task) => {
            Counter::new(event.clone(), (Proc(task), Cpu(cpu)), options)
        }
    };
    match open(options) {
        // Before Linux 6.0 a counter cannot report the records that it lost.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) && options.stat_format.lost_records => {
            options.stat_format.lost_records = false;
            open(options)
        }
        result => result,
    }
}

/// Raises the soft limit of open files to the hard limit: each counter is a file.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
