//! Recording live programs with the kernel's perf_event counters. Linux only.
//!
//! [`target`] says what is recorded, [`counters`] has counters and rings for it, [`rings`] reads them in order into a
//! [`Recording`], and [`command`] starts the program that is to be profiled.

mod bell;
pub mod clock;
pub mod command;
pub mod counters;
pub mod cpus;
pub mod errors;
pub mod events;
pub mod off_cpu;
mod overhead;
mod procfs;
pub mod report;
pub mod rings;
pub mod run;
mod session;
pub mod summary;
mod sys;
pub mod target;

use std::time::Duration;

use rustix::process::Signal;

use self::command::{RunningCommand, SuspendedCommand};
use self::counters::Counters;
use self::counters::sampling::{CallGraph, Rate, Sampling};
use self::events::spec::EventSpec;
use self::off_cpu::bpf::Aggregation;
use self::off_cpu::{OffCpu, Switches, Times};
use self::overhead::Overhead;
use self::session::Session;
pub use self::sys::ProcessMemory;
use self::target::Target;
use crate::perf::recording::{Counts, Options, Recording};
use crate::perf::unwind::Memory;
use crate::profile::SampleWeight;
use crate::{Error, io_error_text};

/// What is to be recorded, and how.
#[derive(Debug)]
pub struct Request {
    /// What.
    pub target: RequestTarget,
    /// The events; none for cycles where the machine counts them, else cpu-clock.
    pub metrics: Vec<EventSpec>,
    /// How often a sample is taken; `None` for 997 times a second of a command, 99 of what runs already, and of
    /// faults, switches, tracepoints and calls every time.
    pub rate: Option<Rate>,
    /// Which time off the CPU is wanted, if that is what is recorded.
    pub off_cpu: Option<OffCpu>,
    /// How stacks are found.
    pub call_graph: CallGraph,
    /// The size of the rings, as a power of two of pages; `None` for what is best.
    pub ring: Option<u8>,
    /// How many frames of a stack are followed at most.
    pub max_stack: Option<u16>,
    /// The CPUs on which is recorded; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// Whether what a copy of the stack misses is read from the living thread.
    pub live_tail: bool,
    /// When to end, if not with the target.
    pub duration: Option<Duration>,
    /// How long a part of the recording is, if it is recorded in parts.
    pub interval: Option<Duration>,
    /// How much of a CPU the recorder itself may take, in percent.
    pub max_overhead: Option<f64>,
    /// What a stack weighs.
    pub weight: SampleWeight,
    /// Whether each sample is kept by itself.
    pub each_sample: bool,
}

/// What is to be recorded.
#[derive(Debug)]
pub enum RequestTarget {
    /// A command, to be started.
    Command {
        /// The program and its arguments.
        words: Vec<std::ffi::OsString>,
        /// Whether what it prints goes to our standard error.
        quiet_stdout: bool,
        /// The user that it runs as, if not ours.
        user: Option<String>,
    },
    /// Running processes.
    Processes(Vec<u32>),
    /// Running threads.
    Threads(Vec<u32>),
    /// The processes of a cgroup, by its path.
    Cgroup(std::path::PathBuf),
    /// All CPUs.
    System,
}

