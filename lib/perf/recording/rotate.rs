//! Splits a long recording into parts. Each part is complete, and the rest of the recording drops what only past parts
//! needed.

use rustc_hash::FxHashSet;

use super::Recording;
use crate::perf::objects::object::{Object, ObjectId};
use crate::perf::objects::registry::{KERNEL, Objects, SCRIPT, UNKNOWN};
use crate::perf::process::CommId;
use crate::perf::runtimes::functions::ScriptFrames;
use crate::perf::unwind::Unwinder;
use crate::profile::{FrameId, Frames};

impl Recording {
    /// Returns everything that was recorded until now. The recording goes on without samples, with the current mappings
    /// and thread names.
    pub fn rotate(&mut self) -> Self {
        self.finish();
        let script_frames = std::mem::take(&mut self.objects.script_frames);
        let part = Self {
            options: self.options.clone(),
            processes: Default::default(),
            last_exits: Default::default(),
            objects: self.objects.copy_for_symbols(script_frames),
            comms: std::mem::replace(&mut self.comms, Frames::new()),
            locations: std::mem::take(&mut self.locations),
            stacks: std::mem::take(&mut self.stacks),
            unwinder: Unwinder::default(),
            tallies: std::mem::take(&mut self.tallies),
            sample_records: std::mem::take(&mut self.sample_records),
            counts: std::mem::take(&mut self.counts),
            lost: std::mem::take(&mut self.lost),
            pending: Default::default(),
            scratch: Vec::new(),
            location_cache: std::mem::take(&mut self.location_cache),
            sparse_objects: Default::default(),
            unwind_gaps: std::mem::take(&mut self.unwind_gaps),
            runtimes: self.find_runtimes(),
            removed_objects: Default::default(),
            interpreters: self.interpreters.to_report(),
            cgroups: Default::default(),
            thread_contexts: self.thread_contexts.to_report(),
            history: None,
        };
        self.interpreters.forget_frames();
        let (past, present) = (&part.comms, &mut self.comms);
        self.processes.renumber_comms(|comm| present.intern(past.name(FrameId::from_index(comm))).index() as CommId);
        self.forget_unused_objects(&FxHashSet::default());
        part
    }

    /// Forgets the objects that neither a process nor a location uses.
    pub(super) fn forget_unused_objects(&mut self, in_locations: &FxHashSet<ObjectId>) {
        let used: FxHashSet<ObjectId> = self.processes.objects().chain(in_locations.iter().copied()).collect();
        let processes = &self.processes;
        let with_code = self.objects.iter().filter(|(id, _)| in_locations.contains(id));
        let with_code: FxHashSet<u32> = with_code.filter_map(|(_, object)| object.jit_process()).collect();
        let is_used = |pid| processes.contains(pid) || with_code.contains(&pid);
        self.objects.jit_code.retain(is_used);
        self.cgroups.retain(|pid| processes.contains(pid));
        self.thread_contexts.retain(|pid| processes.contains(pid));
        let removed = self.objects.forget_unused(
            |id, object| match object.jit_process() {
                Some(pid) => is_used(pid),
                None => used.contains(&id),
            },
            &mut self.unwinder,
        );
        self.sparse_objects.retain(|object| !removed.contains(object));
        for object in &removed {
            self.interpreters.forget(*object);
            self.thread_contexts.forget(*object);
        }
        self.removed_objects.extend(removed);
    }
}

impl Objects {
    /// Copies the objects for symbolization. No object is to be added to the copy.
    pub(super) fn copy_for_symbols(&self, script_frames: ScriptFrames) -> Self {
        Self { objects: self.objects.clone(), jit_code: self.jit_code.clone(), script_frames, ..Self::default() }
    }

