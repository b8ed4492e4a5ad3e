//! The event loop of a recording: waits for rings, the target's exit, signals and the clock, and reads the rings.

mod parts;
mod sleepers;
mod slices;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;

use super::bpf::StackSampler;
use super::counters::sampling::SampledEvent;
use super::counters::{Counters, CpuRings, Ring};
use super::end_reason::EndReason;
use super::flight_recorder::FlightRecorder;
use super::observer::Observer;
use super::off_cpu::bpf::{Aggregation, WINDOW};
use super::off_cpu::switches::SwitchTracker;
use super::overhead::Overhead;
use super::pairs::spec::PairSpec;
use super::pairs::tracker::PairTracker;
use super::rings::attachments::Unattached;
use super::rings::epoll::EpollSet;
use super::rings::followed::Followed;
use super::rings::reader::RingReader;
use super::target::Target;
use super::usage::UsageMeter;
use super::{clock, exit_files, procfs, sys};
use crate::interrupts::Interrupts;
use crate::perf::recording::Recording;
use crate::{Error, io_error_text};

/// The time between two readings of the rings if they wake nobody, or somebody wants progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The same while the BPF program meets objects that it cannot walk through yet.
const LEARNING_INTERVAL: Duration = Duration::from_millis(10);

/// The same while a command loads its libraries: frames of scripts can be walked once the recorder knows the mappings. The
/// interval grows while there are no new ones, up to `POLL_INTERVAL`.
///
/// At 997 samples a second, 7 to 9 % of the samples of `node` (22 and 24) that ran for 0.2 s were truncated with
/// `POLL_INTERVAL` here.
const STARTUP_INTERVAL: Duration = Duration::from_millis(2);

/// Tokens of the epoll set.
const RING: u64 = 0;
const INTERRUPTED: u64 = 1;
const WORKLOAD_EXITED: u64 = 2;
/// The token of the first file of `exit_files`.
const TARGET_EXITED: u64 = 3;

/// A recording that is running.
pub(super) struct RecordingSession {
    counters: Counters,
    recording: Recording,
    reader: RingReader,
    /// Keeps only the last part, if that is wanted.
    flight_recorder: Option<FlightRecorder>,
    /// The BPF program, if it sums blocks up.
    aggregation: Option<Aggregation>,
    /// Shorter pairs of events are left out.
    pair_threshold: Duration,
    /// The reason why stacks are copied, and not taken by a BPF program.
    pub(super) copy_reason: Option<String>,
    /// The limit of our own CPU usage, if there is one.
    pub(super) overhead: Option<Overhead>,
    /// The interval while the command loads its libraries. `None` without a BPF program or a command.
    startup_interval: Option<Duration>,
    events: Vec<SampledEvent>,
    /// Measures what the target uses, from the start on.
    usage: Option<UsageMeter>,
    part_start: Instant,
    /// The counts that the counters had reported when the current part began.
    reported: ReportedCounts,
    epoll: EpollSet,
    /// Files that become readable when the target's processes or threads exit. The recording ends when all have; never
    /// if this is `None`.
    exit_files: Option<Vec<OwnedFd>>,
    /// Number of those that have not exited.
    running: usize,
    /// The file that becomes readable when the command beside the target exits.
    workload: Option<OwnedFd>,
    has_workload_exited: bool,
    /// True if the thread of some ring's counter has exited: the ring wakes us no more, but other threads may write
    /// into it.
    has_silent_ring: bool,
    interrupts: Interrupts,
    // The other end of the pipe that wakes the loop when a signal comes.
    _wakeup: UnixStream,
}

/// Counts that counters report from the start of the recording on.
#[derive(Debug, Default)]
struct ReportedCounts {
    lost_samples: Vec<u64>,
    lost_sideband_records: u64,
}

impl RecordingSession {
    pub(super) fn new(
        counters: Counters,
        sampler: Option<StackSampler>,
        recording: Recording,
        target: &Target,
        events: Vec<SampledEvent>,
    ) -> Result<Self, Error> {
        let epoll = EpollSet::new()?;
        for ring in counters.rings.iter().flat_map(CpuRings::all) {
            epoll.add(ring.file(), RING)?;
        }
        let (wakeup, waker) = UnixStream::pair().map_err(|error| system_error(&error))?;
        epoll.add(&wakeup, INTERRUPTED)?;
        let interrupts = Interrupts::listen(move || {
            use std::io::Write as _;
            let _ = (&waker).write_all(b"!");
        })
        .map_err(|error| system_error(&error))?;
        let exit_files = exit_files::open(target);
        for (index, file) in exit_files.iter().flatten().enumerate() {
            epoll.add(file, TARGET_EXITED + index as u64)?;
        }
        Ok(Self {
            counters,
            recording,
            reader: RingReader::new(sampler),
            flight_recorder: None,
            aggregation: None,
            pair_threshold: Duration::ZERO,
            copy_reason: None,
            overhead: None,
            startup_interval: None,
            events,
            usage: None,
            part_start: Instant::now(),
            reported: ReportedCounts::default(),
            epoll,
            running: exit_files.as_ref().map_or(0, Vec::len),
            exit_files,
            workload: None,
            has_workload_exited: false,
            has_silent_ring: false,
            interrupts,
            _wakeup: wakeup,
        })
    }

