//! Recording live programs with the kernel's perf_event counters. Linux only.
//!
//! [`target`] says what is recorded, [`counters`] opens counters and rings for it, [`rings`] reads them in order into a
//! [`Recording`], and [`command`] starts the program that is to be profiled.

pub mod command;
pub mod counters;
pub mod events;
mod pmu;
pub mod refusal;
pub mod rings;
pub mod sampling;
pub mod summary;
mod sys;
pub mod target;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::process::Signal;

use self::command::{Held, Running};
use self::counters::Counters;
use self::events::Metric;
use self::sampling::{CallGraph, Rate, Sampling};
pub use self::sys::ProcessMemory;
use self::target::Target;
use crate::cli::Interrupts;
use crate::perf::recording::{Counts, Options, Recording, WeightBy};
use crate::perf::unwind::Memory;
use crate::{Error, plain};

/// What is to be recorded, and how.
#[derive(Debug)]
pub struct Request {
    /// What.
    pub target: RequestTarget,
    /// The events; none for cycles where the machine counts them, else cpu-clock.
    pub metrics: Vec<Metric>,
    /// How often a sample is taken; `None` for 997 times a second of a command, 99 of what runs already, and of
    /// tracepoints every time.
    pub rate: Option<Rate>,
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
    /// What a stack weighs.
    pub weight: WeightBy,
    /// Whether each sample is kept by itself.
    pub each_sample: bool,
}

