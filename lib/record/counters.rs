//! Counters and their rings: for each CPU one ring for samples, and one for all that samples refer to.
//!
//! What samples refer to (new mappings, programs, threads) wakes the recorder at once, so that files are opened while
//! they are there; samples wake it when their ring is half full.

use std::io;

use perf_event_open::config::{
    CallChain, Clock, Cpu, Inherit, OnExecve, Opts, Proc, RecordIdFormat, RegsMask, SampleOn, Size, UseBuildId,
    WakeUpOn,
};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;
use perf_event_open::sample::Sampler;
use rustc_hash::{FxHashMap, FxHashSet};

use super::events::Metric;
use super::refusal;
use super::sampling::{CallGraph, SIDE_RING, Sampling};
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
    pub fn file(&self) -> &std::fs::File {
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
    /// For each thread that has counters of its own, their ids.
    owners: FxHashMap<u64, u32>,
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
    pub fn open(target: &Target, sampling: Sampling) -> Result<Self, Error> {
        raise_file_limit();
        let (best, smallest) = sampling.call_graph.ring_sizes();
        let (mut without_kernel, mut size) = (false, best);
        loop {
            match Opener::new(target, sampling, without_kernel, size).open() {
                Err(Failure::Counter(error)) if error.raw_os_error() == Some(libc::EACCES) && !without_kernel => {
                    without_kernel = true;
                }
                Err(Failure::Ring(error)) if error.raw_os_error() == Some(libc::EPERM) && size > smallest => {
                    size -= 1;
                }
                Err(Failure::Counter(error)) => {
                    return Err(refusal::counter(&error, target, sampling.frequency, sampling.metric.name()));
                }
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

    /// How many records the kernel says it dropped, where it can say.
    pub fn lost(&self) -> Option<u64> {
        let leaders = self.rings.iter().map(|rings| &rings.samples.counter);
        leaders.chain(&self.others).map(|counter| counter.stat().ok()?.lost_records).sum()
    }

    /// Whether a sample of thread `tid` by counter `id` counts. A thread that was born while counters were opened may
    /// have its own and its parent's; its own count.
    pub fn counts(&self, tid: u32, id: u64) -> bool {
        !self.owned.contains(&tid) || self.owners.get(&id).is_none_or(|owner| *owner == tid)
    }

    fn all(&self) -> impl Iterator<Item = &Counter> {
        self.rings.iter().flat_map(|rings| [&rings.side.counter, &rings.samples.counter]).chain(&self.others)
    }
}

/// Why counters could not be opened.
enum Failure {
    Counter(io::Error),
    Ring(io::Error),
}

struct Opener<'a> {
    target: &'a Target,
    metric: Metric,
    sample_options: Opts,
    side_options: Opts,
    sample_ring: u8,
    cpus: Vec<u32>,
    counters: Counters,
}

impl<'a> Opener<'a> {
    fn new(target: &'a Target, sampling: Sampling, without_kernel: bool, sample_ring: u8) -> Self {
        Self {
            target,
            metric: sampling.metric,
            sample_options: sample_options(target, sampling, without_kernel),
            side_options: side_options(target, without_kernel),
            sample_ring,
            cpus: online_cpus(),
            counters: Counters {
                rings: Vec::new(),
                others: Vec::new(),
                owners: FxHashMap::default(),
                owned: FxHashSet::default(),
                layout: sampling.call_graph.layout(),
                enable_by_hand: !matches!(target, Target::Command(_)),
                notes: Vec::new(),
            },
        }
    }

    fn open(mut self) -> Result<Counters, Failure> {
        match self.target {
            Target::System => self.open_on_cpus(None, None)?,
            Target::Command(pid) => self.open_on_cpus(Some(*pid), None)?,
            Target::Processes(pids) => {
                for pid in pids {
                    self.open_threads(*pid)?;
                }
            }
        }
        if self.counters.rings.is_empty() {
            return Err(Failure::Counter(io::Error::from_raw_os_error(libc::ESRCH)));
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
                self.counters.owned.insert(tid);
                match self.open_on_cpus(Some(tid), Some(tid)) {
                    // It has ended meanwhile.
                    Err(Failure::Counter(error)) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    result => result?,
                }
            }
        }
    }

    fn open_on_cpus(&mut self, task: Option<u32>, owner: Option<u32>) -> Result<(), Failure> {
        for index in 0..self.cpus.len() {
            let place = (task, self.cpus[index]);
            let side = counter(Software::Dummy, place, &mut self.side_options)?;
            let samples = counter(self.metric, place, &mut self.sample_options)?;
            if let Some(tid) = owner {
                self.counters.owners.insert(samples.id().map_err(Failure::Counter)?, tid);
            }
            match self.counters.rings.get(index) {
                Some(rings) => {
                    sys::share_ring(side.file(), rings.side.file()).map_err(Failure::Counter)?;
                    sys::share_ring(samples.file(), rings.samples.file()).map_err(Failure::Counter)?;
                    self.counters.others.extend([side, samples]);
                }
                None => {
                    let side = ring(side, SIDE_RING.min(self.sample_ring - 1))?;
                    let samples = ring(samples, self.sample_ring)?;
                    self.counters.rings.push(CpuRings { samples, side });
                }
            }
        }
        Ok(())
    }
}

fn ring(counter: Counter, exponent: u8) -> Result<Ring, Failure> {
    let sampler = counter.sampler(exponent).map_err(Failure::Ring)?;
    Ok(Ring { counter, sampler })
}

fn counter(
    event: impl TryInto<perf_event_open::event::Event, Error = io::Error> + Clone,
    (task, cpu): (Option<u32>, u32),
    options: &mut Opts,
) -> Result<Counter, Failure> {
    let open = |options: &Opts| match task {
        Some(task) => Counter::new(event.clone(), (Proc(task), Cpu(cpu)), options),
        None => Counter::new(event.clone(), (Proc::ALL, Cpu(cpu)), options),
    };
    match open(options) {
        // Before Linux 6.0 a counter does not tell its losses.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) && options.stat_format.lost_records => {
            options.stat_format.lost_records = false;
            open(options).map_err(Failure::Counter)
        }
        result => result.map_err(Failure::Counter),
    }
}

/// The options of a counter that takes samples.
fn sample_options(target: &Target, sampling: Sampling, without_kernel: bool) -> Opts {
    let mut options = common_options(target, without_kernel);
    options.sample_on = SampleOn::Freq(sampling.frequency);
    options.stat_format.lost_records = true;
    let mut call_chain =
        CallChain { exclude_user: false, exclude_kernel: without_kernel, defer_user: false, max_stack_frames: 0 };
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
    if !matches!(target, Target::System) {
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

fn online_cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = parse_cpu_list(&text);
    if cpus.is_empty() {
        (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect()
    } else {
        cpus
    }
}

/// Reads `0-3,8,10-11`.
fn parse_cpu_list(text: &str) -> Vec<u32> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_lists_of_cpus() {
        assert_eq!(super::parse_cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(super::parse_cpu_list("\n"), [0u32; 0]);
    }
}
