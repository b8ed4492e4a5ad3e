//! Processes as a recording sees them: what is mapped where and what threads are called, at any time.
//!
//! Records of different CPUs are not read in the order of their times, so a sample may be older than the newest mapping
//! at its address, or than the program that its process runs by now. Nothing is therefore overwritten: what is replaced
//! retires with its time, and a sample asks for its own time.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::objects::object::ObjectId;

/// A mapped stretch of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// What is mapped.
    pub object: ObjectId,
}

/// Something that held during a span of time.
#[derive(Clone, Copy, Debug)]
struct During<T> {
    what: T,
    since: u64,
    until: u64,
}

impl<T> During<T> {
    fn holds(&self, time: u64) -> bool {
        self.since <= time && time < self.until
    }
}

#[derive(Clone, Debug, Default)]
struct Process {
    /// What is mapped now, by first address.
    current: BTreeMap<u64, During<Mapping>>,
    /// What was mapped before, in the order in which it ended.
    retired: Vec<During<Mapping>>,
    /// When it last began to run a new program.
    execed: u64,
    /// Which state of all those that processes had it is in, and since when.
    state: State,
}

/// A sample is not that old that more mappings than these have ended since.
const PATIENCE: usize = 4096;

/// A state of a process's mappings: no other is ever like it.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    number: u32,
    since: u64,
}

impl Process {
    /// A mapping ends. One whose end is told late has ended with the last before it.
    fn retire(&mut self, mut old: During<Mapping>, time: u64) {
        old.until = time.max(self.retired.last().map_or(0, |last| last.until));
        if old.since < old.until {
            self.retired.push(old);
        }
    }

    fn retire_all(&mut self, time: u64) {
        for (_, old) in std::mem::take(&mut self.current) {
            self.retire(old, time);
        }
    }

    fn map(&mut self, new: Mapping, time: u64) {
        let before = self.current.range(..new.start).next_back().filter(|(_, old)| old.what.end > new.start);
        let overlapped: Vec<u64> = before
            .map(|(start, _)| *start)
            .into_iter()
            .chain(self.current.range(new.start..new.end).map(|(start, _)| *start))
            .collect();
        for start in overlapped {
            let Some(old) = self.current.remove(&start) else { continue };
            self.retire(old, time);
            // What the new mapping does not cover stays.
            for (start, end) in [(old.what.start, new.start), (new.end, old.what.end)] {
                if start < end {
                    let offset = old.what.offset.wrapping_add(start - old.what.start);
                    let rest = Mapping { start, end, offset, object: old.what.object };
                    self.current.insert(start, During { what: rest, since: time, until: u64::MAX });
                }
            }
        }
        self.current.insert(new.start, During { what: new, since: time, until: u64::MAX });
    }

    fn find(&self, address: u64, time: u64) -> Option<Mapping> {
        let covers = |mapping: &During<Mapping>| mapping.what.end > address && mapping.holds(time);
        if let Some((_, mapping)) = self.current.range(..=address).next_back()
            && covers(mapping)
        {
            return Some(mapping.what);
        }
        let ended = self.retired.partition_point(|mapping| mapping.until <= time);
        let later = self.retired[ended..].iter().rev().take(PATIENCE);
        later.into_iter().find(|mapping| mapping.what.start <= address && covers(mapping)).map(|mapping| mapping.what)
    }
}

/// All processes together inherit no more mappings than this: a recording made by hand may have a process of very many
/// fork very often. No machine has as many.
const MOST_INHERITED: usize = 1 << 22;

/// A thread's name, as an id of the recording's.
pub type CommId = u32;

/// The end of a thread, as it was told.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    time: u64,
    pid: u32,
    tid: u32,
}

/// All processes and threads of a recording.
#[derive(Debug, Default)]
pub struct Processes {
    processes: FxHashMap<u32, Process>,
    comms: FxHashMap<u32, Vec<During<CommId>>>,
    /// Threads that ended, to be forgotten when no sample of theirs can come any more.
    ended: Vec<Ended>,
    /// How many states processes have been in.
    states: u32,
    /// How many mappings processes have from their parents, those counted that ended lately.
    inherited: usize,
}

impl Processes {
    /// A mapping that stands from `time` on.
    pub fn map(&mut self, pid: u32, mapping: Mapping, time: u64) {
        if mapping.start < mapping.end {
            self.changed(pid, time).map(mapping, time);
        }
    }

