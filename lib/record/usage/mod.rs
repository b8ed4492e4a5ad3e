//! Measures what the target uses, whether or not samples are taken of it: CPU time, and counts of events.
//!
//! Nothing here depends on samples. A thread that exits before its first sample is due has used CPU time too.

mod reading;

use std::fs;
use std::ops::Add;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

pub use self::reading::{CpuTime, EndedCounts};
use self::reading::{Reading, nanoseconds_per_tick, parse_cgroup, parse_cpus, read_ticks};
use super::bpf::{FollowedTime, OwnTime, StackSampler};
use super::counters::Counters;
use super::sys::ChildUsage;
use super::target::Target;
use super::{clock, procfs, sys};

/// The CPU time and events of a target in a recording, or in a part of one.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Its CPU time. `None` if it cannot be known.
    pub cpu_time: Option<CpuTime>,
    /// The reason why `cpu_time` is not known, for the user.
    pub unknown_time: Option<String>,
    /// The count of each event in the target. `None` if other processes were counted too.
    pub event_counts: Option<Vec<u64>>,
    /// The number of times that its threads went to sleep, at least. `None` if it is not known.
    pub sleeps: Option<u64>,
    /// The time that taking stacks took.
    pub own_time: OwnTime,
    /// Number of threads that already ran, if each has counters of its own; 0 if counters count on CPUs.
    pub existing_threads: usize,
    /// True if counters count in threads: each thread's counter waits for a whole period before its first sample.
    pub is_per_thread: bool,
    /// True if the kernel was left out, because we lack the permission.
    pub excludes_kernel: bool,
}

/// Measures what a target uses.
#[derive(Debug)]
pub struct UsageMeter {
    source: Source,
    last: UsageMark,
    /// True if the counters count nothing but the target.
    has_own_counts: bool,
}

/// The usage of a target from its start up to a moment.
#[derive(Clone, Debug, Default)]
pub struct UsageMark {
    reading: Reading,
    counts: Option<Vec<u64>>,
    sleeps: Option<u64>,
    own_time: OwnTime,
}

/// The source of the CPU time.
#[derive(Debug)]
enum Source {
    /// The BPF program that follows the target, or counters of its threads. The time in user space is that of these
    /// files, each the `stat` of a process or thread.
    Threads(Vec<PathBuf>),
    /// Counters of a command's threads, or once the command has exited, what the kernel has added up of it and of the
    /// children that were waited for: counters miss the end of each process.
    Command {
        /// The ID of its process.
        pid: u32,
        /// The CPU time of the process before it ran the command's program.
        before: u64,
    },
    /// The `cpu.stat` of a cgroup.
    Cgroup(PathBuf),
    /// The time in which these CPUs are not idle.
    Cpus(Vec<u32>),
    Unknown,
}

impl UsageMeter {
    /// Starts to measure.
    pub fn start(target: &Target, counters: &Counters, sampler: Option<&StackSampler>) -> Self {
        let is_whole = matches!(target, Target::Cgroup(_) | Target::System);
        let mut meter = Self {
            source: Source::new(target, counters),
            last: UsageMark::default(),
            has_own_counts: is_whole || !counters.counts_on_cpus(),
        };
        meter.last = meter.mark(counters, sampler);
        meter
    }

    /// Returns what was used since the last call.
    pub fn take(&mut self, counters: &Counters, sampler: Option<&StackSampler>) -> Usage {
        let now = self.mark(counters, sampler);
        let last = std::mem::replace(&mut self.last, now.clone());
        Self::between(&last, now, counters)
    }

    /// Returns what has been used up to now.
    pub fn mark(&self, counters: &Counters, sampler: Option<&StackSampler>) -> UsageMark {
        let counts = counters.event_counts().filter(|_| self.has_own_counts);
        // Once the first is known, those that are gone have been counted.
        let reading = self.source.read(counters, sampler);
        let own_time = sampler.and_then(|sampler| sampler.followed.own_time()).unwrap_or_default();
        UsageMark { reading, counts, sleeps: self.source.count_sleeps(sampler), own_time }
    }

    /// True if the CPU time of a part of the recording can be known. That of the children of a command is not known before the
    /// command ends.
    pub fn can_be_divided(&self) -> bool {
        !matches!(self.source, Source::Command { .. })
    }

