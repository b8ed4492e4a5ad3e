//! Tells the user of running children of the target that are not recorded, if they do the work.

use rustc_hash::FxHashSet;

use super::process_table::{ProcessTable, ticks_to_seconds};
use super::target::Target;

/// Less CPU time than this is not worth a line: a few ticks, in which the kernel counts it.
const MIN_SECONDS: f64 = 0.1;

/// The target's processes and their descendants when the recording began.
#[derive(Debug)]
pub struct UnrecordedChildren {
    pids: Vec<u32>,
    at_start: ProcessTable,
}

/// The CPU time of a tree of processes, in clock ticks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Usage {
    /// The number of running processes that are not recorded.
    unrecorded: usize,
    unrecorded_ticks: u64,
    recorded_ticks: u64,
}

impl UnrecordedChildren {
    /// Reads the CPU time that processes have used until now. Returns `None` if the target has no running children, or
    /// records them.
    pub fn watch(target: &Target) -> Option<Self> {
        let Target::Processes { pids, subprocesses: false } = target else { return None };
        let watched = Self { pids: pids.clone(), at_start: ProcessTable::read() };
        let family = watched.at_start.descendants_and_self(pids);
        (family.len() > pids.len()).then_some(watched)
    }

    /// Returns the line for the user, if children have used CPU time since and the target hardly any.
    pub fn hint(&self) -> Option<String> {
        let usage = self.usage(&ProcessTable::read());
        let seconds = ticks_to_seconds(usage.unrecorded_ticks);
        if seconds < MIN_SECONDS || usage.recorded_ticks * 10 > usage.unrecorded_ticks {
            return None;
        }
        let have = match &self.pids[..] {
            [pid] => format!("PID {pid} has"),
            pids => format!("the {} processes of -p have", pids.len()),
        };
        let (count, noun) = (usage.unrecorded, if usage.unrecorded == 1 { "subprocess" } else { "subprocesses" });
        Some(format!("{have} {count} running {noun} that used {seconds:.1} s of CPU time: --subprocesses records them"))
    }

    /// Returns what was used from the start to `now`.
    fn usage(&self, now: &ProcessTable) -> Usage {
        let mut usage = Usage::default();
        let mut unrecorded = FxHashSet::default();
        for pid in now.descendants_and_self(&self.pids) {
            let Some(process) = now.get(pid) else { continue };
            // The ID may have been reused.
            let before = self.at_start.get(pid).filter(|before| before.start == process.start);
            let used = process.cpu_time.saturating_sub(before.map_or(0, |before| before.cpu_time));
            let is_named = self.pids.contains(&pid);
            if !is_named && (before.is_some() || unrecorded.contains(&process.parent)) {
                unrecorded.insert(pid);
                usage.unrecorded += 1;
                usage.unrecorded_ticks += used;
                continue;
            }
            usage.recorded_ticks += used;
            if is_named {
                // Recorded children may have exited. If others have too, this is too much, and there is no line.
                let before = before.map_or(0, |before| before.children_cpu_time);
                usage.recorded_ticks += process.children_cpu_time.saturating_sub(before);
            }
        }
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::{UnrecordedChildren, Usage};
    use crate::record::process_table::{Process, ProcessTable};

    fn table(processes: &[(u32, u32, u64, u64)]) -> ProcessTable {
        let processes = processes
            .iter()
            .map(|&(pid, parent, start, cpu_time)| (pid, Process { parent, start, cpu_time, children_cpu_time: 0 }));
        processes.collect()
    }

    #[test]
    fn counts_what_ran_at_the_start_and_what_that_created() {
        let watched =
            UnrecordedChildren { pids: vec![1], at_start: table(&[(1, 0, 0, 5), (2, 1, 1, 10), (3, 1, 1, 9)]) };
        // 2 went on and created 4; 1 created 5, which is recorded; 3 exited, and its ID was given to a child of 1.
        let now = table(&[(1, 0, 0, 6), (2, 1, 1, 30), (3, 1, 50, 7), (4, 2, 60, 4), (5, 1, 70, 2), (6, 5, 80, 1)]);
        let expected = Usage { unrecorded: 2, unrecorded_ticks: 20 + 4, recorded_ticks: 1 + 7 + 2 + 1 };
        assert_eq!(watched.usage(&now), expected);
    }
}
