//! A recording at work: waiting for rings, the target's end, signals and the clock.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::epoll::EventFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::bell::Bell;
use super::counters::sampling::Rate;
use super::counters::{Counters, CpuRings, Ring};
use super::events::spec::EventSpec;
use super::off_cpu::bpf::{Aggregation, WINDOW};
use super::overhead::{self, Overhead};
use super::rings::Reader;
use super::rings::epoll::{SAMPLES, Watch};
use super::target::{self, Target};
use super::{Audience, Ended, Recorded};
use super::{clock, procfs};
use crate::interrupts::Interrupts;
use crate::perf::recording::Recording;
use crate::{Error, io_error_text};

/// A recording at work.
pub(super) struct Session {
    pub(super) counters: Counters,
    recording: Recording,
    pub(super) reader: Reader,
    /// What the kernel adds up, if it does.
    pub(super) aggregation: Option<Aggregation>,
    /// What keeps our own share of the CPU low, if something is to.
    pub(super) overhead: Option<Overhead>,
    metrics: Vec<(EventSpec, Rate)>,
    /// When the part at hand began.
    began: Instant,
    /// What was lost in the parts before it.
    lost_before: Vec<u64>,
    side_band_lost_before: u64,
    /// What was counted in them.
    counted_before: u64,
    watch: Watch,
    /// What samples ring that are wanted at once.
    bell: Option<Bell>,
    /// The processes whose end is the recording's; by number of the file to wait for.
    living: Vec<OwnedFd>,
    /// How many of them there still are.
    running: usize,
    /// Whether a ring's first thread has gone: it wakes nobody any more.
    is_orphaned: bool,
    interrupts: Interrupts,
    // Its other end wakes the loop when a signal comes.
    _woken: UnixStream,
}

/// How often the rings are read where they wake nobody, or somebody watches.
const RHYTHM: Duration = Duration::from_millis(100);

const RINGS: u64 = SAMPLES + 1;
const WOKEN: u64 = RINGS + 1;
const PROCESS: u64 = WOKEN + 1;

impl Session {
    pub(super) fn new(
        counters: Counters,
        recording: Recording,
        target: &Target,
        metrics: Vec<(EventSpec, Rate)>,
    ) -> Result<Self, Error> {
        let refused = |error: std::io::Error| Error::System(io_error_text(&error));
        let watch = Watch::new()?;
        for rings in &counters.rings {
            watch.add(rings.samples.file(), SAMPLES)?;
            rings.others().try_for_each(|ring| watch.add(ring.file(), RINGS))?;
        }
        let bell =
            counters.longest_wait.map(|_| Bell::hang(counters.files_of_samples())).transpose().map_err(refused)?;
        if let Some(bell) = &bell {
            watch.add(bell.file(), SAMPLES)?;
        }
        let (woken, waker) = UnixStream::pair().map_err(refused)?;
        watch.add(&woken, WOKEN)?;
        let interrupts = Interrupts::listen(move || {
            use std::io::Write as _;
            let _ = (&waker).write_all(b"!");
        })
        .map_err(refused)?;
        let living = open_living(target);
        for (number, file) in living.iter().enumerate() {
            watch.add(file, PROCESS + number as u64)?;
        }
        Ok(Self {
            counters,
            recording,
            reader: Reader::default(),
            aggregation: None,
            overhead: None,
            metrics,
            began: Instant::now(),
            lost_before: Vec::new(),
            side_band_lost_before: 0,
            counted_before: 0,
            watch,
            bell,
            running: living.len(),
            living,
            is_orphaned: false,
            interrupts,
            _woken: woken,
        })
    }

    /// What runs already, from `/proc`.
    pub(super) fn introduce(&mut self, target: &Target) {
        let pids = match target {
            Target::Command(_) => Vec::new(),
            Target::Processes(pids) => pids.clone(),
            Target::Threads(tids) => tids.iter().filter_map(|tid| target::find_process(*tid).ok()).collect(),
            Target::Cgroup(_) | Target::System => procfs::list_processes(),
        };
        for pid in pids {
            procfs::load_process(pid, &mut self.recording);
        }
    }

