//! Counters and their rings: for each CPU one ring for samples, and one for all that samples refer to.
//!
//! What samples refer to (new mappings, programs, threads) wakes the recorder at once, so that files are opened while
//! they are there; samples wake it when their ring is half full.

use std::fs::File;
use std::io;

use perf_event_open::config::{
    CallChain, Cgroup, Clock, Cpu, Inherit, OnExecve, Opts, Proc, RecordIdFormat, RegsMask, SampleOn, SampleSkid, Size,
    UseBuildId, WakeUpOn,
};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;
use perf_event_open::sample::Sampler;
use rustc_hash::{FxHashMap, FxHashSet};

use super::events::{Excluded, Metric};
use super::refusal;
use super::sampling::{CallGraph, Rate, Sampling};
use super::sys;
use super::target::{self, Target};
use crate::Error;
use crate::perf::event::Layout;
use crate::perf::unwind;

/// A counter whose records go to a ring of its own.
pub struct Ring {
    counter: Counter,
    sampler: Sampler,
}

impl Ring {
    /// The ring's records.
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// The file to wait for.
    pub fn file(&self) -> &File {
        self.counter.file()
    }
}

/// The two rings of a CPU.
pub struct CpuRings {
    /// Samples.
    pub samples: Ring,
    /// What samples refer to.
    pub side: Ring,
}

/// All counters of a recording.
pub struct Counters {
    /// The rings, a pair a CPU.
    pub rings: Vec<CpuRings>,
    /// Counters of further threads, which write into the same rings.
    others: Vec<Counter>,
    /// For each counter of samples, by its id, what it counts.
    counted: FxHashMap<u64, Counted>,
    /// The threads that have counters of their own.
    owned: FxHashSet<u32>,
    enable_by_hand: bool,
    /// The layout of all records.
    pub layout: Layout,
    /// What the user should know of how they were opened.
    pub notes: Vec<String>,
}

impl Counters {
    /// Opens what the target needs. They count from [`Counters::start`] on, or for a command when its program runs.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason.
    pub fn open(target: &Target, sampling: &Sampling) -> Result<Self, Error> {
        raise_file_limit();
        let (best, smallest) = sampling.ring_sizes();
        let (mut without_kernel, mut size) = (false, best);
        loop {
            match Opener::new(target, sampling, without_kernel, size).open() {
                Err(Failure::Counter(error, _)) if error.raw_os_error() == Some(libc::EACCES) && !without_kernel => {
                    without_kernel = true;
                }
                Err(Failure::Ring(error)) if error.raw_os_error() == Some(libc::EPERM) && size > smallest => {
                    size -= 1;
                }
                Err(Failure::Counter(error, metric)) => return Err(refusal::counter(&error, target, sampling, metric)),
                Err(Failure::Ring(error)) => return Err(refusal::rings(&error)),
                Ok(mut counters) => {
                    let kernel_left_out = without_kernel.then(refusal::kernel_left_out);
                    let rings_reduced = (size < best).then(|| refusal::rings_reduced(4 << size));
                    counters.notes.extend(kernel_left_out.into_iter().chain(rings_reduced));
                    return Ok(counters);
                }
            }
        }
    }

    /// Starts counting, unless a command's program will.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(&self) -> io::Result<()> {
        if !self.enable_by_hand {
            return Ok(());
        }
        self.all().try_for_each(Counter::enable)
    }

    /// Stops counting.
    pub fn stop(&self) {
        for counter in self.all() {
            // One whose thread has gone counts no more anyway.
            let _ = counter.disable();
        }
    }

    /// How many samples of each event the kernel says it dropped, where it can say.
    pub fn lost(&self) -> Option<Vec<u64>> {
        let mut lost = Vec::new();
        let leaders = self.rings.iter().map(|rings| &rings.samples.counter);
        for counter in leaders.chain(&self.others) {
            let Some(counted) = self.counted.get(&counter.id().ok()?) else { continue };
            let event = counted.event as usize;
            lost.resize(lost.len().max(event + 1), 0);
            lost[event] += counter.stat().ok()?.lost_records?;
        }
        Some(lost)
    }

    /// The number of the event of which counter `id` took a sample in thread `tid`, if it counts: a thread that was born
    /// while counters were opened may have its own and its parent's, of which its own count.
    pub fn event(&self, tid: u32, id: u64) -> Option<u32> {
        let counted = self.counted.get(&id)?;
        let counts = !self.owned.contains(&tid) || counted.owner.is_none_or(|owner| owner == tid);
        counts.then_some(counted.event)
    }

    fn all(&self) -> impl Iterator<Item = &Counter> {
        self.rings.iter().flat_map(|rings| [&rings.side.counter, &rings.samples.counter]).chain(&self.others)
    }
}