    /// A thread's name from `time` on.
    pub fn name(&mut self, tid: u32, comm: CommId, time: u64) {
        let names = self.comms.entry(tid).or_default();
        if let Some(last) = names.last_mut() {
            last.until = last.until.min(time);
        }
        names.push(During { what: comm, since: time, until: u64::MAX });
    }

    /// The process, whose mappings are about to change.
    fn changed(&mut self, pid: u32, time: u64) -> &mut Process {
        self.states = self.states.checked_add(1).expect("fewer than 2^32 changes");
        let process = self.processes.entry(pid).or_default();
        process.state = State { number: self.states, since: time.max(process.state.since) };
        process
    }

    /// A number for what is mapped into a process: as long as it is the same, so is what is found. `None` for times of
    /// which it cannot be told.
    pub fn state(&self, pid: u32, time: u64) -> Option<u32> {
        let process = self.processes.get(&pid).filter(|process| process.state.since <= time)?;
        Some(process.state.number)
    }

    /// A process runs a new program: nothing that was mapped is any more.
    pub fn exec(&mut self, pid: u32, time: u64) {
        let process = self.changed(pid, time);
        process.retire_all(time);
        process.execed = time;
    }

    /// Whether a process has begun to run a new program since.
    pub fn has_execed_since(&self, pid: u32, time: u64) -> bool {
        self.processes.get(&pid).is_none_or(|process| process.execed > time)
    }

    /// A new thread, of a new process if `pid` is not `parent_pid`.
    pub fn fork(&mut self, (pid, tid): (u32, u32), (parent_pid, parent_tid): (u32, u32), time: u64) {
        if let Some(comm) = self.comm(parent_tid, time) {
            self.name(tid, comm, time);
        }
        if pid == parent_pid {
            return;
        }
        let inherited: Vec<Mapping> = self.processes.get(&parent_pid).map_or(Vec::new(), |parent| {
            parent.current.values().filter(|mapping| mapping.since <= time).map(|mapping| mapping.what).collect()
        });
        let is_too_much = self.inherited + inherited.len() > MOST_INHERITED;
        let inherited = if is_too_much { Vec::new() } else { inherited };
        self.inherited += inherited.len();
        let process = self.changed(pid, time);
        process.retire_all(time);
        process.execed = time;
        for mapping in inherited {
            process.current.insert(mapping.start, During { what: mapping, since: time, until: u64::MAX });
        }
    }

    /// A thread has ended.
    pub fn exit(&mut self, pid: u32, tid: u32, time: u64) {
        self.ended.push(Ended { time, pid, tid });
    }

    /// What was mapped at an address.
    pub fn find(&self, pid: u32, address: u64, time: u64) -> Option<Mapping> {
        self.processes.get(&pid)?.find(address, time)
    }

    /// What a thread was called.
    pub fn comm(&self, tid: u32, time: u64) -> Option<CommId> {
        let names = self.comms.get(&tid)?;
        // A sample that is older than the first name known has that one: the kernel names a thread before it runs.
        names.iter().rev().find(|name| name.since <= time).or(names.first()).map(|name| name.what)
    }

    /// Whether anything is known of a process.
    pub fn knows(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// What is mapped anywhere, or was.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let of_all = self.processes.values();
        of_all.flat_map(|process| process.current.values().chain(&process.retired)).map(|mapping| mapping.what.object)
    }

    /// Gives the threads' names other ids.
    pub fn rename(&mut self, mut new: impl FnMut(CommId) -> CommId) {
        self.comms.values_mut().flatten().for_each(|name| name.what = new(name.what));
    }

    /// The threads that ended before `time`, as was told, and by now run no more. The kernel tells of an end before it takes
    /// down what the thread had mapped, which lasts as long as it lasts: of that too there are samples.
    pub fn over_before(&mut self, time: u64, runs: impl Fn(u32) -> bool) -> Vec<Ended> {
        let is_over = |end: &mut Ended| end.time < time && !runs(end.tid);
        self.ended.extract_if(.., is_over).collect()
    }

