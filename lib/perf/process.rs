//! All processes with their mappings, and the names of threads, at any time of a recording.
//!
//! Records of different CPUs are not read in the order of their times. A sample may be older than the newest mapping at
//! its address, or than the program that its process runs by now. So nothing is overwritten: a mapping that is replaced
//! is retired with the time of its end, and every look-up has a time.

use rustc_hash::FxHashMap;

use super::mappings::{Mapping, Mappings, Timed, Version};
use super::objects::object::ObjectId;

/// Maximum number of mappings that all processes together inherit from their parents.
///
/// No machine has as many, but a forged recording may fork a process with many mappings very often.
const MAX_INHERITED: usize = 1 << 22;

/// The ID of a thread's name in [`Recording::comms`](super::recording::Recording::comms).
pub type CommId = u32;

/// The end of a thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadExit {
    time: u64,
    pid: u32,
    /// The thread's ID.
    pub tid: u32,
}

impl ThreadExit {
    /// Returns the process that has ended if the thread was its first. The kernel keeps the first thread until all others have
    /// exited.
    pub fn process(&self) -> Option<u32> {
        (self.pid == self.tid).then_some(self.pid)
    }
}

/// All processes and threads of a recording.
#[derive(Debug, Default)]
pub struct Processes {
    processes: FxHashMap<u32, Mappings>,
    comms: FxHashMap<u32, Vec<Timed<CommId>>>,
    /// The processes of threads that were created.
    of_threads: FxHashMap<u32, u32>,
    /// Threads that have exited. They are forgotten when no sample of theirs can come any more.
    exits: Vec<ThreadExit>,
    /// The number of the latest version of any process.
    last_version: u32,
    /// Number of mappings that processes have inherited, including some that were retired lately.
    inherited: usize,
}

impl Processes {
    /// Adds a mapping that exists from `time` on.
    pub fn map(&mut self, pid: u32, mapping: Mapping, time: u64) {
        if mapping.start < mapping.end {
            self.begin_version(pid, time).map(mapping, time);
        }
    }

    /// Names a thread from `time` on.
    pub fn set_comm(&mut self, tid: u32, comm: CommId, time: u64) {
        let comms = self.comms.entry(tid).or_default();
        if let Some(last) = comms.last_mut() {
            last.until = last.until.min(time);
        }
        comms.push(Timed::since(time, comm));
    }

    /// Returns a process whose mappings are about to change, with a new version.
    fn begin_version(&mut self, pid: u32, time: u64) -> &mut Mappings {
        self.last_version = self.last_version.checked_add(1).expect("fewer than 2^32 changes");
        let process = self.processes.entry(pid).or_default();
        process.version = Version { number: self.last_version, since: time.max(process.version.since) };
        process
    }

    /// Returns the version of a process's mappings. Look-ups of an address find the same mapping as long as the version
    /// is the same.
    ///
    /// `None` for times before the latest change.
    pub fn version(&self, pid: u32, time: u64) -> Option<u32> {
        let process = self.processes.get(&pid).filter(|process| process.version.since <= time)?;
        Some(process.version.number)
    }

    /// Retires all mappings of a process, which runs a new program from `time` on.
    pub fn exec(&mut self, pid: u32, time: u64) {
        let process = self.begin_version(pid, time);
        process.retire_all(time);
        process.exec_time = time;
    }

    /// True if a process runs another program than at `time`, or is unknown.
    pub fn has_execed_since(&self, pid: u32, time: u64) -> bool {
        self.processes.get(&pid).is_none_or(|process| process.exec_time > time)
    }

