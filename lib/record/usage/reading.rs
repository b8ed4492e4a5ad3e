//! Readings of the CPU time that a target has used up to a moment.

use std::path::PathBuf;

use crate::bytes::read_lossy;
use crate::record::bpf::FollowedTime;

/// CPU time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    /// The time in user space and in the kernel.
    pub total: u64,
    /// The part in user space. The kernel estimates it from the ticks of its timer, which hit one or the other. `None`
    /// if that is not known of nearly all of the time.
    pub user: Option<u64>,
    /// The processes or threads that have ended, and the number of those whose time is not known: at most a hundredth.
    pub ended: EndedCounts,
}

/// The numbers of processes or threads that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedCounts {
    /// All of them, if they are counted.
    pub all: u64,
    /// Those whose CPU time is not known.
    pub unknown: u64,
}

/// The CPU time until now, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Only differences between two readings mean something.
    total: Option<i128>,
    /// The upper bound of what `total` lacks, because processes ended while it was read.
    lacks_at_most: u64,
    /// The processes or threads that have ended, and of how many `total` lacks the time.
    ended: EndedCounts,
    ticks: Option<Ticks>,
}

/// The time in user space and in the kernel by the ticks of the kernel's timer, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    user: u64,
    system: u64,
}

impl Reading {
    pub fn new(total: Option<u64>, ticks: Option<Ticks>) -> Self {
        Self { total: total.map(i128::from), ticks, ..Self::default() }
    }

    /// Creates a reading of the time that the BPF program follows, or of counters of threads.
    pub fn followed(time: Option<FollowedTime>, ticks: Option<Ticks>) -> Self {
        let Some(time) = time else { return Self::new(None, ticks) };
        let ended = EndedCounts { all: time.ended + time.unfreed, unknown: time.unfreed };
        Self { lacks_at_most: time.lacks_at_most, ended, ..Self::new(Some(time.time), ticks) }
    }

    /// Returns the time between an earlier reading and this one. `None` if it is not known to within a hundredth, or not of
    /// more than a hundredth of those that have ended.
    pub fn since(self, earlier: Self) -> Option<CpuTime> {
        let total = self.total_since(earlier)?;
        let ended = self.ended_since(earlier);
        if self.lacks_at_most.max(earlier.lacks_at_most) > total / 100 || ended.unknown > ended.all / 100 {
            return None;
        }
        let ticks = self.ticks.zip(earlier.ticks).map(|(now, before)| Ticks {
            user: now.user.saturating_sub(before.user),
            system: now.system.saturating_sub(before.system),
        });
        Some(CpuTime { total, user: ticks.and_then(|ticks| ticks.user_part(total)), ended })
    }

    /// Returns those that have ended since an earlier reading. The time of those that were unknown then, and are not now, is in
    /// the difference.
    fn ended_since(self, earlier: Self) -> EndedCounts {
        let unknown = self.ended.unknown.abs_diff(earlier.ended.unknown);
        EndedCounts { all: self.ended.all.saturating_sub(earlier.ended.all).max(unknown), unknown }
    }

    fn total_since(self, earlier: Self) -> Option<u64> {
        Some(u64::try_from(self.total? - earlier.total?).unwrap_or(0))
    }

    /// Returns the reason why the time since an earlier reading is not known, if both were possible.
    pub fn explain_unknown(self, earlier: Self) -> Option<String> {
        self.total_since(earlier).filter(|_| self.since(earlier).is_none())?;
        Some(match self.ended_since(earlier).unknown {
            0 => "too many of its processes or threads ended while it was read".to_owned(),
            1 => "the kernel has not told that of one that ended".to_owned(),
            unknown => format!("the kernel has not told that of {unknown} that ended"),
        })
    }
}

impl Ticks {
    /// Returns the part of the time in user space. `None` if the ticks do not cover nearly all of the time. Ticks of
    /// children are left out: of a process that is shorter than a tick, the kernel counts all time as either user or system.
    fn user_part(self, total: u64) -> Option<u64> {
        let all = self.user + self.system;
        let share = all as f64 / total as f64;
        (all > 0 && (0.9..=1.1).contains(&share)).then(|| (total as f64 * self.user as f64 / all as f64) as u64)
    }
}

impl std::iter::Sum for Ticks {
    fn sum<I: Iterator<Item = Self>>(ticks: I) -> Self {
        ticks
            .fold(Self::default(), |sum, ticks| Self { user: sum.user + ticks.user, system: sum.system + ticks.system })
    }
}

/// Reads the time of a process or thread from its `stat`.
pub fn read_ticks(file: &PathBuf) -> Option<Ticks> {
    parse_process(&read_lossy(file).ok()?, nanoseconds_per_tick())
}

pub fn nanoseconds_per_tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Parses the `stat` of a process or thread: its own time, without that of its children.
fn parse_process(stat: &str, tick: u64) -> Option<Ticks> {
    // The name before may contain anything. The state after it is field 3 of proc(5), the times are 14 and 15.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).map(|field| field.parse::<u64>().ok());
    Some(Ticks { user: fields.next()?? * tick, system: fields.next()?? * tick })
}

/// Parses a cgroup's `cpu.stat`, which only cgroup2 has.
pub fn parse_cgroup(stat: &str) -> Reading {
    let [total, user, system] =
        ["usage_usec", "user_usec", "system_usec"].map(|name| find_microseconds(stat, name).map(|time| time * 1000));
    let ticks = user.zip(system).map(|(user, system)| Ticks { user, system });
    Reading::new(total, ticks)
}

