//! The processes that run at one moment, with their parents and what they have used, as `/proc` lists them.

use std::fs;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::procfs;

/// A process, as `/proc/PID/stat` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process that created it, or that adopted it when its parent exited.
    pub parent: u32,
    /// The time since boot at which it started, in clock ticks.
    pub start: u64,
    /// The CPU time of its threads, in clock ticks.
    pub cpu_time: u64,
    /// The CPU time of its children that have exited and were waited for, in clock ticks.
    pub children_cpu_time: u64,
}

/// The processes that run.
#[derive(Debug, Default)]
pub struct ProcessTable(FxHashMap<u32, Process>);

impl ProcessTable {
    /// Reads `/proc`. A process that is created meanwhile may be missing. The recorder itself is left out, so that it and
    /// its command are descendants of no other process.
    pub fn read() -> Self {
        let others = procfs::list_processes().into_iter().filter(|pid| *pid != std::process::id());
        others.filter_map(|pid| Some((pid, parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)?))).collect()
    }

    /// Returns a process.
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.0.get(&pid)
    }

    /// Returns these processes and all their descendants, parents first.
    pub fn descendants_and_self(&self, pids: &[u32]) -> Vec<u32> {
        let mut children: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (pid, process) in &self.0 {
            children.entry(process.parent).or_default().push(*pid);
        }
        let (mut family, mut found) = (pids.to_vec(), pids.iter().copied().collect::<FxHashSet<u32>>());
        let mut next = 0;
        while let Some(pid) = family.get(next) {
            let of_this = children.remove(pid).unwrap_or_default();
            family.extend(of_this.into_iter().filter(|child| found.insert(*child)));
            next += 1;
        }
        family
    }
}

impl FromIterator<(u32, Process)> for ProcessTable {
    fn from_iter<I: IntoIterator<Item = (u32, Process)>>(processes: I) -> Self {
        Self(processes.into_iter().collect())
    }
}

/// A child whose start is up to this much later than the moment of attaching to its parent may have been created before
/// it: the kernel counts in ticks of 10 ms, and a new process inherits counters before its start time is set.
const START_TOLERANCE: Duration = Duration::from_millis(100);

/// Finds the processes of a tree that remain to be attached to, while they create and end others.
///
/// A process that was created after its parent was attached to is part of the recording already. Therefore a tree that
/// forks all the time is complete after a few readings of `/proc`.
#[derive(Debug)]
pub struct TreeScan<'a> {
    roots: &'a [u32],
    /// For each process that was attached to, the time since boot from which on its children need no attaching, in clock
    /// ticks.
    complete_since: FxHashMap<u32, u64>,
}

impl<'a> TreeScan<'a> {
    /// Creates a scan of some processes and their descendants, none of which was attached to.
    pub fn new(roots: &'a [u32]) -> Self {
        Self { roots, complete_since: FxHashMap::default() }
    }

    /// Returns the processes that remain to be attached to, parents first.
    pub fn find_missing(&self, table: &ProcessTable) -> Vec<u32> {
        // From when on the children of a process need no attaching; `u64::MAX` if the process itself is missing.
        let mut complete_since = self.complete_since.clone();
        let mut missing = Vec::new();
        for pid in table.descendants_and_self(self.roots) {
            if self.complete_since.contains_key(&pid) {
                continue;
            }
            let parent = table.get(pid).and_then(|process| Some((process, *complete_since.get(&process.parent)?)));
            let is_inherited =
                parent.is_some_and(|(process, since)| process.start > since) && !self.roots.contains(&pid);
            complete_since.insert(pid, if is_inherited { 0 } else { u64::MAX });
            if !is_inherited {
                missing.push(pid);
            }
        }
        missing
    }

    /// Notes that a process was attached to just now.
    pub fn note_attached(&mut self, pid: u32) {
        self.complete_since.insert(pid, duration_to_ticks(time_since_boot() + START_TOLERANCE));
    }
}

fn time_since_boot() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::Boottime).try_into().unwrap_or_default()
}