    /// Reads until the end; in parts of a length, if there is one.
    pub(super) fn run(
        &mut self,
        duration: Option<Duration>,
        interval: Option<Duration>,
        audience: &mut dyn Audience,
    ) -> Result<Ended, Error> {
        let began = Instant::now();
        self.began = began;
        loop {
            let left = duration.map(|duration| duration.saturating_sub(began.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Ended::TimeIsUp);
            }
            let until_turn = interval.map(|interval| interval.saturating_sub(self.began.elapsed()));
            if until_turn.is_some_and(|left| left.is_zero()) {
                let part = self.part();
                audience.part(part)?;
                continue;
            }
            // A ring whose first thread has gone wakes nobody any more; its other threads may still write.
            let looks =
                self.is_orphaned || audience.watches() || self.reader.switches.is_some() || self.overhead.is_some();
            let rhythm = if looks { Some(RHYTHM) } else { self.aggregation.is_some().then_some(WINDOW) };
            let again = self.recording.second_look();
            self.wait(left.into_iter().chain(until_turn).chain(rhythm).chain(again).min())?;
            if let Some(signal) = self.interrupts.received() {
                return Ok(Ended::Interrupted(signal));
            }
            if self.running == 0 && !self.living.is_empty() {
                return Ok(Ended::TargetGone);
            }
            self.read();
            self.moderate();
            if audience.watches() {
                audience.so_far(began.elapsed(), &self.recording.counts);
            }
        }
    }

