//! The tables by which the BPF program walks stacks: the rows of objects, and the mappings of processes.
//!
//! The rows of an object are made when the program has met the object without them: what does not run costs nothing.
//! Nothing in the tables is overwritten while the program may use it.

use std::collections::hash_map::Entry;

use aya::Ebpf;
use aya::maps::{HashMap, MapData};
use rustc_hash::{FxHashMap, FxHashSet};

use super::maps::{map_file, take_map};
use crate::perf::event::Event;
use crate::perf::mappings::Mapping;
use crate::perf::objects::object::{JitMemory, Object, ObjectId};
use crate::perf::recording::Recording;
use crate::perf::runtimes::processes::InterpreterWords;
use crate::perf::thread_context::VariableWords;
use crate::perf::unwind::rows::{self, BLOCK_SIZE, MAX_RULES, Rules};
use crate::record::sys::MappedArray;

/// Sizes of the program's maps, in elements.
const MAX_BLOCKS: usize = 1 << 20;
const MAX_ROWS: usize = 1 << 22;
const MAX_MAPPINGS: usize = 256;
const CODE_WORDS: usize = 512;

/// The program reads up to this many rows behind those of a block.
const ROWS_READ_AHEAD: usize = 256;

/// `struct process`: the time up to which the mappings are known, the number of pages of code, the mappings, and a bit
/// for each 64 KiB that contain code.
type ProcessWords = [u64; 2 + 3 * MAX_MAPPINGS + CODE_WORDS];

/// The place of code that a process generated, which has no rows. No object has it: the first block is free.
const GENERATED: u64 = 1;
/// The same, in memory that processes may share.
const GENERATED_SHARED: u64 = 2;

/// The process whose every word is kept.
const NOBODY: u32 = 0;

/// Addresses from here on belong to the kernel, even if `/proc/PID/maps` lists them.
const USER_END: u64 = 1 << 47;

/// The tables of a loaded program.
pub struct Tables {
    rules: Rules,
    rule_map: MappedArray<u64>,
    block_map: MappedArray<u32>,
    row_map: MappedArray<u32>,
    used_rules: usize,
    used_blocks: usize,
    used_rows: usize,
    processes: HashMap<MapData, u32, ProcessWords>,
    interpreters: HashMap<MapData, u32, InterpreterWords>,
    /// The place of each process's variable with the contexts of its threads, if these are read.
    thread_variables: Option<HashMap<MapData, u32, VariableWords>>,
    /// The tables of each object that the program has met.
    objects: FxHashMap<ObjectId, ObjectTable>,
    known: KnownProcesses,
}

/// The processes of which the program knows, or is about to.
#[derive(Default)]
struct KnownProcesses {
    /// Those whose mappings have changed since they were published.
    changed: FxHashSet<u32>,
    /// Those that are in the map.
    published: FxHashSet<u32>,
}

impl KnownProcesses {
    /// Has all processes published again.
    fn note_all(&mut self) {
        self.changed.extend(&self.published);
    }

    /// Removes a process. Returns true if it is in the map.
    fn remove(&mut self, pid: u32) -> bool {
        self.changed.remove(&pid);
        self.published.remove(&pid)
    }
}

/// The part of an object's code that has rows.
#[derive(Clone, Copy, Debug)]
struct ObjectTable {
    /// The first address, a multiple of the size of a block.
    start: u64,
    /// The number of blocks; 0 if the object has no rows.
    blocks: u64,
    /// The number of the first block.
    first_block: u64,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { used_rules, used_blocks, used_rows, .. } = self;
        write!(f, "Tables({used_rules} rules, {used_blocks} blocks, {used_rows} rows)")
    }
}

impl Tables {
    /// Takes the tables out of a loaded program.
    pub(super) fn open(program: &mut Ebpf, with_context: bool) -> Result<Self, Box<dyn std::error::Error>> {
        let mut processes: HashMap<MapData, u32, ProcessWords> = take_map(program, "processes")?.try_into()?;
        let mut nobody: ProcessWords = [0; 2 + 3 * MAX_MAPPINGS + CODE_WORDS];
        nobody[2 + 3 * MAX_MAPPINGS..].fill(u64::MAX);
        processes.insert(NOBODY, nobody, 0)?;
        let thread_variables = match with_context {
            true => Some(take_map(program, "thread_variables")?.try_into()?),
            false => None,
        };
        let mut array =
            |name: &str| take_map(program, name).map_err(std::io::Error::other).and_then(|map| map_file(&map));
        Ok(Self {
            rule_map: MappedArray::open(&array("rules")?, MAX_RULES)?,
            block_map: MappedArray::open(&array("blocks")?, MAX_BLOCKS)?,
            row_map: MappedArray::open(&array("rows")?, MAX_ROWS)?,
            rules: Rules::default(),
            used_rules: 0,
            // Place 0 means that there are no rows.
            used_blocks: 1,
            used_rows: 0,
            processes,
            interpreters: take_map(program, "interpreters")?.try_into()?,
            thread_variables,
            objects: FxHashMap::default(),
            known: KnownProcesses::default(),
        })
    }

