//! The processes or threads of a target as the BPF program follows them: those that run, and what those used that have ended.

use std::time::Duration;

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray};
use rustc_hash::{FxHashMap, FxHashSet};

use super::errors::BoxError;
use super::maps::take_map;
use crate::record::target::Target;
use crate::record::{procfs, sys};

/// The values of `scope` in the program: whose samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Everybody = 0,
    Processes = 1,
    Threads = 2,
}

/// `struct target`: a task, and whether it runs its program yet.
type TargetWords = [u64; 2];
const HELD: u64 = 0;
const WANTED: u64 = 1;

/// `struct own_time`: the sum, two numbers for the program alone, and the number of samples that were left out.
type OwnTimeWords = [u64; 4];

/// Most readings of the CPU time at the end: the program adds the time of a process when the kernel frees it, a little after
/// its exit.
const MAX_READINGS: u32 = 20;
const READING_INTERVAL: Duration = Duration::from_millis(5);

/// The processes or threads of a target.
pub struct Followed {
    pub(super) scope: Scope,
    /// Those that are not gone.
    targets: HashMap<MapData, u32, TargetWords>,
    /// The CPU time of those that are gone, their number, and that of the sleeps of ended threads.
    ended: Array<MapData, [u64; 3]>,
    /// The time that taking their stacks took on each CPU.
    own_times: PerCpuArray<MapData, OwnTimeWords>,
}

/// The CPU time of a target, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct FollowedTime {
    /// The time of all its processes or threads, also of those that have ended.
    pub time: u64,
    /// The upper bound of what `time` lacks, because processes ended while it was read.
    pub lacks_at_most: u64,
    /// The number of processes or threads that have ended, whose time is not known: the kernel has not freed them yet, or the program
    /// has not seen it. Some kernels run no programs while a certain process is on the CPU, which may be one that is interrupted by
    /// the freeing.
    pub unfreed: u64,
    /// The number of those that have ended whose time is known.
    pub ended: u64,
}

/// The time that taking stacks took, in which the threads whose stacks they are made no progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnTime {
    /// The time in nanoseconds. Some kernels count it as the threads' CPU time, those that account interrupts for themselves do not.
    pub time: u64,
    /// The number of samples of clocks that were left out because they fall to this time.
    pub left_out: u64,
}

impl OwnTime {
    fn add(self, other: Self) -> Self {
        Self { time: self.time + other.time, left_out: self.left_out + other.left_out }
    }

    /// Returns the part that is not in an earlier one.
    pub fn since(self, earlier: Self) -> Self {
        let (time, left_out) = (self.time.saturating_sub(earlier.time), self.left_out.saturating_sub(earlier.left_out));
        Self { time, left_out }
    }
}

impl Scope {
    pub(super) fn new(target: &Target) -> Self {
        match target {
            Target::Command(_) | Target::Processes { .. } => Self::Processes,
            Target::Threads(_) => Self::Threads,
            Target::Cgroup(_) | Target::System => Self::Everybody,
        }
    }
}

impl Followed {
    /// Takes the maps of a program, and adds the processes or threads that the target names.
    pub(super) fn open(program: &mut Ebpf, scope: Scope, target: &Target) -> Result<Self, BoxError> {
        let mut targets: HashMap<MapData, u32, TargetWords> = take_map(program, "targets")?.try_into()?;
        let (ids, state): (&[u32], u64) = match target {
            Target::Command(pid) => (std::slice::from_ref(pid), HELD),
            Target::Processes { pids: ids, .. } | Target::Threads(ids) => (ids, WANTED),
            Target::Cgroup(_) | Target::System => (&[], WANTED),
        };
        for id in ids {
            targets.insert(id, [0, state], 0)?;
        }
        let ended = take_map(program, "ended_targets")?.try_into()?;
        Ok(Self { scope, targets, ended, own_times: take_map(program, "own_times")?.try_into()? })
    }

    /// Adds a process that runs.
    ///
    /// # Errors
    /// Errors of the system call.
    pub(super) fn add(&mut self, pid: u32) -> Result<(), MapError> {
        self.targets.insert(pid, [0, WANTED], 0)
    }

    /// Returns the CPU time that the target's processes or threads have used since they exist. `None` if it cannot be
    /// known, or if all processes are recorded.
    pub fn cpu_time(&self) -> Option<FollowedTime> {
        let (mut last_times, mut missing) = (FxHashMap::default(), None::<FxHashSet<u32>>);
        let mut best = None::<FollowedTime>;
        for _ in 0..MAX_READINGS {
            let [ended_time, ended, _] = self.ended.get(&0, 0).ok()?;
            let (mut time, mut gone) = (ended_time, FxHashSet::default());
            for id in self.target_ids()? {
                if let Some(own) = self.read_cpu_time(id).or_else(|| last_times.get(&id).copied()) {
                    last_times.insert(id, own);
                    time += own;
                } else {
                    gone.insert(id);
                }
            }
            // Those that are gone from now on began after the first reading.
            let missing = missing.get_or_insert_with(|| gone.clone());
            missing.retain(|id| gone.contains(id));
            let lacks_at_most = self.ended.get(&0, 0).ok()?[0].saturating_sub(ended_time);
            let read = FollowedTime { time, lacks_at_most, unfreed: missing.len() as u64, ended };
            if best.is_none_or(|best| (read.unfreed, read.lacks_at_most) < (best.unfreed, best.lacks_at_most)) {
                best = Some(read);
            }
            if read.unfreed == 0 && read.lacks_at_most == 0 {
                break;
            }
            std::thread::sleep(READING_INTERVAL);
        }
        best
    }

    /// Returns how often the threads of the target have gone to sleep, those that have ended since the start and those that run.
    pub fn count_sleeps(&self) -> Option<u64> {
        let ended = self.ended.get(&0, 0).ok()?[2];
        let running = self.target_ids()?.into_iter().filter_map(|id| match self.scope {
            Scope::Threads => procfs::count_sleeps(procfs::thread_stat(id).parent()?),
            _ => procfs::count_sleeps(procfs::process_stat(id).parent()?),
        });
        Some(ended + running.sum::<u64>())
    }

    /// True if there is another process or thread than this one: it runs, or its parent has not waited for it.
    pub fn has_others(&self, id: u32) -> bool {
        let ids = self.target_ids().unwrap_or_default();
        ids.into_iter().any(|other| other != id && self.read_cpu_time(other).is_some())
    }

    /// Returns the time that taking stacks took. `None` if it cannot be known.
    pub fn own_time(&self) -> Option<OwnTime> {
        let of_cpus = self.own_times.get(&0, 0).ok()?;
        let times = of_cpus.iter().map(|[time, .., left_out]| OwnTime { time: *time, left_out: *left_out });
        times.reduce(OwnTime::add)
    }

    /// Returns the IDs of the target's processes or threads, as far as the kernel has not freed them.
    fn target_ids(&self) -> Option<FxHashSet<u32>> {
        // While entries are deleted, keys may come twice.
        let ids = self.targets.keys().collect::<Result<FxHashSet<u32>, _>>().ok();
        ids.filter(|_| self.scope != Scope::Everybody)
    }

    fn read_cpu_time(&self, id: u32) -> Option<u64> {
        if self.scope == Scope::Threads { procfs::thread_cpu_time(id) } else { sys::process_cpu_time(id) }
    }
}