/// What is to be recorded.
#[derive(Debug)]
pub enum RequestTarget {
    /// A command, to be started; with its standard output sent to our standard error or not.
    Command(Vec<std::ffi::OsString>, bool),
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
    pub metrics: Vec<(Metric, Rate)>,
    /// How long.
    pub elapsed: Duration,
    /// The command, which may still run.
    pub command: Option<Running>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// What is told how long a recording has lasted, and what it has counted.
pub type Watch<'a> = &'a mut dyn FnMut(Duration, &Counts);

/// Records until the target ends, the time is up, or a signal comes. `watch`, if there is one, hears of it all along.
///
/// # Errors
/// [`Error::Refused`], [`Error::Command`].
pub fn record(request: Request, watch: Option<Watch<'_>>) -> Result<Recorded, Error> {
    let (held, target) = choose(request.target)?;
    let sampling = Sampling {
        metrics: rates(request.metrics, request.rate, held.is_some()),
        call_graph: request.call_graph,
        ring: request.ring,
        max_stack: request.max_stack,
        cpus: request.cpus,
    };
    let counters = Counters::open(&target, &sampling)?;
    let options = Options {
        weight: request.weight,
        each_sample: request.each_sample,
        max_stack: request.max_stack.map_or_else(refusal::max_stack, usize::from),
    };
    let memory: Option<Box<dyn Memory>> = if request.live_tail { Some(Box::new(sys::ProcessMemory)) } else { None };
    let mut session = Session::new(counters, Recording::new(options, memory), &target)?;
    session.introduce(&target);
    let began = Instant::now();
    session.counters.start().map_err(|error| Error::Refused(plain(&error)))?;
    let mut command = held.map(Held::release).transpose()?;
    let ended = session.run(began, request.duration, watch)?;
    let elapsed = began.elapsed();
    if let (Some(command), Some(signal)) = (&mut command, ended.passed_on()) {
        command.signal(signal);
    }
    let (recording, notes) = session.finish();
    Ok(Recorded { recording, metrics: sampling.metrics, elapsed, command, notes })
}

/// Starts the command, or makes sure that what is to be recorded is there.
fn choose(target: RequestTarget) -> Result<(Option<Held>, Target), Error> {
    match target {
        RequestTarget::Command(words, quiet_stdout) => {
            let held = Held::start(&words, quiet_stdout)?;
            let pid = held.pid();
            Ok((Some(held), Target::Command(pid)))
        }
        RequestTarget::Processes(pids) => {
            pids.iter().try_for_each(|pid| target::must_exist(*pid))?;
            Ok((None, Target::Processes(pids)))
        }
        RequestTarget::Threads(tids) => {
            tids.iter().try_for_each(|tid| target::process_of(*tid).map(drop))?;
            Ok((None, Target::Threads(tids)))
        }
        RequestTarget::Cgroup(path) => Ok((None, Target::Cgroup(target::cgroup(&path)?))),
        RequestTarget::System => Ok((None, Target::System)),
    }
}

/// The events that were asked for, or the best that the machine has, each with how often a sample is taken.
fn rates(metrics: Vec<Metric>, rate: Option<Rate>, of_a_command: bool) -> Vec<(Metric, Rate)> {
    let often = Rate::Frequency(if of_a_command { 997 } else { 99 });
    let metrics = match metrics {
        none if none.is_empty() && counts_cycles() => vec![Metric::cycles()],
        none if none.is_empty() => vec![Metric::cpu_clock()],
        metrics => metrics,
    };
    let usual = |metric: &Metric| if metric.is_tracepoint() { Rate::Period(1) } else { often };
    metrics
        .into_iter()
        .map(|metric| {
            let rate = rate.unwrap_or_else(|| usual(&metric));
            (metric, rate)
        })
        .collect()
}

/// Whether this machine counts cycles; most virtual ones do not.
fn counts_cycles() -> bool {
    use perf_event_open::config::{Cpu, Opts, Proc};
    let mut options = Opts::default();
    options.exclude.kernel = true;
    options.exclude.hv = true;
    perf_event_open::count::Counter::new(&Metric::cycles(), (Proc::CURRENT, Cpu::ALL), options).is_ok()
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

/// A recording at work.
struct Session {
    counters: Counters,
    recording: Recording,
    reader: rings::Reader,
    epoll: OwnedFd,
    /// The processes whose end is the recording's; by number of the file to wait for.
    living: Vec<OwnedFd>,
    interrupts: Interrupts,
    // Its other end wakes the loop when a signal comes.
    _woken: UnixStream,
}

/// How often the rings are read where they wake nobody, or somebody watches.
const RHYTHM: Duration = Duration::from_millis(100);

const RINGS: u64 = 0;
const WOKEN: u64 = 1;
const PROCESS: u64 = 2;

impl Session {
    fn new(counters: Counters, recording: Recording, target: &Target) -> Result<Self, Error> {
        let refused = |error: std::io::Error| Error::Refused(plain(&error));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| refused(error.into()))?;
        let watch = |file: &dyn AsFd, data: u64| {
            let data = epoll::EventData::new_u64(data);
            epoll::add(&epoll, file.as_fd(), data, epoll::EventFlags::IN).map_err(|error| refused(error.into()))
        };
        for rings in &counters.rings {
            watch(rings.side.file(), RINGS)?;
            watch(rings.samples.file(), RINGS)?;
        }
        let (woken, waker) = UnixStream::pair().map_err(refused)?;
        watch(&woken, WOKEN)?;
        let interrupts = Interrupts::listen(move || {
            use std::io::Write as _;
            let _ = (&waker).write_all(b"!");
        })
        .map_err(refused)?;
        let pids = match target {
            Target::Command(pid) => vec![*pid],
            Target::Processes(pids) => pids.clone(),
            Target::Threads(_) | Target::Cgroup(_) | Target::System => Vec::new(),
        };
        let mut living = Vec::new();
        for pid in pids.into_iter().filter_map(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
            let Ok(file) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { continue };
            watch(&file, PROCESS + living.len() as u64)?;
            living.push(file);
        }
        let reader = rings::Reader::default();
        Ok(Self { counters, recording, reader, epoll, living, interrupts, _woken: woken })
    }

    /// What runs already, from `/proc`: after the counters stand, so that nothing falls between.
    fn introduce(&mut self, target: &Target) {
        let pids = match target {
            Target::Command(_) => Vec::new(),
            Target::Processes(pids) => pids.clone(),
            Target::Threads(tids) => tids.iter().filter_map(|tid| target::process_of(*tid).ok()).collect(),
            Target::Cgroup(_) | Target::System => target::processes(),
        };
        for pid in pids {
            target::introduce(pid, &mut self.recording);
        }
    }

    fn run(
        &mut self,
        began: Instant,
        duration: Option<Duration>,
        mut watch: Option<Watch<'_>>,
    ) -> Result<Ended, Error> {
        let mut living = self.living.len();
        let mut orphaned = false;
        let mut events = Vec::with_capacity(64);
        loop {
            let left = duration.map(|duration| duration.saturating_sub(began.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Ended::TimeIsUp);
            }
            // A ring whose first thread has gone wakes nobody any more; its other threads may still write.
            let pause = (orphaned || watch.is_some()).then_some(RHYTHM);
            let timeout = left.into_iter().chain(pause).min().and_then(|wait| wait.try_into().ok());
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) | Ok(_) => {}
                Err(error) => return Err(Error::Refused(plain(&error.into()))),
            }
            for event in &events {
                let flags = event.flags;
                match event.data.u64() {
                    RINGS if flags.contains(epoll::EventFlags::HUP) => orphaned |= self.unwatch_dead_rings(),
                    RINGS => {}
                    WOKEN => {}
                    process => {
                        let _ = epoll::delete(&self.epoll, &self.living[(process - PROCESS) as usize]);
                        living -= 1;
                    }
                }
            }
            if let Some(signal) = self.interrupts.arrived() {
                return Ok(Ended::Interrupted(signal));
            }
            if living == 0 && !self.living.is_empty() {
                return Ok(Ended::TargetGone);
            }
            self.reader.read(&self.counters, &mut self.recording);
            if let Some(watch) = &mut watch {
                watch(began.elapsed(), &self.recording.counts);
            }
        }
    }

    /// A ring whose own thread has ended would wake us for ever.
    fn unwatch_dead_rings(&self) -> bool {
        let files = self.counters.rings.iter().flat_map(|rings| [rings.side.file(), rings.samples.file()]);
        let mut found = false;
        for file in files {
            let mut poll = [rustix::event::PollFd::new(file, rustix::event::PollFlags::IN)];
            let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
            let _ = rustix::event::poll(&mut poll, Some(&now));
            if poll[0].revents().contains(rustix::event::PollFlags::HUP) {
                found |= epoll::delete(&self.epoll, file).is_ok();
            }
        }
        found
    }

    fn finish(mut self) -> (Recording, Vec<String>) {
        self.counters.stop();
        self.reader.finish(&self.counters, &mut self.recording);
        self.recording.finish();
        // The kernel tells of losses in a ring only before the next record in it; the counters know the last ones too.
        self.recording.add_lost(&self.counters.lost().unwrap_or_default());
        (self.recording, self.counters.notes)
    }
}
