//! The tables by which the BPF program walks stacks: the rows of objects, and the mappings of processes.
//!
//! The rows of an object are made when the program has met the object without them: what does not run costs nothing.
//! Nothing in the tables is overwritten while the program may use it.

use aya::Ebpf;
use aya::maps::{HashMap, MapData};
use rustc_hash::{FxHashMap, FxHashSet};

use super::errors::BoxError;
use super::layouts::{Layouts, UNKNOWN_LAYOUT};
use super::maps::take_map;
use super::process_map::ProcessMap;
use super::row_compiler::{FinishedRows, RowCompiler};
use super::row_tables::{ObjectTable, RowTables};
use crate::perf::event::{Event, Stamp};
use crate::perf::mappings::Mapping;
use crate::perf::objects::object::{JitMemory, Object, ObjectId};
use crate::perf::recording::Recording;
use crate::perf::runtimes::processes::InterpreterWords;
use crate::perf::thread_context::VariableWords;
use crate::perf::unwind::rows::{BLOCK_SIZE, CompiledRows};
use crate::record::clock;

/// Sizes of the program's maps, in elements.
const MAX_MAPPINGS: usize = 256;
const CODE_WORDS: usize = 512;

/// `struct layout`: the time up to which the mappings are known, the number of pages of code, the mappings, and a bit for each
/// 64 KiB that contain code.
type LayoutWords = [u64; 2 + 3 * MAX_MAPPINGS + CODE_WORDS];

/// The place of code that a process generated, which has no rows. No object has it: the first block is free.
const GENERATED: u64 = 1;
/// The same, in memory that processes may share.
const GENERATED_SHARED: u64 = 2;

/// Addresses from here on belong to the kernel, even if `/proc/PID/maps` lists them.
const USER_END: u64 = 1 << 47;

