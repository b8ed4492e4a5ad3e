//! Opening counters: for every CPU, and where threads are recorded for each of them, with as large rings as the kernel
//! gives.

use std::fs::File;
use std::io;

use perf_event_open::config::{Cgroup, Cpu, Opts, Proc};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;
use rustc_hash::{FxHashMap, FxHashSet};

use super::attr;
use crate::Error;
use crate::perf::event::{Layout, sample_type};
use crate::record::counters::sampling::Sampling;
use crate::record::counters::{Counted, Counters, CpuRings, Ring, SWITCHES};
use crate::record::errors;
use crate::record::events::spec::EventSpec;
use crate::record::sys;
use crate::record::target::Target;
use crate::record::{cpus, procfs};

impl Counters {
    /// Opens what the target needs. They count from [`Counters::start`] on, or for a command when its program runs.
    ///
    /// # Errors
    /// [`Error::System`] with the reason.
    pub fn open(target: &Target, sampling: &Sampling) -> Result<Self, Error> {
        raise_file_limit();
        sampling.must_fit()?;
        let (best, smallest) = sampling.ring_sizes();
        let (mut without_kernel, mut size) = (false, best);
        loop {
            match Opener::new(target, sampling, without_kernel, size).open() {
                Err(Failure::Counter(error, _))
                    if error.raw_os_error() == Some(libc::EACCES) && !without_kernel && !sampling.needs_kernel() =>
                {
                    without_kernel = true;
                }
                Err(Failure::Ring(error)) if error.raw_os_error() == Some(libc::EPERM) && size > smallest => {
                    size -= 1;
                }
                Err(Failure::Counter(error, metric)) => return Err(errors::counter(&error, target, sampling, metric)),
                Err(Failure::Ring(error)) => return Err(errors::rings(&error)),
                Ok(mut counters) => {
                    let kernel_left_out = without_kernel.then(errors::kernel_left_out);
                    let rings_reduced = (size < best).then(|| errors::rings_reduced(4 << size));
                    counters.notes.extend(kernel_left_out.into_iter().chain(rings_reduced));
                    return Ok(counters);
                }
            }
        }
    }
}

/// Why counters could not be opened.
enum Failure {
    /// Those of an event, by its number.
    Counter(io::Error, usize),
    Ring(io::Error),
}

struct Opener<'a> {
    target: &'a Target,
    sampling: &'a Sampling,
    /// The events with their options.
    metrics: Vec<(&'a EventSpec, Opts)>,
    side_options: Opts,
    switch_options: Option<Opts>,
    sample_ring: u8,
    /// The layout of samples, and of all else.
    layouts: (Layout, Layout),
    cpus: Vec<u32>,
    counters: Counters,
}

impl<'a> Opener<'a> {
    fn new(target: &'a Target, sampling: &'a Sampling, without_kernel: bool, sample_ring: u8) -> Self {
        let options = |metric: &EventSpec, rate| attr::of_samples(target, sampling, metric, rate, without_kernel);
        Self {
            target,
            sampling,
            metrics: sampling.metrics.iter().map(|(metric, rate)| (metric, options(metric, *rate))).collect(),
            side_options: attr::of_the_side(target, without_kernel),
            switch_options: sampling.switches.then(|| attr::of_switches(target)),
            sample_ring,
            layouts: (sampling.layout(sampling.names_counters(target)), sampling.layout(target.is_per_thread())),
            cpus: sampling.cpus.clone().unwrap_or_else(cpus::online_cpus),
            counters: Counters {
                rings: Vec::new(),
                others: Vec::new(),
                counted: FxHashMap::default(),
                owned: FxHashSet::default(),
                tells_period: sampling.tells_period(),
                longest_wait: sampling.longest_wait(sample_ring),
                measures: sampling.metrics.iter().map(|(m, rate)| (rate.period(), m.quantity.clone())).collect(),
                enable_by_hand: !matches!(target, Target::Command(_)),
                of_cpus: matches!(target, Target::System | Target::Cgroup(_)),
                notes: Vec::new(),
            },
        }
    }

    fn open(mut self) -> Result<Counters, Failure> {
        match self.target {
            Target::System => self.open_on_cpus(Whose::Everybody)?,
            Target::Cgroup(folder) => self.open_on_cpus(Whose::Cgroup(folder))?,
            Target::Command(pid) => self.open_on_cpus(Whose::Task(*pid))?,
            Target::Threads(tids) => {
                for tid in tids {
                    self.open_thread(*tid)?;
                }
            }
            Target::Processes(pids) => {
                for pid in pids {
                    self.open_threads(*pid)?;
                }
            }
        }
        if self.counters.rings.is_empty() {
            return Err(Failure::Counter(io::Error::from_raw_os_error(libc::ESRCH), 0));
        }
        Ok(self.counters)
    }