    /// Adds a new thread. It is that of a new process if `pid` differs from `parent_pid`.
    ///
    /// The thread inherits the name of its parent, and a new process the mappings.
    pub fn fork(&mut self, (pid, tid): (u32, u32), (parent_pid, parent_tid): (u32, u32), time: u64) {
        if let Some(comm) = self.comm(parent_tid, time) {
            self.set_comm(tid, comm, time);
        }
        self.of_threads.insert(tid, pid);
        if pid == parent_pid {
            return;
        }
        let inherited: Vec<(Mapping, u64)> = self.processes.get(&parent_pid).map_or(Vec::new(), |parent| {
            let mappings = parent.current.values().filter(|mapping| mapping.since <= time);
            mappings.map(|mapping| (mapping.value, parent.since(mapping))).collect()
        });
        let is_too_much = self.inherited + inherited.len() > MAX_INHERITED;
        let inherited = if is_too_much { Vec::new() } else { inherited };
        self.inherited += inherited.len();
        let process = self.begin_version(pid, time);
        process.retire_all(time);
        process.exec_time = time;
        process.fork_time = time;
        process.parent = Some(parent_pid);
        process.inherited = inherited.iter().map(|(mapping, since)| (mapping.start, *since)).collect();
        for (mapping, _) in inherited {
            process.current.insert(mapping.start, Timed::since(time, mapping));
        }
    }

    /// Returns the process of a thread, if it is known.
    pub fn of_thread(&self, tid: u32) -> Option<u32> {
        self.of_threads.get(&tid).copied().or_else(|| self.processes.contains_key(&tid).then_some(tid))
    }