fn find_microseconds(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Parses `/proc/stat`. The time that a CPU is not idle is exact, that of user space is counted in ticks.
pub fn parse_cpus(stat: &str, cpus: &[u32], now: u64, tick: u64) -> Option<Reading> {
    let mut reading = Reading::new(Some(0), Some(Ticks::default()));
    for cpu in cpus {
        let name = format!("cpu{cpu} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
        let times: Vec<u64> = line.split(' ').map_while(|time| Some(time.parse::<u64>().ok()? * tick)).collect();
        let [user, nice, system, idle, io_wait, irq, soft_irq, steal, ..] = times[..] else { return None };
        // What the hypervisor gives to others is not ours.
        let not_used = idle + io_wait + steal;
        reading.total = Some(reading.total? + i128::from(now) - i128::from(not_used));
        let ticks = [reading.ticks?, Ticks { user: user + nice, system: system + irq + soft_irq }];
        reading.ticks = Some(ticks.into_iter().sum());
    }
    Some(reading)
}

#[cfg(test)]
mod tests {
    use super::{CpuTime, EndedCounts, Reading, Ticks, parse_cgroup, parse_cpus, parse_process};

    #[test]
    fn reads_the_own_time_of_a_process() {
        let stat = "71 (a) b) R 1 71 71 0 -1 4194304 100 200 0 0 25 7 900 800 20 0 1 0 5000";
        assert_eq!(parse_process(stat, 10), Some(Ticks { user: 250, system: 70 }));
        assert_eq!(parse_process("71 (a) R 1", 10), None);
    }

    #[test]
    fn reads_the_time_of_a_cgroup() {
        let stat = "usage_usec 500\nuser_usec 300\nsystem_usec 200\ncore_sched.force_idle_usec 0\n";
        let ticks = Some(Ticks { user: 300_000, system: 200_000 });
        assert_eq!(parse_cgroup(stat), Reading::new(Some(500_000), ticks));
        assert_eq!(parse_cgroup("nr_periods 0\n"), Reading::default());
    }

    #[test]
    fn a_cpu_is_used_when_it_is_neither_idle_nor_stolen() {
        let before = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 5 100 3 0 1 2 0 0\ncpu1 0 0 0 120 0 0 0 0 0 0\nintr 5\n";
        let after = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 40 5 20 130 8 1 2 12 0 0\ncpu1 0 0 0 220 0 0 0 0 0 0\nintr 5\n";
        let both = parse_cpus(after, &[0, 1], 1100, 1).unwrap().since(parse_cpus(before, &[0, 1], 1000, 1).unwrap());
        // The ticks account for 52 of 55.
        assert_eq!(both, Some(CpuTime { total: 55, user: Some(37), ended: EndedCounts::default() }));
        let idle = parse_cpus(after, &[1], 1100, 1).unwrap().since(parse_cpus(before, &[1], 1000, 1).unwrap());
        assert_eq!(idle, Some(CpuTime { total: 0, user: None, ended: EndedCounts::default() }));
        assert_eq!(parse_cpus(after, &[2], 1100, 1), None);
    }

    #[test]
    fn the_time_in_user_space_is_unknown_if_children_used_much_of_it() {
        let ticks = Ticks { user: 60, system: 30 };
        assert_eq!(ticks.user_part(99), Some(66));
        assert_eq!(ticks.user_part(101), None);
        assert_eq!(Ticks::default().user_part(0), None);
        let [earlier, later] = [None, Some(5)].map(|total| Reading::new(total, None));
        assert_eq!(later.since(earlier), None);
    }

    #[test]
    fn a_time_must_be_known_to_within_a_hundredth() {
        let reading = |total, lacks_at_most| Reading { lacks_at_most, ..Reading::new(Some(total), None) };
        let time = Some(CpuTime { total: 1000, user: None, ended: EndedCounts::default() });
        assert_eq!(reading(9000, 10).since(reading(8000, 10)), time);
        assert_eq!(reading(9000, 11).since(reading(8000, 0)), None);
        assert_eq!(reading(9000, 0).since(reading(8000, 11)), None);
        let with_ended = |all, unknown| Reading { ended: EndedCounts { all, unknown }, ..reading(9000, 0) };
        assert_eq!(with_ended(1, 1).since(reading(8000, 0)), None);
        let earlier = Reading { ended: EndedCounts { all: 100, unknown: 1 }, ..reading(8000, 0) };
        assert_eq!(with_ended(299, 3).since(earlier), None);
        assert_eq!(with_ended(199, 0).since(earlier), None);
        let known = |all, unknown| {
            let ended = EndedCounts { all, unknown };
            Some(CpuTime { total: 1000, user: None, ended })
        };
        assert_eq!(with_ended(300, 3).since(earlier), known(200, 2));
        assert_eq!(with_ended(100, 1).since(earlier), known(0, 0));
    }

    #[test]
    fn says_why_a_time_is_unknown() {
        let earlier = Reading::new(Some(8000), None);
        let explain = |lacks_at_most, unknown| {
            let ended = EndedCounts { all: 3, unknown };
            Reading { lacks_at_most, ended, ..Reading::new(Some(9000), None) }.explain_unknown(earlier)
        };
        assert_eq!(explain(10, 0), None);
        assert_eq!(explain(11, 0).unwrap(), "too many of its processes or threads ended while it was read");
        assert_eq!(explain(0, 3).unwrap(), "the kernel has not told that of 3 that ended");
        assert_eq!(Reading::default().explain_unknown(earlier), None);
    }
}