    /// Waits until there is something to read, or the target ends.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let pause = self.pause();
        let is_silent = self.bell.as_ref().is_some_and(|bell| !bell.rings());
        let (timeout, pause) =
            if is_silent { (timeout.into_iter().chain(pause).min(), None) } else { (timeout, pause) };
        let (mut has_hung_up, mut gone) = (false, Vec::new());
        for event in self.watch.wait(timeout, pause)? {
            let flags = event.flags;
            match event.data.u64() {
                SAMPLES | RINGS => has_hung_up |= flags.contains(EventFlags::HUP),
                WOKEN => {}
                process => gone.push((process - PROCESS) as usize),
            }
        }
        self.is_orphaned |= has_hung_up && self.unwatch_dead_rings();
        self.running -= gone.iter().filter(|process| self.watch.remove(&self.living[**process])).count();
        Ok(())
    }

    /// How long to wait before there is any use in looking for samples.
    fn pause(&self) -> Option<Duration> {
        let pause = self.counters.longest_wait?.min(self.recording.patience()?);
        // Whole milliseconds, to which the kernel would round up.
        Some(Duration::from_millis(pause.as_millis() as u64)).filter(|pause| !pause.is_zero())
    }

    fn read(&mut self) {
        let began = clock::now();
        let closed = self.aggregation.as_mut().and_then(Aggregation::close_window);
        if let Some(bell) = &self.bell {
            bell.answer();
        }
        let found = self.reader.read(&self.counters, &mut self.recording);
        let can_wait = self.pause().is_some();
        if let Some(bell) = &mut self.bell {
            bell.tune(can_wait, found, self.counters.files_of_samples());
        }
        if let (Some(aggregation), Some(closed)) = (&mut self.aggregation, closed) {
            // By now all is known that the sums refer to.
            aggregation.take(closed, &mut self.recording);
            self.reader.asked_since = began;
        }
    }

    /// Takes fewer samples or more, as our own share of the CPU demands.
    fn moderate(&mut self) {
        let Some(overhead) = &mut self.overhead else { return };
        if let Some(one_in) = overhead.update(Instant::now(), super::sys::own_cpu_time()) {
            // Counters of threads were copied into those that came later, which nobody can reach.
            if !self.counters.set_rates(&self.metrics, one_in) {
                self.reader.keep_one_in = one_in;
            }
        }
    }

    /// All since the part before.
    fn part(&mut self) -> Recorded {
        let lost = self.counters.lost();
        let mut recording = self.recording.rotate();
        if let Some(lost) = self.counters.lost_side_band() {
            let before = std::mem::replace(&mut self.side_band_lost_before, lost);
            recording.counts.lost_side_band = lost - before;
        }
        if let Some(lost) = lost {
            let before = std::mem::replace(&mut self.lost_before, lost.clone());
            let since = |(number, lost): (usize, &u64)| lost - before.get(number).unwrap_or(&0);
            recording.set_lost(Some(lost.iter().enumerate().map(since).collect()));
        } else {
            recording.set_lost(None);
        }
        let elapsed = self.began.elapsed();
        self.began = Instant::now();
        let began = SystemTime::now().checked_sub(elapsed).and_then(|began| began.duration_since(UNIX_EPOCH).ok());
        let began = began.unwrap_or_default().as_secs();
        let metrics = self.metrics.clone();
        let sparse = self.sparse(&recording);
        let notes = self.counters.notes.drain(..).chain(sparse).collect();
        Recorded { recording, metrics, times: None, began, elapsed, command: None, notes }
    }

    /// What the user should know of samples that were to be fewer: they may be nearly none.
    fn sparse(&mut self, recording: &Recording) -> Option<String> {
        let counted = self.overhead.as_ref().and_then(|_| self.counters.counted())?;
        let counted = counted - std::mem::replace(&mut self.counted_before, counted);
        let sampled = (0..self.metrics.len()).map(|event| recording.total_period(event as u32)).sum();
        if recording.counts.samples == 0 { None } else { overhead::sparse_note(sampled, counted) }
    }

    /// A ring whose own thread has ended would wake us for ever.
    fn unwatch_dead_rings(&self) -> bool {
        let files = self.counters.rings.iter().flat_map(CpuRings::all).map(Ring::file);
        let mut found = false;
        for file in files {
            let mut poll = [rustix::event::PollFd::new(file, rustix::event::PollFlags::IN)];
            let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
            let _ = rustix::event::poll(&mut poll, Some(&now));
            if poll[0].revents().contains(rustix::event::PollFlags::HUP) {
                found |= self.watch.remove(file);
            }
        }
        found
    }

    /// Stops, and reads all that is left.
    pub(super) fn finish(mut self) -> Recorded {
        let ended = clock::now();
        let elapsed = self.began.elapsed();
        self.counters.stop();
        self.reader.finish(&self.counters, &mut self.recording);
        self.reader.finish_switches(ended, &mut self.recording);
        let aggregated = self.aggregation.take().map(|it| it.finish(ended, &mut self.recording));
        let (aggregated, notes) = aggregated.map_or((None, Vec::new()), |(times, notes)| (Some(times), notes));
        self.counters.notes.extend(notes);
        self.counters.notes.extend(self.overhead.as_ref().and_then(Overhead::note));
        // The kernel tells of losses in a ring only before the next record in it; the counters know the last ones too.
        let part = self.part();
        Recorded { elapsed, times: self.reader.switches.map(|switches| switches.times).or(aggregated), ..part }
    }
}

/// Files that become readable when those end whose end is the recording's.
fn open_living(target: &Target) -> Vec<OwnedFd> {
    let open = |pid: &u32, flags| pidfd_open(Pid::from_raw(pid.cast_signed())?, flags).ok();
    match target {
        Target::Command(pid) => open(pid, PidfdFlags::empty()).into_iter().collect(),
        Target::Processes(pids) => pids.iter().filter_map(|pid| open(pid, PidfdFlags::empty())).collect(),
        Target::Threads(tids) => {
            // `PIDFD_THREAD`, since Linux 6.9; before it, a thread's end is its process's.
            let of_thread = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
            let process = |tid: &u32| open(&target::find_process(*tid).ok()?, PidfdFlags::empty());
            tids.iter().filter_map(|tid| open(tid, of_thread).or_else(|| process(tid))).collect()
        }
        Target::Cgroup(_) | Target::System => Vec::new(),
    }
}