/// What a counter counts.
#[derive(Clone, Copy, Debug)]
struct Counted {
    /// The event's number.
    event: u32,
    /// The thread, where each has its own counters.
    owner: Option<u32>,
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
    metrics: Vec<(&'a Metric, Opts)>,
    side_options: Opts,
    sample_ring: u8,
    cpus: Vec<u32>,
    counters: Counters,
}

impl<'a> Opener<'a> {
    fn new(target: &'a Target, sampling: &'a Sampling, without_kernel: bool, sample_ring: u8) -> Self {
        let options = |metric: &Metric, rate| sample_options(target, sampling, metric, rate, without_kernel);
        Self {
            target,
            sampling,
            metrics: sampling.metrics.iter().map(|(metric, rate)| (metric, options(metric, *rate))).collect(),
            side_options: side_options(target, without_kernel),
            sample_ring,
            cpus: sampling.cpus.clone().unwrap_or_else(target::online_cpus),
            counters: Counters {
                rings: Vec::new(),
                others: Vec::new(),
                counted: FxHashMap::default(),
                owned: FxHashSet::default(),
                layout: sampling.call_graph.layout(),
                enable_by_hand: !matches!(target, Target::Command(_)),
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
            let threads = target::threads(pid).unwrap_or_default();
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
            for (event, (metric, options)) in self.metrics.iter_mut().enumerate() {
                let failed = |error| Failure::Counter(error, event);
                let samples = counter(*metric, whose, cpu, options).map_err(failed)?;
                let owner = if let Whose::Thread(tid) = whose { Some(tid) } else { None };
                let counted = Counted { event: event as u32, owner };
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
                        let side = ring(side.expect("the first event's"), self.sampling.side_ring(self.sample_ring))?;
                        let samples = ring(samples, self.sample_ring)?;
                        self.counters.rings.push(CpuRings { samples, side });
                    }
                }
            }
        }
        Ok(())
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
    /// Whose side-band is needed beside samples: a process may enter a cgroup with all that it has mapped.
    fn beside(self) -> Self {
        if let Self::Cgroup(_) = self { Self::Everybody } else { self }
    }
}

fn ring(counter: Counter, exponent: u8) -> Result<Ring, Failure> {
    let sampler = counter.sampler(exponent).map_err(Failure::Ring)?;
    Ok(Ring { counter, sampler })
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

/// The options of a counter that takes samples.
fn sample_options(target: &Target, sampling: &Sampling, metric: &Metric, rate: Rate, without_kernel: bool) -> Opts {
    let Excluded { user, kernel } = metric.excluded;
    let without_kernel = without_kernel || kernel;
    let mut options = common_options(target, without_kernel);
    options.exclude.user = user;
    options.sample_skid = match metric.precise {
        0 => SampleSkid::Arbitrary,
        1 => SampleSkid::Const,
        2 => SampleSkid::ReqZero,
        _ => SampleSkid::Zero,
    };
    options.sample_on = match rate {
        Rate::Frequency(hertz) => SampleOn::Freq(hertz),
        Rate::Period(events) => SampleOn::Count(events),
    };
    options.stat_format.lost_records = true;
    let max_stack_frames = sampling.max_stack.unwrap_or(0);
    let mut call_chain =
        CallChain { exclude_user: false, exclude_kernel: without_kernel, defer_user: false, max_stack_frames };
    if let CallGraph::Dwarf(bytes) = sampling.call_graph {
        call_chain.exclude_user = true;
        options.sample_format.user_regs = Some(RegsMask(unwind::REGISTERS));
        options.sample_format.user_stack = Some(Size(bytes));
    }
    // The kernel refuses a callchain that leaves both parts out; an empty one does the same.
    call_chain.exclude_kernel &= !call_chain.exclude_user;
    options.sample_format.call_chain = Some(call_chain);
    if let Some(bytes) = sampling.wake_after() {
        options.wake_up.on = WakeUpOn::Bytes(bytes);
    }
    options
}

/// The options of a counter that only tells what samples refer to.
fn side_options(target: &Target, without_kernel: bool) -> Opts {
    let mut options = common_options(target, without_kernel);
    options.extra_record.task = true;
    options.extra_record.comm = true;
    options.extra_record.mmap.code = true;
    options.extra_record.mmap.ext = Some(UseBuildId(false));
    options.wake_up.on = WakeUpOn::Bytes(1);
    options
}

fn common_options(target: &Target, without_kernel: bool) -> Opts {
    let mut options = Opts::default();
    options.exclude.hv = true;
    options.exclude.idle = true;
    options.exclude.kernel = without_kernel;
    if matches!(target, Target::Command(_) | Target::Processes(_)) {
        options.inherit = Some(Inherit::NewChild);
    }
    if matches!(target, Target::Command(_)) {
        options.on_execve = Some(OnExecve::Enable);
    }
    options.sample_format.code_addr = true;
    options.sample_format.period = true;
    options.record_id_all = true;
    options.record_id_format = RecordIdFormat { id: true, stream_id: false, cpu: true, task: true, time: true };
    options.timer = Some(Clock::Monotonic);
    options
}

fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