    /// Ends the recording when a process exits, even if the target goes on.
    pub(super) fn end_with_process(&mut self, pid: u32) -> Result<(), Error> {
        let file = exit_files::open_process(pid).map_err(|error| Error::System(format!("pidfd_open: {error}")))?;
        self.epoll.add(&file, WORKLOAD_EXITED)?;
        self.workload = Some(file);
        Ok(())
    }

    /// Enables the counters, and adds what already runs to the recording.
    pub(super) fn start(
        &mut self,
        target: &Target,
        aggregation: Option<Aggregation>,
        switches: Option<SwitchTracker>,
        pair: Option<&PairSpec>,
    ) -> Result<(), Error> {
        // `/proc` is read once the kernel reports everything new, so that nothing is missed between the two.
        let attached = self.counters.enable_sideband(target).map_err(|error| system_error(&error))?;
        self.reader.attachments.note_attached(attached, clock::now());
        let followed = match &mut self.reader.sampler {
            Some(sampler) => sampler.start(target).map_err(Error::System)?,
            None => Vec::new(),
        };
        self.load_processes(target, followed);
        // Native stacks can be unwound later, the frames of scripts and of generated code are there only at the sample.
        // A process that began before its parent was published has nothing of it: the second time, it is known.
        for _ in 0..2 {
            self.reader.read_sideband(&self.counters, &mut self.recording);
        }
        self.aggregation = aggregation;
        if let Some(aggregation) = &mut self.aggregation {
            aggregation.start(target)?;
            self.reader.keep_since = 0;
        }
        self.reader.switches = switches;
        if let Some(switches) = &mut self.reader.switches {
            let now = clock::now();
            target.running_threads().into_iter().for_each(|tid| switches.add_existing_thread(tid, now));
        }
        self.counters.enable().map_err(|error| system_error(&error))?;
        if let (Some(switches), Some(sampler)) = (&mut self.reader.switches, &mut self.reader.sampler) {
            switches.totals.finds_long_blocks = sampler.finds_long_blocks();
            if switches.every_switch_event().is_none() {
                sampler.take_some_switches(true).map_err(Error::System)?;
            }
        }
        if let (Some(pair), Some(sampler)) = (pair, &mut self.reader.sampler) {
            self.pair_threshold = pair.over;
            self.reader.pairs = Some(PairTracker::default());
            sampler.start_pairs().map_err(|reason| Error::System(format!("{}: {reason}", pair.option)))?;
        }
        self.add_sleeping_threads(target);
        self.usage = Some(UsageMeter::start(target, &self.counters, self.reader.sampler.as_ref()));
        if let Some(switches) = &mut self.reader.switches {
            switches.start(clock::now());
        }
        Ok(())
    }

    /// Adds the running processes of the target to the recording, as `/proc` describes them. `followed` are those that
    /// the BPF program follows; some may have exited.
    fn load_processes(&mut self, target: &Target, followed: Vec<u32>) {
        let pids = target.running_processes();
        if self.reader.sampler.is_some() && target.has_followed_processes() {
            let pids = pids.iter().copied().chain(followed);
            self.reader.followed = Some(Followed::new(pids, target.includes_children()));
        }
        for pid in pids {
            procfs::load_process(pid, &mut self.recording);
            self.reader.note_process(pid);
        }
    }

    /// Prepares to walk the stacks of a command that is about to run this program.
    pub(super) fn prepare_program(&mut self, program: &Path) {
        let Some(sampler) = &mut self.reader.sampler else { return };
        let object = self.recording.open_program(program);
        sampler.tables.prepare_object(object, &self.recording);
        self.startup_interval = Some(STARTUP_INTERVAL);
    }