    /// Notes a record after which the mappings of a process are no longer those that were published.
    pub fn note_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Mmap(mmap) if mmap.executable => self.note_process(mmap.pid),
            Event::Comm { pid, exec: true, .. } => self.note_process(*pid),
            Event::Fork { pid, parent_pid, .. } if pid != parent_pid => self.note_process(*pid),
            // Other threads may still run. Their stacks are unwound without tables.
            Event::Exit { pid, tid } if pid == tid => self.forget_process(*pid),
            _ => {}
        }
    }

    /// Takes a process out of the tables. It may have exited before it was published.
    pub fn forget_process(&mut self, pid: u32) {
        // The program itself copies this at a fork.
        let _ = self.interpreters.remove(&pid);
        if self.known.remove(pid) {
            let _ = self.processes.remove(&pid);
            if let Some(variables) = &mut self.thread_variables {
                let _ = variables.remove(&pid);
            }
        }
    }

    /// Notes that the mappings of a process are to be published.
    pub fn note_process(&mut self, pid: u32) {
        self.known.changed.insert(pid);
    }

    /// Publishes the mappings of all processes that have changed. They are complete up to `time`. Returns true if there are
    /// rows of more objects now.
    pub fn publish(&mut self, recording: &mut Recording, time: u64) -> bool {
        for object in recording.take_removed_objects() {
            self.objects.remove(&object);
        }
        let new_objects = recording.take_sparse_objects();
        let has_new = new_objects.iter().any(|object| !self.objects.contains_key(object));
        if has_new {
            for object in new_objects {
                self.add_object(object, recording);
            }
            self.known.note_all();
        }
        self.publish_interpreters(recording);
        self.publish_thread_variables(recording);
        for pid in std::mem::take(&mut self.known.changed) {
            let words = self.process_words(pid, recording, time);
            if self.processes.insert(pid, words, 0).is_ok() {
                self.known.published.insert(pid);
            }
        }
        has_new
    }

    /// Publishes the interpreters of processes that have changed, and the rows of all their code: frames of generated code
    /// are walked at the sample, or not at all. An interpreter may keep its own stack of values in the native stack, as
    /// Ruby does for threads: then a copy of words does not reach the root.
    fn publish_interpreters(&mut self, recording: &mut Recording) {
        let mut walked: FxHashSet<ObjectId> = FxHashSet::default();
        for pid in &self.known.changed {
            let pid = *pid;
            let Some(description) = recording.describe_interpreter(pid) else {
                let _ = self.interpreters.remove(&pid);
                continue;
            };
            let _ = self.interpreters.insert(pid, description.words, 0);
            walked.extend(recording.mappings(pid).map(|mapping| mapping.object));
        }
        walked.retain(|object| !self.objects.contains_key(object));
        if !walked.is_empty() {
            // Other processes may have mapped them, too.
            self.known.note_all();
        }
        walked.into_iter().for_each(|object| self.add_object(object, recording));
    }

    /// Publishes the variables of processes that have changed.
    fn publish_thread_variables(&mut self, recording: &mut Recording) {
        let Some(variables) = &mut self.thread_variables else { return };
        for pid in &self.known.changed {
            let _ = match recording.describe_thread_context(*pid) {
                Some(words) => variables.insert(pid, words, 0),
                None => variables.remove(pid),
            };
        }
    }

    /// Makes the rows of an object that is about to run.
    pub fn prepare_object(&mut self, id: ObjectId, recording: &Recording) {
        self.add_object(id, recording);
    }

    /// Makes the rows of an object, unless they are made.
    fn add_object(&mut self, id: ObjectId, recording: &Recording) {
        let Entry::Vacant(entry) = self.objects.entry(id) else { return };
        let rows = match recording.objects.get(id) {
            Object::Elf(elf) => rows::compile(elf, &mut self.rules),
            _ => None,
        };
        let mut table = ObjectTable { start: 0, blocks: 0, first_block: 0 };
        if let Some(rows) = rows {
            let (first_block, first_row) = (self.used_blocks, self.used_rows);
            let (blocks_end, rows_end) = (first_block + rows.blocks.len(), first_row + rows.rows.len());
            if blocks_end <= MAX_BLOCKS && rows_end + ROWS_READ_AHEAD <= MAX_ROWS {
                self.row_map.write(first_row, rows.rows.iter().copied());
                self.block_map.write(first_block, rows.blocks.iter().map(|row| row + first_row as u32));
                (self.used_blocks, self.used_rows) = (blocks_end, rows_end);
                let blocks = rows.blocks.len() as u64 - 1;
                table = ObjectTable { start: rows.start, blocks, first_block: first_block as u64 };
            }
        }
        entry.insert(table);
        let rules = self.rules.all();
        self.rule_map.write(self.used_rules, rules[self.used_rules..].iter().copied());
        self.used_rules = rules.len();
    }

    /// Returns the entry of a process in the map.
    fn process_words(&self, pid: u32, recording: &Recording, time: u64) -> ProcessWords {
        let mut words: ProcessWords = [0; 2 + 3 * MAX_MAPPINGS + CODE_WORDS];
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

/// Returns the end of the code in a mapping.
///
/// A dynamic linker maps the whole of an object as its first segment, and then the other segments over it. If the first
/// one is code, the mapping was reported with the size of the object.
fn end_of_code(mapping: &Mapping, recording: &Recording) -> u64 {
    let Object::Elf(elf) = recording.objects.get(mapping.object) else { return mapping.end };
    let size = elf.end_of_code(mapping.offset).map(|end| end - mapping.offset);
    size.map_or(mapping.end, |size| mapping.end.min(mapping.start.saturating_add(size)))
}

#[cfg(test)]
mod tests {
    use super::KnownProcesses;

    #[test]
    fn a_process_that_exits_before_it_is_published_is_not_published() {
        let mut known = KnownProcesses::default();
        known.changed.insert(7);
        assert!(!known.remove(7));
        assert!(known.changed.is_empty());
        known.published.insert(8);
        known.note_all();
        assert!(known.remove(8));
        assert!(known.changed.is_empty() && known.published.is_empty());
    }
}