    /// Returns what was used between two moments.
    pub fn between(earlier: &UsageMark, now: UsageMark, counters: &Counters) -> Usage {
        let event_counts = now.counts.zip(earlier.counts.as_ref()).map(|(counts, earlier)| {
            let differences = counts.iter().zip(earlier).map(|(count, earlier)| count.saturating_sub(*earlier));
            differences.collect()
        });
        Usage {
            cpu_time: now.reading.since(earlier.reading),
            unknown_time: now.reading.explain_unknown(earlier.reading),
            event_counts,
            sleeps: now.sleeps.map(|sleeps| sleeps.saturating_sub(earlier.sleeps.unwrap_or(0))),
            own_time: now.own_time.since(earlier.own_time),
            existing_threads: counters.owner_thread_count(),
            is_per_thread: !counters.counts_on_cpus(),
            excludes_kernel: counters.excludes_kernel,
        }
    }
}

impl Source {
    fn new(target: &Target, counters: &Counters) -> Self {
        match target {
            Target::System => Self::Cpus(counters.cpus()),
            // The directory stays the same if it is renamed.
            Target::Cgroup(directory) if counters.counts_on_all_cpus() => {
                Self::Cgroup(PathBuf::from(format!("/proc/self/fd/{}/cpu.stat", directory.as_raw_fd())))
            }
            Target::Cgroup(_) => Self::Unknown,
            Target::Command(pid) => Self::Command { pid: *pid, before: sys::process_cpu_time(*pid).unwrap_or(0) },
            Target::Processes { .. } => {
                let pids = target.running_processes();
                Self::Threads(pids.iter().map(|pid| procfs::process_stat(*pid)).collect())
            }
            Target::Threads(tids) => Self::Threads(tids.iter().map(|tid| procfs::thread_stat(*tid)).collect()),
        }
    }

    fn read(&self, counters: &Counters, sampler: Option<&StackSampler>) -> Reading {
        // The BPF program does not tell CPUs apart.
        let followed = || sampler.filter(|_| counters.counts_on_all_cpus())?.followed.cpu_time();
        match self {
            Self::Threads(files) => {
                let exact = counters.thread_time().map(|time| FollowedTime { time, ..FollowedTime::default() });
                Reading::followed(exact.or_else(followed), files.iter().map(read_ticks).sum())
            }
            Self::Command { pid, before } => {
                let ticks = read_ticks(&procfs::process_stat(*pid));
                // The kernel's sum does not tell CPUs apart.
                let at_exit = exited_alone(*pid, sampler).filter(|_| counters.counts_on_all_cpus());
                let at_exit = at_exit.map(|usage| usage.cpu_time.saturating_sub(*before));
                let unfinished = if at_exit.is_none() { followed() } else { None };
                match unfinished {
                    Some(time) => {
                        let time = FollowedTime { time: time.time.saturating_sub(*before), ..time };
                        Reading::followed(Some(time), ticks)
                    }
                    None => Reading::new(counters.thread_time().max(at_exit), ticks),
                }
            }
            Self::Cgroup(file) => parse_cgroup(&fs::read_to_string(file).unwrap_or_default()),
            Self::Cpus(cpus) => {
                let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
                parse_cpus(&stat, cpus, clock::now(), nanoseconds_per_tick()).unwrap_or_default()
            }
            Self::Unknown => Reading::default(),
        }
    }

    fn count_sleeps(&self, sampler: Option<&StackSampler>) -> Option<u64> {
        match self {
            Self::Threads(files) => sampler
                .and_then(|sampler| sampler.followed.count_sleeps())
                .or_else(|| files.iter().filter_map(|file| procfs::count_sleeps(file.parent()?)).reduce(Add::add)),
            Self::Command { pid, .. } => match exited_alone(*pid, sampler) {
                Some(usage) => Some(usage.sleeps),
                None => sampler?.followed.count_sleeps(),
            },
            Self::Cgroup(_) | Self::Cpus(_) | Self::Unknown => None,
        }
    }
}

/// Returns what a command has used that has exited, with the children that were waited for. `None` if it runs, or if others of its
/// processes do.
fn exited_alone(pid: u32, sampler: Option<&StackSampler>) -> Option<ChildUsage> {
    sys::exited_child_usage(pid).filter(|_| sampler.is_none_or(|sampler| !sampler.followed.has_others(pid)))
}