    /// Closes the files of all objects that are not in use, and returns their numbers.
    fn forget_unused(&mut self, is_used: impl Fn(ObjectId, &Object) -> bool, unwinder: &mut Unwinder) -> Vec<ObjectId> {
        let mut kept: FxHashSet<ObjectId> = self.free.iter().copied().collect();
        kept.extend([UNKNOWN, KERNEL, SCRIPT]);
        let unused = self.iter().filter(|(id, object)| !kept.contains(id) && !is_used(*id, object));
        let unused: FxHashSet<ObjectId> = unused.map(|(id, _)| id).collect();
        self.by_file.retain(|_, id| !unused.contains(id));
        self.by_inode.retain(|_, id| !unused.contains(id));
        self.by_name.retain(|_, id| !unused.contains(id));
        self.jit.retain(|_, id| !unused.contains(id));
        let mut unused: Vec<ObjectId> = unused.into_iter().collect();
        // Sorted, so that the same events make the same recording.
        unused.sort_unstable();
        for id in &unused {
            self.objects[id.index()] = Object::Unknown;
            unwinder.forget(*id);
            self.free.push(*id);
        }
        unused
    }
}

#[cfg(test)]
mod tests {
    use crate::perf::event::{Event, Mmap, Sample, Stamp};
    use crate::perf::objects::object::Object;
    use crate::perf::recording::{Options, Recording};

    fn recording() -> Recording {
        Recording::new(Options { max_stack: 127, ..Options::default() })
    }

    fn program(recording: &mut Recording, pid: u32, path: &[u8], time: u64) {
        let stamp = Stamp { pid, tid: pid, time, id: 0, cpu: 0 };
        let (start, length) = (0x1000, 0x1000);
        let mmap = Mmap {
            pid,
            start,
            length,
            offset: 0,
            inode: None,
            build_id: None,
            executable: true,
            writable: false,
            path,
        };
        recording.handle_event(stamp, Event::Comm { pid, tid: pid, exec: true, comm: path });
        recording.handle_event(Stamp { time: time + 1, ..stamp }, Event::Mmap(mmap));
        let sample = Sample { ip: 0x1800, period: 1, ..Sample::default() };
        recording.handle_event(Stamp { time: time + 2, ..stamp }, Event::Sample(sample));
    }

    /// Lets another process exit on the same CPU, and forgets all that have exited.
    fn forget_before(recording: &mut Recording, time: u64) {
        let stamp = Stamp { pid: 9, tid: 9, time, id: 0, cpu: 0 };
        recording.handle_event(stamp, Event::Exit { pid: 9, tid: 9 });
        let exited = recording.take_exited_before(time, |_| false);
        recording.forget_before(time, exited);
    }

    fn names(recording: &Recording) -> Vec<&[u8]> {
        recording.comms.iter().map(|(_, name)| name).collect()
    }

    /// Returns the paths of all files that were mapped.
    fn paths(recording: &Recording) -> Vec<&[u8]> {
        let files = recording.objects.iter().filter(|(_, object)| matches!(object, Object::Missing { .. }));
        files.map(|(_, object)| object.path()).collect()
    }

    #[test]
    fn a_part_is_complete_and_the_next_starts_with_running_processes() {
        let mut recording = recording();
        program(&mut recording, 1, b"/none/stays", 10);
        program(&mut recording, 2, b"/none/goes", 20);
        recording.handle_event(Stamp { pid: 2, tid: 2, time: 30, id: 0, cpu: 0 }, Event::Exit { pid: 2, tid: 2 });
        forget_before(&mut recording, 40);
        let part = recording.rotate();
        assert_eq!((part.counts.samples, recording.counts.samples), (2, 0));
        assert_eq!(names(&part), [&b"/none/stays"[..], b"/none/goes"]);
        assert_eq!(names(&recording), [b"/none/stays"]);
        assert_eq!(paths(&part), [&b"/none/stays"[..], b"/none/goes"]);
        assert_eq!(paths(&recording), [b"/none/stays"]);
        let stack = part.stack(1);
        assert_eq!(part.comm(&stack), b"/none/goes");
    }

    #[test]
    fn many_parts_take_no_more_memory_than_one() {
        let mut recording = recording();
        for time in (0..100_000).step_by(100) {
            program(&mut recording, 2, format!("/none/{time}").as_bytes(), time);
            recording
                .handle_event(Stamp { pid: 2, tid: 2, time: time + 50, id: 0, cpu: 0 }, Event::Exit { pid: 2, tid: 2 });
            forget_before(&mut recording, time + 60);
            assert_eq!(recording.rotate().counts.samples, 1);
        }
        assert_eq!(recording.objects.iter().count(), 4);
        assert!(recording.comms.is_empty() && recording.locations().is_empty());
    }
}