    /// Records until the end. If there is an interval, gives a part to the observer each time it is over.
    pub(super) fn run(
        &mut self,
        duration: Option<Duration>,
        interval: Option<Duration>,
        observer: &mut dyn Observer,
    ) -> Result<EndReason, Error> {
        let start = Instant::now();
        self.part_start = start;
        loop {
            let remaining = duration.map(|duration| duration.saturating_sub(start.elapsed()));
            if remaining.is_some_and(|remaining| remaining.is_zero()) {
                return Ok(EndReason::DurationOver);
            }
            let until_next_part = interval.map(|interval| interval.saturating_sub(self.part_start.elapsed()));
            if until_next_part.is_some_and(|remaining| remaining.is_zero()) {
                let usage = self.measure_usage();
                self.read();
                let part = self.finish_part(usage);
                observer.on_part(part)?;
                continue;
            }
            let until_poll = self.poll_interval(observer.wants_progress());
            self.wait([remaining, until_next_part, until_poll].into_iter().flatten().min())?;
            if let Some(signal) = self.interrupts.received() {
                return Ok(EndReason::Signal(signal));
            }
            if self.has_workload_exited {
                return Ok(EndReason::WorkloadExited);
            }
            if self.running == 0 && self.exit_files.is_some() {
                return Ok(EndReason::TargetExited);
            }
            self.read();
            if self.write_slices(observer)? {
                return Ok(EndReason::Written);
            }
            self.limit_overhead();
            if observer.wants_progress() {
                observer.on_progress(start.elapsed(), &self.recording.counts);
            }
        }
    }

    /// Returns the time after which the rings are read even if they wake nobody.
    fn poll_interval(&self, wants_progress: bool) -> Option<Duration> {
        // Unwinding reads generated code while the process runs.
        let needs_processes = self.counters.stack_copies.is_some() || self.reader.sampler.is_some();
        let needs_switches = self.reader.switches.is_some() || self.reader.pairs.is_some();
        let needs_slices = self.flight_recorder.is_some();
        let learning = self.reader.is_learning.then_some(LEARNING_INTERVAL);
        if let Some(interval) = learning.into_iter().chain(self.startup_interval).min() {
            return Some(interval);
        }
        let has_work = needs_processes || needs_switches || needs_slices || self.overhead.is_some();
        if self.has_silent_ring || wants_progress || has_work {
            return Some(POLL_INTERVAL);
        }
        self.aggregation.is_some().then_some(WINDOW)
    }

    /// Waits until there is something to read, the target exits, or the timeout expires.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let (mut has_hung_up, mut exited) = (false, Vec::new());
        for event in self.epoll.wait(timeout)? {
            let flags = event.flags;
            match event.data.u64() {
                RING => has_hung_up |= flags.contains(EventFlags::HUP),
                INTERRUPTED => {}
                WORKLOAD_EXITED => self.has_workload_exited = true,
                token => exited.push((token - TARGET_EXITED) as usize),
            }
        }
        if has_hung_up {
            // The rings whose own thread has exited would be ready all the time.
            let rings = self.counters.rings.iter().flat_map(CpuRings::all);
            self.has_silent_ring |= self.epoll.remove_hung_up(rings.map(Ring::file));
        }
        let files = self.exit_files.as_deref().unwrap_or_default();
        self.running -= exited.iter().filter(|index| self.epoll.remove(&files[**index])).count();
        Ok(())
    }

    fn read(&mut self) {
        let start = clock::now();
        let window = self.aggregation.as_mut().and_then(Aggregation::close_window);
        let known = self.reader.sideband_records;
        self.reader.read(&self.counters, &mut self.recording);
        self.attach_again();
        if let (Some(aggregation), Some(window)) = (&mut self.aggregation, window) {
            // By now everything that the sums refer to is known.
            aggregation.charge_window(window, &mut self.recording);
            self.reader.keep_since = start;
        }
        let has_news = self.reader.sideband_records > known;
        let next = self.startup_interval.map(|interval| if has_news { STARTUP_INTERVAL } else { interval * 5 / 4 });
        self.startup_interval = next.filter(|interval| *interval < POLL_INTERVAL);
    }

    /// Attaches to the processes of which side-band records are missing, and reads what they have mapped.
    fn attach_again(&mut self) {
        for Unattached { pid, tid, since, has_lost_counters } in self.reader.attachments.take_unattached() {
            let now = clock::now();
            // It fails if the process has exited.
            let attached = self.counters.attach_sideband_again(pid, tid).unwrap_or_default();
            self.reader.attachments.note_attached(attached, now);
            procfs::load_missing_mappings(pid, since, &mut self.recording);
            self.reader.note_process(pid);
            if has_lost_counters && self.counters.counts_in_threads() {
                self.counters.notes.push(format!(
                    "the kernel took the counters away from process {pid}: it ran a set-user-ID program, or one that its user may not \
                     read; what it did from then on is missing"
                ));
            }
        }
    }

    /// Adapts the sample rate to our own CPU usage.
    fn limit_overhead(&mut self) {
        let Some(overhead) = &mut self.overhead else { return };
        if let Some(divisor) = overhead.update(Instant::now(), sys::own_cpu_time()) {
            // The counters of threads have been inherited by other threads, and these copies cannot be changed.
            if !self.counters.divide_frequencies(&self.events, divisor) {
                self.reader.sample_divisor = divisor;
            }
        }
    }
}

fn system_error(error: &std::io::Error) -> Error {
    Error::System(io_error_text(error))
}