/// The tables of a loaded program.
pub struct Tables {
    rows: RowTables,
    compiler: RowCompiler,
    /// The number of each process's layout.
    processes: HashMap<MapData, u32, u32>,
    layout_map: HashMap<MapData, u32, LayoutWords>,
    layouts: Layouts,
    interpreters: ProcessMap<InterpreterWords>,
    /// The place of each process's variable with the contexts of its threads, if these are read.
    thread_variables: Option<ProcessMap<VariableWords>>,
    /// The tables of each object that the program has met.
    objects: FxHashMap<ObjectId, ObjectTable>,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Tables {
    /// Takes the tables out of a loaded program.
    pub(super) fn open(program: &mut Ebpf, with_context: bool) -> Result<Self, BoxError> {
        let mut layout_map: HashMap<MapData, u32, LayoutWords> = take_map(program, "layouts")?.try_into()?;
        let mut unknown: LayoutWords = [0; 2 + 3 * MAX_MAPPINGS + CODE_WORDS];
        unknown[2 + 3 * MAX_MAPPINGS..].fill(u64::MAX);
        layout_map.insert(UNKNOWN_LAYOUT, unknown, 0)?;
        let thread_variables = with_context.then(|| ProcessMap::take(program, "thread_variables")).transpose()?;
        let interpreters = ProcessMap::take(program, "interpreters")?;
        let processes = take_map(program, "processes")?.try_into()?;
        Ok(Self {
            rows: RowTables::open(program)?,
            compiler: RowCompiler::default(),
            processes,
            layout_map,
            layouts: Layouts::default(),
            interpreters,
            thread_variables,
            objects: FxHashMap::default(),
        })
    }

    /// Notes a record after which the mappings of a process are no longer those that were published.
    pub fn note_event(&mut self, time: u64, event: &Event<'_>) {
        match *event {
            Event::Mmap(mmap) if mmap.executable => self.layouts.note_change(mmap.pid),
            Event::Comm { pid, exec: true, .. } => self.note_exec(pid, time),
            Event::Fork { pid, parent_pid, .. } if pid != parent_pid => self.note_fork(pid, parent_pid, time),
            // Other threads may still run. Their stacks are unwound without tables.
            Event::Exit { pid, tid } if pid == tid => self.forget_process(pid),
            _ => {}
        }
    }

    fn note_fork(&mut self, pid: u32, parent: u32, time: u64) {
        self.layouts.note_fork(pid, parent, time, clock::now());
        self.interpreters.note_fork(pid, parent);
        if let Some(variables) = &mut self.thread_variables {
            variables.note_fork(pid, parent);
        }
    }

    fn note_exec(&mut self, pid: u32, time: u64) {
        if self.layouts.note_exec(pid, time, clock::now()) {
            let _ = self.processes.remove(&pid);
        }
        self.forget_runtime(pid);
    }

    /// Takes out of the maps what is only there for some processes.
    fn forget_runtime(&mut self, pid: u32) {
        self.interpreters.set(pid, None);
        if let Some(variables) = &mut self.thread_variables {
            variables.set(pid, None);
        }
    }

    /// Takes a process out of the tables. It may have exited before it was published.
    pub fn forget_process(&mut self, pid: u32) {
        if self.layouts.forget(pid, clock::now()) {
            let _ = self.processes.remove(&pid);
        }
        self.forget_runtime(pid);
    }

    /// Notes that the mappings of a process are to be published.
    pub fn note_process(&mut self, pid: u32) {
        self.layouts.note_need(pid);
    }

    /// Notes a sample of a process whose layout the program did not know, or knew to be out of date. The mappings, which are
    /// complete up to `known_until`, are published at once: to unwind the first stack in a large object takes a while, in which
    /// more samples are taken.
    pub fn note_sample(&mut self, stamp: Stamp, is_unknown: bool, recording: &mut Recording, known_until: u64) {
        if self.layouts.note_sample(stamp.pid, stamp.time, is_unknown) {
            self.publish_needed(&FxHashSet::default(), recording, known_until);
        }
    }

    /// Publishes the mappings of the processes that need it, as far as they have changed. They are complete up to `time`. Returns
    /// true if there are rows of more objects now, or soon.
    pub fn publish(&mut self, recording: &mut Recording, time: u64) -> bool {
        for object in recording.take_removed_objects() {
            self.objects.remove(&object);
            self.compiler.forget(object);
        }
        for layout in self.layouts.take_unused(clock::now()) {
            let _ = self.layout_map.remove(&layout);
        }
        let mut new_objects = recording.take_sparse_objects();
        new_objects.retain(|object| !self.objects.contains_key(object) && !self.compiler.is_pending(*object));
        // Samples are taken while the rows are made. Without the mappings, the program would keep more words than large stacks
        // have room for.
        self.publish_needed(&new_objects, recording, time);
        self.start_rows(&new_objects, recording, false);
        let finished: Vec<FinishedRows> = std::iter::from_fn(|| self.compiler.take_finished()).collect();
        let has_new = !finished.is_empty();
        self.add_rows(finished, recording);
        self.publish_needed(&FxHashSet::default(), recording, time);
        has_new || self.compiler.is_busy()
    }

    /// Publishes the processes that need it. Those that map one of `new_objects` do, whose rows are not made yet.
    fn publish_needed(&mut self, new_objects: &FxHashSet<ObjectId>, recording: &mut Recording, time: u64) {
        let (objects, with_contexts) = (&self.objects, self.thread_variables.is_some());
        let mut needed = self.layouts.take_needed(|pid| {
            recording.runs_interpreter(pid)
                || with_contexts && recording.publishes_contexts(pid)
                || recording
                    .mappings(pid)
                    .map(|mapping| mapping.object)
                    .any(|object| new_objects.contains(&object) || is_switching(objects, object))
        });
        if needed.is_empty() {
            return;
        }
        self.publish_interpreters(&needed, recording);
        // Rows of more objects are of use for other processes too.
        needed.extend(self.layouts.take_needed(|_| false));
        for pid in needed {
            self.publish_process(pid, recording, time);
        }
    }

    fn publish_process(&mut self, pid: u32, recording: &mut Recording, time: u64) {
        if let Some(variables) = &mut self.thread_variables {
            variables.set(pid, recording.describe_thread_context(pid));
        }
        let layout = self.layouts.new_layout();
        let words = self.layout_words(pid, recording, time);
        if self.layout_map.insert(layout, words, 0).is_ok() && self.processes.insert(pid, layout, 0).is_ok() {
            self.layouts.note_published(pid, layout, clock::now());
        }
    }

    /// Publishes the interpreters of processes, and the rows of all their code: frames of generated code are walked at the
    /// sample, or not at all. An interpreter may keep its own stack of values in the native stack, as Ruby does for threads:
    /// then a copy of words does not reach the root.
    fn publish_interpreters(&mut self, processes: &[u32], recording: &mut Recording) {
        let mut walked: FxHashSet<ObjectId> = FxHashSet::default();
        for pid in processes {
            let description = recording.describe_interpreter(*pid);
            if description.is_some() {
                walked.extend(recording.mappings(*pid).map(|mapping| mapping.object));
            }
            self.interpreters.set(*pid, description.map(|description| description.words));
        }
        walked.retain(|object| self.objects.get(object).is_none_or(|table| table.is_left_out));
        self.start_rows(&walked, recording, true);
        while walked.iter().any(|object| self.compiler.is_pending(*object)) {
            let Some(finished) = self.compiler.wait_for_next() else { break };
            self.add_rows([finished], recording);
        }
    }

    /// Begins to make the rows of objects, of small ones first. They are required if stacks of some processes cannot be taken
    /// without them.
    fn start_rows(&mut self, objects: &FxHashSet<ObjectId>, recording: &Recording, are_required: bool) {
        let elf = |object: &ObjectId| match recording.objects.get(*object) {
            Object::Elf(elf) => Some(elf),
            _ => None,
        };
        let mut objects: Vec<ObjectId> = objects.iter().copied().collect();
        objects.sort_by_key(|object| (elf(object).map(|elf| elf.bytes().len()), *object));
        for object in objects {
            match elf(&object) {
                Some(elf) => self.compiler.start(object, elf, are_required),
                None => _ = self.objects.insert(object, ObjectTable::default()),
            }
        }
    }

    /// Adds rows. The processes that have mapped their objects are to be published again.
    fn add_rows(&mut self, finished: impl IntoIterator<Item = FinishedRows>, recording: &Recording) {
        let mut objects: FxHashSet<ObjectId> = FxHashSet::default();
        for FinishedRows { object, rows, is_required } in finished {
            let table = rows.map(|rows| self.rows.add(rows, is_required)).unwrap_or_default();
            self.objects.insert(object, table);
            objects.insert(object);
        }
        let processes = self.layouts.processes();
        let processes =
            processes.filter(|pid| recording.mappings(*pid).any(|mapping| objects.contains(&mapping.object)));
        let processes: Vec<u32> = processes.collect();
        processes.into_iter().for_each(|pid| self.layouts.note_need(pid));
    }

    /// Makes the rows of an object that is about to run.
    pub fn prepare_object(&mut self, object: ObjectId, recording: &Recording) {
        if let Object::Elf(elf) = recording.objects.get(object) {
            let table = CompiledRows::compile(elf).map(|rows| self.rows.add(rows, false)).unwrap_or_default();
            self.objects.insert(object, table);
        }
    }

    /// Returns the layout of a process.
    fn layout_words(&self, pid: u32, recording: &Recording, time: u64) -> LayoutWords {
        let mut words: LayoutWords = [0; 2 + 3 * MAX_MAPPINGS + CODE_WORDS];
        let (head, rest) = words.split_at_mut(2);
        let (mappings, code) = rest.split_at_mut(3 * MAX_MAPPINGS);
        // The program searches for the first mapping that ends after an address.
        mappings.chunks_exact_mut(3).for_each(|mapping| mapping[..2].fill(i64::MAX as u64));
        let mut pages = 0;
        let user = recording.mappings(pid).filter(|mapping| mapping.end <= USER_END);
        let user = user.map(|mapping| Mapping { end: end_of_code(&mapping, recording), ..mapping });
        for (index, mapping) in user.enumerate() {
            // The kernel's own sum leaves out what is writable.
            pages += if mapping.is_writable { 0 } else { (mapping.end - mapping.start) / 4096 };
            for granule in mapping.start >> 16..=(mapping.end - 1) >> 16 {
                code[(granule as usize & 0x7fff) / 64] |= 1 << (granule & 63);
            }
            // The last one stays free: it ends the search.
            if index < MAX_MAPPINGS - 1 {
                let first = self.find_place(&mapping, recording).unwrap_or(0);
                mappings[3 * index..][..3].copy_from_slice(&[mapping.start, mapping.end, first]);
            }
        }
        head.copy_from_slice(&[time, pages]);
        words
    }

    /// Returns the place of a mapping's first byte in the tables; `None` if it has no rows.
    fn find_place(&self, mapping: &Mapping, recording: &Recording) -> Option<u64> {
        let elf = match recording.objects.get(mapping.object) {
            Object::Elf(elf) => elf,
            Object::Jit { memory: JitMemory::Shared, .. } => return Some(GENERATED_SHARED),
            Object::Jit { .. } => return Some(GENERATED),
            _ => return None,
        };
        let table = self.objects.get(&mapping.object).filter(|table| table.blocks > 0)?;
        let size = mapping.end - mapping.start;
        let svma = elf.address_of_mapping(mapping.offset, size)?;
        let offset = svma.checked_sub(table.start)?;
        let end = offset.checked_add(size)?;
        (end <= table.blocks * BLOCK_SIZE).then_some(table.first_block * BLOCK_SIZE + offset)
    }
}

/// True if some stacks of an object can only be walked in the program.
fn is_switching(objects: &FxHashMap<ObjectId, ObjectTable>, object: ObjectId) -> bool {
    objects.get(&object).is_some_and(|table| table.switches_stacks)
}

/// Returns the end of the code in a mapping.
///
/// A dynamic linker maps the whole of an object as its first segment, and then the other segments over it. If the first
/// one is code, the mapping was reported with the size of the object.
fn end_of_code(mapping: &Mapping, recording: &Recording) -> u64 {
    let Object::Elf(elf) = recording.objects.get(mapping.object) else { return mapping.end };
    let size = elf.end_of_code(mapping.offset).map(|end| end - mapping.offset);
    size.map_or(mapping.end, |size| mapping.end.min(mapping.start.saturating_add(size)))
}