fn duration_to_ticks(duration: Duration) -> u64 {
    duration.as_nanos() as u64 / nanoseconds_per_tick()
}

/// Converts clock ticks to seconds.
pub fn ticks_to_seconds(ticks: u64) -> f64 {
    ticks as f64 * nanoseconds_per_tick() as f64 / 1e9
}

fn nanoseconds_per_tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Parses `/proc/PID/stat`: `PID (NAME) STATE PPID …`. The name may contain anything.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> = std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace().collect();
    Some(Process {
        parent: parse_field(&fields, 4)?.try_into().ok()?,
        start: parse_field(&fields, 22)?,
        cpu_time: parse_field(&fields, 14)? + parse_field(&fields, 15)?,
        children_cpu_time: parse_field(&fields, 16)? + parse_field(&fields, 17)?,
    })
}

/// Parses a field of `/proc/PID/stat` by its number in proc(5), where the state, the first one here, is field 3.
fn parse_field(fields: &[&str], number: usize) -> Option<u64> {
    fields.get(number - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Process, ProcessTable, TreeScan, parse_stat};

    #[test]
    fn parses_a_line_of_stat_whatever_the_name() {
        let stat = b"42 (a) R 1 (b c) S 7 42 42 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 1 0 98765 4096 100";
        let process = Process { parent: 7, start: 98765, cpu_time: 33, children_cpu_time: 77 };
        assert_eq!(parse_stat(stat), Some(process));
        assert_eq!(parse_stat(b"42 (sh) S 7"), None);
        assert_eq!(parse_stat(b""), None);
    }

    fn table(processes: &[(u32, u32, u64)]) -> ProcessTable {
        let processes = processes
            .iter()
            .map(|&(pid, parent, start)| (pid, Process { parent, start, cpu_time: 0, children_cpu_time: 0 }));
        processes.collect()
    }

    fn sorted(mut pids: Vec<u32>) -> Vec<u32> {
        pids.sort_unstable();
        pids
    }

    #[test]
    fn finds_descendants_of_several_processes_once() {
        let table = table(&[(1, 0, 0), (2, 1, 0), (3, 2, 0), (4, 3, 0), (5, 1, 0), (6, 5, 0), (7, 7, 0)]);
        assert_eq!(sorted(table.descendants_and_self(&[2])), [2, 3, 4]);
        assert_eq!(sorted(table.descendants_and_self(&[3, 2, 5])), [2, 3, 4, 5, 6]);
        assert_eq!(sorted(table.descendants_and_self(&[7, 99])), [7, 99]);
    }

    #[test]
    fn attaches_to_what_was_created_before_its_parent_was_attached_to() {
        let mut scan = TreeScan::new(&[1]);
        assert_eq!(sorted(scan.find_missing(&table(&[(1, 0, 10), (2, 1, 20)]))), [1, 2]);
        scan.complete_since = [(1, 100), (2, 200)].into_iter().collect();
        let processes = [(1, 0, 10), (2, 1, 20), (3, 1, 101), (4, 1, 100), (5, 2, 150), (6, 2, 201)];
        assert_eq!(sorted(scan.find_missing(&table(&processes))), [4, 5]);
        // Children of a process that is missing are missing, those of one that inherited are not.
        let processes = [(1, 0, 10), (3, 1, 101), (4, 1, 100), (7, 3, 102), (8, 4, 999), (9, 8, 999), (10, 7, 103)];
        assert_eq!(sorted(scan.find_missing(&table(&processes))), [4, 8, 9]);
    }

    #[test]
    fn reads_the_running_processes() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let (own, table) = (std::process::id(), ProcessTable::read());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(table.get(child.id()).map(|process| process.parent), Some(own));
        assert_eq!(table.descendants_and_self(&[own])[0], own);
        assert!(table.descendants_and_self(&[own]).contains(&child.id()));
        assert!(!table.descendants_and_self(&[std::os::unix::process::parent_id()]).contains(&own));
    }
}