/// A recording that has ended.
pub struct Recorded {
    /// What was recorded.
    pub recording: Recording,
    /// The events, and how often a sample of each was taken.
    pub metrics: Vec<(EventSpec, Rate)>,
    /// What became of the time off CPUs, where that was wanted.
    pub times: Option<Times>,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// How long.
    pub elapsed: Duration,
    /// The command, which may still run.
    pub command: Option<RunningCommand>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Recorded {
    /// How many profiles it makes: time off CPUs is one, whatever it was found by.
    fn profiles(&self) -> usize {
        if self.times.is_some() { 1 } else { self.metrics.len() }
    }
}

/// Who hears of a recording while it lasts.
pub trait Audience {
    /// Whether it wants to hear all along how far it is.
    fn watches(&self) -> bool;
    /// It has lasted so long, and counted so much.
    fn so_far(&mut self, elapsed: Duration, counts: &Counts);
    /// A part of it is complete.
    ///
    /// # Errors
    /// Those that are to end the recording.
    fn part(&mut self, part: Recorded) -> Result<(), Error>;
}

/// Records until the target ends, the time is up, or a signal comes.
///
/// # Errors
/// [`Error::System`], [`Error::Command`], those of the audience.
pub fn record(request: Request, audience: &mut dyn Audience) -> Result<Recorded, Error> {
    let (held, target) = choose(request.target)?;
    errors::absent(request.cpus.as_deref())?;
    let in_kernel = request.off_cpu.filter(|asked| asked.in_kernel);
    let mut aggregation = in_kernel.map(|asked| Aggregation::open(&target, &asked)).transpose()?;
    let sampling = Sampling {
        metrics: match &request.off_cpu {
            Some(off_cpu) => off_cpu.metrics(request.rate.unwrap_or(usual(held.is_some()))),
            None => rates(request.metrics, request.rate, held.is_some()),
        },
        call_graph: request.call_graph,
        ring: if in_kernel.is_some() { Some(0) } else { request.ring },
        max_stack: request.max_stack,
        // A block that begins on one CPU may end on another.
        cpus: request.cpus.clone().filter(|_| request.off_cpu.is_none()),
        switches: request.off_cpu.is_some() && in_kernel.is_none(),
        live_tail: request.live_tail,
    };
    let counters = Counters::open(&target, &sampling)?;
    let options = Options {
        weight: request.weight,
        each_sample: request.each_sample,
        max_stack: match (request.max_stack, request.call_graph) {
            (Some(frames), CallGraph::FramePointers) => frames.into(),
            _ => errors::max_stack(),
        },
        max_branches: errors::max_branches(),
        addresses: request.each_sample,
        ..Options::default()
    };
    let memory: Option<Box<dyn Memory>> = if request.live_tail { Some(Box::new(sys::ProcessMemory)) } else { None };
    let mut recording = Recording::new(options, memory);
    if let Some(frames) = request.max_stack {
        recording.limit_unwinding(frames.into());
    }
    let mut session = Session::new(counters, recording, &target, sampling.metrics)?;
    session.overhead = request.max_overhead.map(Overhead::new);
    let refused = |error: std::io::Error| Error::System(io_error_text(&error));
    // What runs already is looked at when nothing new can be missed any more.
    session.counters.start_side().map_err(refused)?;
    session.introduce(&target);
    if let Some(aggregation) = &mut aggregation {
        aggregation.start()?;
        session.reader.asked_since = 0;
    }
    session.aggregation = aggregation;
    session.reader.switches = request.off_cpu.filter(|asked| !asked.in_kernel).map(|asked| {
        let mut switches = Switches::new(&asked, request.cpus.unwrap_or_default(), target.includes_children());
        let now = clock::now();
        target.running_threads().into_iter().for_each(|tid| switches.found(tid, now));
        switches
    });
    session.counters.start().map_err(refused)?;
    let command = held.map(SuspendedCommand::resume).transpose()?;
    let ended = session.run(request.duration, request.interval, audience);
    let mut recorded = session.finish();
    recorded.command = command;
    // A command whose recording failed is not left to itself.
    let signal = ended.as_ref().map_or(Some(Signal::TERM), |ended| ended.passed_on());
    if let (Some(command), Some(signal)) = (&mut recorded.command, signal) {
        command.signal(signal);
    }
    ended.map(|_| recorded)
}

/// Starts the command, or makes sure that what is to be recorded is there.
fn choose(target: RequestTarget) -> Result<(Option<SuspendedCommand>, Target), Error> {
    match target {
        RequestTarget::Command { words, quiet_stdout, user } => {
            let held = SuspendedCommand::start(&words, quiet_stdout, user.as_deref())?;
            let pid = held.pid();
            Ok((Some(held), Target::Command(pid)))
        }
        RequestTarget::Processes(pids) => {
            pids.iter().try_for_each(|pid| target::check_process(*pid))?;
            Ok((None, Target::Processes(pids)))
        }
        RequestTarget::Threads(tids) => {
            tids.iter().try_for_each(|tid| target::find_process(*tid).map(drop))?;
            Ok((None, Target::Threads(tids)))
        }
        RequestTarget::Cgroup(path) => Ok((None, Target::Cgroup(target::open_cgroup(&path)?))),
        RequestTarget::System => Ok((None, Target::System)),
    }
}

/// The events that were asked for, or the best that the machine has, each with how often a sample is taken.
fn rates(metrics: Vec<EventSpec>, rate: Option<Rate>, of_a_command: bool) -> Vec<(EventSpec, Rate)> {
    let often = usual(of_a_command);
    let metrics = match metrics {
        none if none.is_empty() && counts_cycles() => vec![EventSpec::cycles()],
        none if none.is_empty() => vec![EventSpec::cpu_clock()],
        metrics => metrics,
    };
    let usual = |metric: &EventSpec| if metric.is_discrete() { Rate::Period(1) } else { often };
    metrics
        .into_iter()
        .map(|metric| {
            let rate = rate.unwrap_or_else(|| usual(&metric));
            (metric, rate)
        })
        .collect()
}

/// How often samples are taken where nothing else is asked for.
fn usual(of_a_command: bool) -> Rate {
    Rate::Frequency(if of_a_command { 997 } else { 99 })
}

/// Whether this machine counts cycles; most virtual ones do not.
fn counts_cycles() -> bool {
    use perf_event_open::config::{Cpu, Opts, Proc};
    let mut options = Opts::default();
    options.exclude.kernel = true;
    options.exclude.hv = true;
    perf_event_open::count::Counter::new(&EventSpec::cycles(), (Proc::CURRENT, Cpu::ALL), options).is_ok()
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    TargetGone,
    TimeIsUp,
    /// By a signal.
    Interrupted(i32),
}

impl Ended {
    /// What the command is told. A terminal sends its Ctrl-C to the command too, and who asks the recorder alone to end
    /// with SIGINT asks for the recording; SIGTERM and SIGHUP mean the whole job.
    fn passed_on(self) -> Option<Signal> {
        match self {
            Self::TimeIsUp | Self::Interrupted(libc::SIGTERM) => Some(Signal::TERM),
            Self::Interrupted(libc::SIGHUP) => Some(Signal::HUP),
            Self::TargetGone | Self::Interrupted(_) => None,
        }
    }
}