    /// Opens counters for all threads of a process, and for those that it makes meanwhile.
    fn open_threads(&mut self, pid: u32) -> Result<(), Failure> {
        loop {
            let threads = procfs::list_threads(pid).unwrap_or_default();
            let new: Vec<u32> = threads.into_iter().filter(|tid| !self.counters.owned.contains(tid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for tid in new {
                self.open_thread(tid)?;
            }
        }
    }

    fn open_thread(&mut self, tid: u32) -> Result<(), Failure> {
        self.counters.owned.insert(tid);
        match self.open_on_cpus(Whose::Thread(tid)) {
            // It has ended meanwhile.
            Err(Failure::Counter(error, _)) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            result => result,
        }
    }

    fn open_on_cpus(&mut self, whose: Whose<'_>) -> Result<(), Failure> {
        for index in 0..self.cpus.len() {
            let cpu = self.cpus[index];
            let side = counter(Software::Dummy, whose.beside(), cpu, &mut self.side_options);
            let mut side = Some(side.map_err(|error| Failure::Counter(error, 0))?);
            let mut switches = self.open_switches(index, whose)?;
            for (event, (metric, options)) in self.metrics.iter_mut().enumerate() {
                let failed = |error| Failure::Counter(error, event);
                let samples = counter(*metric, whose, cpu, options).map_err(failed)?;
                let counted = Counted { event: event as u32, owner: whose.owner() };
                self.counters.counted.insert(samples.id().map_err(failed)?, counted);
                match (self.counters.rings.get(index), side.take()) {
                    (Some(rings), side) => {
                        if let Some(side) = side {
                            sys::share_ring(side.file(), rings.side.file()).map_err(failed)?;
                            self.counters.others.push(side);
                        }
                        sys::share_ring(samples.file(), rings.samples.file()).map_err(failed)?;
                        self.counters.others.push(samples);
                    }
                    (None, side) => {
                        let side = side.expect("the first event's");
                        let side = ring(side, self.sampling.side_ring(self.sample_ring), cpu, self.layouts.1)?;
                        let samples = ring(samples, self.sample_ring, cpu, self.layouts.0)?;
                        self.counters.rings.push(CpuRings { samples, side, switches: switches.take() });
                    }
                }
            }
        }
        Ok(())
    }
}

impl Opener<'_> {
    /// A counter that tells of switches, where they are wanted: the ring of a CPU, or one that shares it.
    fn open_switches(&mut self, index: usize, whose: Whose<'_>) -> Result<Option<Ring>, Failure> {
        let failed = |error| Failure::Counter(error, 0);
        let Some(options) = &mut self.switch_options else { return Ok(None) };
        let switches = counter(Software::Dummy, whose, self.cpus[index], options).map_err(failed)?;
        let counted = Counted { event: SWITCHES, owner: whose.owner() };
        self.counters.counted.insert(switches.id().map_err(failed)?, counted);
        match self.counters.rings.get(index).and_then(|rings| rings.switches.as_ref()) {
            None => {
                let size = self.sampling.switch_ring(self.sample_ring);
                Ok(Some(ring(switches, size, self.cpus[index], self.layouts.1)?))
            }
            Some(leader) => {
                sys::share_ring(switches.file(), leader.file()).map_err(failed)?;
                self.counters.others.push(switches);
                Ok(None)
            }
        }
    }
}

/// Whose events are counted.
#[derive(Clone, Copy)]
enum Whose<'a> {
    Everybody,
    Cgroup(&'a File),
    /// A thread's and those of all that it makes.
    Task(u32),
    /// A thread's, beside counters of other threads of its process.
    Thread(u32),
}

impl Whose<'_> {
    fn owner(self) -> Option<u32> {
        if let Self::Thread(tid) = self { Some(tid) } else { None }
    }

    /// Whose side-band is needed beside samples: a process may enter a cgroup with all that it has mapped.
    fn beside(self) -> Self {
        if let Self::Cgroup(_) = self { Self::Everybody } else { self }
    }
}

fn ring(counter: Counter, exponent: u8, cpu: u32, layout: Layout) -> Result<Ring, Failure> {
    let id = counter.id().map_err(|error| Failure::Counter(error, 0))?;
    let only = (layout.sample_type & sample_type::ID == 0).then_some(id);
    let sampler = counter.sampler(exponent).map_err(Failure::Ring)?;
    Ok(Ring { counter, sampler, cpu, only, layout })
}

fn counter(
    event: impl TryInto<perf_event_open::event::Event, Error = io::Error> + Clone,
    whose: Whose<'_>,
    cpu: u32,
    options: &mut Opts,
) -> io::Result<Counter> {
    let open = |options: &Opts| match whose {
        Whose::Everybody => Counter::new(event.clone(), (Proc::ALL, Cpu(cpu)), options),
        Whose::Cgroup(folder) => Counter::new(event.clone(), (Cgroup(folder), Cpu(cpu)), options),
        Whose::Task(task) | Whose::Thread(task) => Counter::new(event.clone(), (Proc(task), Cpu(cpu)), options),
    };
    match open(options) {
        // Before Linux 6.0 a counter does not tell its losses.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) && options.stat_format.lost_records => {
            options.stat_format.lost_records = false;
            open(options)
        }
        result => result,
    }
}

fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