    /// No sample older than `time` will come, nor of those that are `over`: what only such a one could ask for is dropped.
    pub fn forget_before(&mut self, time: u64, over: Vec<Ended>) {
        for Ended { time: end, pid, tid } in over {
            // The number may have been given to another thread since.
            if self.comms.get(&tid).and_then(|names| names.last()).is_some_and(|name| name.since <= end) {
                self.comms.remove(&tid);
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
        for names in self.comms.values_mut().filter(|names| names.len() > 1) {
            let last = names.len() - 1;
            let keep = names.iter().position(|name| name.until > time).unwrap_or(last);
            names.drain(..keep);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mapping, ObjectId, Processes};

    fn mapping(start: u64, end: u64, object: u32) -> Mapping {
        Mapping { start, end, offset: 0, object: ObjectId(object) }
    }

    fn found(processes: &Processes, address: u64, time: u64) -> Option<(u32, u64)> {
        processes.find(1, address, time).map(|mapping| (mapping.object.0, mapping.offset))
    }

    #[test]
    fn a_sample_sees_what_was_mapped_at_its_time() {
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
    fn a_hundred_thousand_mappings_that_are_no_more_cost_nothing() {
        let mut processes = Processes::default();
        let began = std::time::Instant::now();
        for time in 1..100_000 {
            processes.map(1, mapping(100, 200, time), u64::from(time));
            let before = u64::from(time.saturating_sub(100).max(1));
            assert_eq!(found(&processes, 150, before).map(|(object, _)| u64::from(object)), Some(before));
            // Where nothing ever was.
            assert_eq!(found(&processes, 250, before), None);
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    }

    #[test]
    fn a_new_program_hides_the_old_one_but_not_from_older_samples() {
        let mut processes = Processes::default();
        processes.map(1, mapping(100, 200, 7), 10);
        processes.exec(1, 20);
        processes.map(1, mapping(100, 200, 9), 21);
        assert_eq!(found(&processes, 150, 19), Some((7, 0)));
        assert_eq!(found(&processes, 150, 20), None);
        assert_eq!(found(&processes, 150, 22), Some((9, 0)));
    }

    #[test]
    fn a_child_has_its_parents_mappings_and_name() {
        let mut processes = Processes::default();
        processes.map(5, mapping(100, 200, 7), 10);
        processes.name(5, 3, 10);
        processes.fork((1, 1), (5, 5), 30);
        assert_eq!(found(&processes, 150, 31), Some((7, 0)));
        assert_eq!(processes.comm(1, 31), Some(3));
        processes.name(1, 4, 40);
        assert_eq!((processes.comm(1, 39), processes.comm(1, 40)), (Some(3), Some(4)));
    }

    #[test]
    fn many_forks_of_a_process_of_many_mappings_take_bounded_room() {
        let mut processes = Processes::default();
        (0..100_000).for_each(|n| processes.map(5, mapping(n * 16, n * 16 + 16, 7), 10));
        (100..300).for_each(|pid| processes.fork((pid, pid), (5, 5), 20));
        let mappings = |processes: &Processes| processes.processes.values().map(|it| it.current.len()).sum::<usize>();
        assert!((2_000_000..5_000_000).contains(&mappings(&processes)), "{}", mappings(&processes));
        (100..300).for_each(|pid| processes.exit(pid, pid, 30));
        (100..300).for_each(|pid| processes.name(pid, 1, 20));
        let over = processes.over_before(40, |_| false);
        processes.forget_before(40, over);
        processes.fork((1, 1), (5, 5), 50);
        assert_eq!(found(&processes, 150, 51), Some((7, 0)));
    }

    #[test]
    fn a_thread_that_still_runs_after_its_end_is_not_forgotten() {
        let mut processes = Processes::default();
        processes.name(1, 3, 10);
        processes.exit(1, 1, 20);
        let over = processes.over_before(30, |tid| tid == 1);
        processes.forget_before(30, over);
        assert_eq!(processes.comm(1, 35), Some(3));
        let over = processes.over_before(50, |_| false);
        assert_eq!(processes.comm(1, 45), Some(3));
        processes.forget_before(50, over);
        assert_eq!(processes.comm(1, 45), None);
    }

    #[test]
    fn a_number_that_was_given_again_is_not_forgotten_with_its_first_owner() {
        let mut processes = Processes::default();
        processes.name(1, 3, 10);
        processes.exit(1, 1, 20);
        processes.name(1, 4, 30);
        processes.map(1, mapping(100, 200, 7), 31);
        let over = processes.over_before(40, |_| false);
        processes.forget_before(40, over);
        assert_eq!(processes.comm(1, 41), Some(4));
        assert!(found(&processes, 150, 41).is_some());
    }
}