    /// Iterates over the process that has created a process, the one that has created that, and so on, as far as they are known.
    pub fn ancestors(&self, pid: u32) -> impl Iterator<Item = u32> + '_ {
        let parent = |pid: &u32| self.processes.get(pid)?.parent;
        std::iter::successors(parent(&pid), parent)
    }

    /// Notes the end of a thread.
    pub fn exit(&mut self, pid: u32, tid: u32, time: u64) {
        self.exits.push(ThreadExit { time, pid, tid });
    }

    /// Iterates over the mappings that a process has now, by their addresses.
    pub fn mappings(&self, pid: u32) -> impl Iterator<Item = Mapping> + '_ {
        let process = self.processes.get(&pid).into_iter();
        process.flat_map(|process| process.current.values().map(|mapping| mapping.value))
    }

    /// Iterates over the mappings that a process has now, and that are newer than `time`: what it inherited is as old as in its
    /// parent.
    pub fn mappings_since(&self, pid: u32, time: u64) -> impl Iterator<Item = Mapping> + '_ {
        let processes = self.processes.get(&pid).into_iter();
        processes.flat_map(move |process| {
            let current = process.current.values();
            current.filter(move |mapping| process.since(mapping) > time).map(|mapping| mapping.value)
        })
    }

    /// Returns what was mapped at an address of a process.
    pub fn find(&self, pid: u32, address: u64, time: u64) -> Option<Mapping> {
        self.processes.get(&pid)?.find(address, time)
    }

    /// Returns what was mapped at an address of a process, or of its parent if that was before the fork.
    pub fn find_in_ancestry(&self, pid: u32, address: u64, time: u64) -> Option<Mapping> {
        self.processes.get(&pid)?.find_in_ancestry(address, time)
    }

    /// Returns the name of a thread.
    pub fn comm(&self, tid: u32, time: u64) -> Option<CommId> {
        let comms = self.comms.get(&tid)?;
        // The kernel names a thread before it runs, so a sample before the first known name has that name.
        comms.iter().rev().find(|comm| comm.since <= time).or(comms.first()).map(|comm| comm.value)
    }

    /// True if anything is known about a process.
    pub fn contains(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// Iterates over the objects of all mappings that exist or are retired.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let processes = self.processes.values();
        let mappings = processes.flat_map(|process| process.current.values().chain(&process.retired));
        mappings.map(|mapping| mapping.value.object)
    }

    /// Replaces the IDs of all thread names.
    pub fn renumber_comms(&mut self, mut new_id: impl FnMut(CommId) -> CommId) {
        self.comms.values_mut().flatten().for_each(|comm| comm.value = new_id(comm.value));
    }

    /// Removes and returns the threads that exited before `time` and do not run any more.
    ///
    /// The kernel reports an exit before it unmaps the memory of the thread, which takes a while and may be sampled.
    pub fn take_exited_before(&mut self, time: u64, is_running: impl Fn(u32) -> bool) -> Vec<ThreadExit> {
        self.exits.extract_if(.., |exit| exit.time < time && !is_running(exit.tid)).collect()
    }

    /// Drops the mappings and names that only samples before `time`, or samples of the `exited` threads, can refer to.
    pub fn forget_before(&mut self, time: u64, exited: Vec<ThreadExit>) {
        for ThreadExit { time: exit, pid, tid } in exited {
            // The thread ID may belong to another thread by now.
            if self.comms.get(&tid).and_then(|comms| comms.last()).is_some_and(|comm| comm.since <= exit) {
                self.comms.remove(&tid);
                self.of_threads.remove(&tid);
                if pid == tid {
                    self.processes.remove(&pid);
                }
            }
        }
        self.inherited = self.processes.values().map(|process| process.current.len()).sum();
        for process in self.processes.values_mut() {
            let gone = process.retired.partition_point(|mapping| mapping.until <= time);
            process.retired.drain(..gone);
        }
        for comms in self.comms.values_mut().filter(|comms| comms.len() > 1) {
            let last = comms.len() - 1;
            let first_kept = comms.iter().position(|comm| comm.until > time).unwrap_or(last);
            comms.drain(..first_kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mapping, ObjectId, Processes, ThreadExit};

    fn mapping(start: u64, end: u64, object: u32) -> Mapping {
        Mapping { start, end, offset: 0, object: ObjectId(object), is_writable: false }
    }

    fn found(processes: &Processes, address: u64, time: u64) -> Option<(u32, u64)> {
        processes.find(1, address, time).map(|mapping| (mapping.object.0, mapping.offset))
    }

    #[test]
    fn finds_what_was_mapped_at_the_time() {
        let mut processes = Processes::default();
        processes.map(1, mapping(100, 200, 7), 10);
        processes.map(1, mapping(140, 160, 8), 20);
        assert_eq!(found(&processes, 150, 5), None);
        assert_eq!(found(&processes, 150, 15), Some((7, 0)));
        assert_eq!(found(&processes, 150, 25), Some((8, 0)));
        assert_eq!(found(&processes, 110, 25), Some((7, 0)));
        assert_eq!(found(&processes, 170, 25), Some((7, 60)));
        assert_eq!(found(&processes, 170, 15), Some((7, 0)));
        processes.forget_before(21, Vec::new());
        assert_eq!(found(&processes, 150, 15), None);
        assert_eq!(found(&processes, 150, 25), Some((8, 0)));
    }

    #[test]
    fn finds_fast_among_a_hundred_thousand_retired_mappings() {
        let mut processes = Processes::default();
        let began = std::time::Instant::now();
        for time in 1..100_000 {
            processes.map(1, mapping(100, 200, time), u64::from(time));
            let before = u64::from(time.saturating_sub(100).max(1));
            assert_eq!(found(&processes, 150, before).map(|(object, _)| u64::from(object)), Some(before));
            // Nothing was ever mapped here.
            assert_eq!(found(&processes, 250, before), None);
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    }

    #[test]
    fn exec_hides_old_mappings_from_new_samples_only() {
        let mut processes = Processes::default();
        processes.map(1, mapping(100, 200, 7), 10);
        processes.exec(1, 20);
        processes.map(1, mapping(100, 200, 9), 21);
        assert_eq!(found(&processes, 150, 19), Some((7, 0)));
        assert_eq!(found(&processes, 150, 20), None);
        assert_eq!(found(&processes, 150, 22), Some((9, 0)));
    }

    #[test]
    fn a_child_inherits_mappings_and_name() {
        let mut processes = Processes::default();
        processes.map(5, mapping(100, 200, 7), 10);
        processes.set_comm(5, 3, 10);
        processes.fork((1, 1), (5, 5), 30);
        assert_eq!(found(&processes, 150, 31), Some((7, 0)));
        assert_eq!(processes.comm(1, 31), Some(3));
        processes.set_comm(1, 4, 40);
        assert_eq!((processes.comm(1, 39), processes.comm(1, 40)), (Some(3), Some(4)));
    }

    /// Returns the object that process 1 or what it was forked from has mapped at an address.
    fn found_in_ancestry(processes: &Processes, address: u64, time: u64) -> Option<u32> {
        processes.find_in_ancestry(1, address, time).map(|mapping| mapping.object.0)
    }

    fn since(processes: &Processes, time: u64) -> usize {
        processes.mappings_since(1, time).count()
    }

    #[test]
    fn knows_the_ancestors_of_processes() {
        let mut processes = Processes::default();
        processes.fork((2, 2), (1, 1), 10);
        processes.fork((3, 3), (2, 5), 20);
        processes.fork((3, 4), (3, 3), 30);
        assert_eq!([3, 2, 1].map(|pid| processes.ancestors(pid).collect::<Vec<_>>()), [vec![2, 1], vec![1], vec![]]);
    }

    #[test]
    fn what_a_child_inherits_is_as_old_as_in_its_parent() {
        let mut processes = Processes::default();
        processes.map(5, mapping(100, 200, 7), 10);
        processes.map(5, mapping(300, 400, 8), 20);
        processes.fork((6, 6), (5, 5), 30);
        processes.fork((1, 1), (6, 6), 40);
        let times = [9, 10, 19, 20, 35, 50];
        assert_eq!(
            times.map(|time| found_in_ancestry(&processes, 150, time)),
            [None, Some(7), Some(7), Some(7), Some(7), Some(7)]
        );
        assert_eq!(
            times.map(|time| found_in_ancestry(&processes, 350, time)),
            [None, None, None, Some(8), Some(8), Some(8)]
        );
        assert_eq!([9, 15, 20, 45].map(|time| since(&processes, time)), [2, 1, 0, 0]);
        // What was replaced since the fork is found as it was.
        processes.map(1, mapping(300, 400, 9), 60);
        assert_eq!([25, 50, 60].map(|time| found_in_ancestry(&processes, 350, time)), [Some(8), Some(8), Some(9)]);
        assert_eq!(since(&processes, 45), 1);
        // A sample may be older than the program that the process runs by now.
        processes.exec(1, 70);
        processes.map(1, mapping(100, 200, 9), 70);
        assert_eq!(
            [9, 20, 50, 70].map(|time| found_in_ancestry(&processes, 150, time)),
            [None, Some(7), Some(7), Some(9)]
        );
        assert_eq!(since(&processes, 60), 1);
    }

    #[test]
    fn limits_the_memory_of_inherited_mappings() {
        let mut processes = Processes::default();
        (0..100_000).for_each(|n| processes.map(5, mapping(n * 16, n * 16 + 16, 7), 10));
        (100..300).for_each(|pid| processes.fork((pid, pid), (5, 5), 20));
        let mappings: usize = processes.processes.values().map(|process| process.current.len()).sum();
        assert!((2_000_000..5_000_000).contains(&mappings), "{mappings}");
        (100..300).for_each(|pid| processes.exit(pid, pid, 30));
        (100..300).for_each(|pid| processes.set_comm(pid, 1, 20));
        let exited = processes.take_exited_before(40, |_| false);
        processes.forget_before(40, exited);
        processes.fork((1, 1), (5, 5), 50);
        assert_eq!(found(&processes, 150, 51), Some((7, 0)));
    }

    #[test]
    fn keeps_a_thread_that_still_runs_after_its_exit() {
        let mut processes = Processes::default();
        processes.set_comm(1, 3, 10);
        processes.exit(1, 1, 20);
        let exited = processes.take_exited_before(30, |tid| tid == 1);
        processes.forget_before(30, exited);
        assert_eq!(processes.comm(1, 35), Some(3));
        processes.exit(1, 2, 25);
        let exited = processes.take_exited_before(50, |_| false);
        assert_eq!(exited.iter().map(ThreadExit::process).collect::<Vec<_>>(), [Some(1), None]);
        assert_eq!(processes.comm(1, 45), Some(3));
        processes.forget_before(50, exited);
        assert_eq!(processes.comm(1, 45), None);
    }

    #[test]
    fn keeps_a_thread_that_got_the_id_of_an_exited_one() {
        let mut processes = Processes::default();
        processes.set_comm(1, 3, 10);
        processes.exit(1, 1, 20);
        processes.set_comm(1, 4, 30);
        processes.map(1, mapping(100, 200, 7), 31);
        let exited = processes.take_exited_before(40, |_| false);
        processes.forget_before(40, exited);
        assert_eq!(processes.comm(1, 41), Some(4));
        assert!(found(&processes, 150, 41).is_some());
    }
}
