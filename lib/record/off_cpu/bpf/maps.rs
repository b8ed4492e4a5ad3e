//! The maps that the BPF program fills, and their contents.

use aya::Ebpf;
use aya::maps::{Array, MapData, MapError, PerCpuArray};
use rustc_hash::{FxHashMap, FxHashSet};

use super::hash_map::{self, BpfHashMap};
use crate::perf::symbols::kallsyms::KernelSymbols;
use crate::record::sys;

/// `struct block`: two hashes of stacks, a process, and a thread's name in two words.
type BlockWords = [u64; 5];
/// `struct sum`: number of blocks, nanoseconds, end of the last block.
type SumWords = [u64; 3];
/// `struct absence`: time of the switch-out, two hashes of stacks, a process.
type AbsenceWords = [u64; 4];
/// `struct stack`: number of addresses, and the addresses.
type StackWords = [u64; 128];
/// `struct counts`: see [`Counts`].
type CountWords = [u64; 6];

/// Number of stacks in the kernel's map after which they are removed: three quarters of its capacity.
const MAX_KERNEL_STACKS: u64 = 12_288;

/// An upper bound of the size of `__traceiter_sched_switch`, in bytes.
const MAX_CALLER_SIZE: u64 = 256;

/// The process, state and stacks of a blocked or preempted thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchContext {
    /// The process of the thread.
    pub pid: u32,
    /// True if the thread could have run on.
    pub preempted: bool,
    /// Hashes of the kernel's stack and the program's stack; 0 for none.
    pub stacks: [u64; 2],
}

/// The sum of the blocks of threads of one name in one context.
#[derive(Clone, Copy, Debug)]
pub struct BlockSum {
    /// The context of the blocks.
    pub context: SwitchContext,
    comm: [u8; 16],
    /// Number of blocks.
    pub blocks: u64,
    /// Their total duration.
    pub nanoseconds: u64,
    /// End of the last block.
    pub last: u64,
}

impl BlockSum {
    fn from_words(([user, kernel, process, comm @ ..], [blocks, nanoseconds, last]): (BlockWords, SumWords)) -> Self {
        let mut name = [0; 16];
        name[..8].copy_from_slice(&comm[0].to_ne_bytes());
        name[8..].copy_from_slice(&comm[1].to_ne_bytes());
        let context = SwitchContext::from_words(process, [kernel, user]);
        Self { context, comm: name, blocks, nanoseconds, last }
    }

    /// Returns the name of the threads.
    pub fn comm(&self) -> &[u8] {
        self.comm.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

impl SwitchContext {
    fn from_words(process: u64, stacks: [u64; 2]) -> Self {
        Self { pid: (process >> 32) as u32, preempted: process & 1 == 1, stacks }
    }
}

/// A thread that is off its CPU.
#[derive(Clone, Copy, Debug)]
pub struct Absence {
    /// The thread that left.
    pub tid: u32,
    /// The time of the switch-out.
    pub since: u64,
    /// The context in which it left.
    pub context: SwitchContext,
}

/// Counters of the program: the stacks that it stored, and what did not fit into its maps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Stacks that were stored.
    pub stored_stacks: u64,
    /// Stacks that did not fit.
    pub lost_stacks: u64,
    /// Switch-outs that were not recorded.
    pub lost_absences: u64,
    /// Processes that were not followed.
    pub lost_processes: u64,
    /// Blocks that were not summed up.
    pub lost_blocks: u64,
    /// Total duration of these blocks.
    pub lost_nanoseconds: u64,
}

/// The maps of a loaded program.
pub struct Maps {
    chosen: BpfHashMap<u32, u32>,
    absences: BpfHashMap<u32, AbsenceWords>,
    /// The sums of two windows: one is read while the other is filled.
    blocks: [BpfHashMap<BlockWords, SumWords>; 2],
    stacks: BpfHashMap<u64, StackWords>,
    counts: PerCpuArray<MapData, CountWords>,
    control: Array<MapData, u64>,
    /// Address of the function by which the kernel calls several programs at a switch.
    caller: u64,
    /// Stacks that were read already, by their hashes.
    known_stacks: FxHashMap<u64, Box<[u64]>>,
    /// Number of stored stacks when those in the kernel were last removed.
    stored_at_removal: u64,
}

impl Maps {
    /// Takes the maps out of a loaded program.
    pub fn open(program: &mut Ebpf) -> Result<Self, MapError> {
        Ok(Self {
            chosen: BpfHashMap::open(program, "chosen")?,
            absences: BpfHashMap::open(program, "absences")?,
            blocks: [BpfHashMap::open(program, "even")?, BpfHashMap::open(program, "odd")?],
            stacks: BpfHashMap::open(program, "stacks")?,
            counts: hash_map::take_map(program, "counted")?.try_into()?,
            control: hash_map::take_map(program, "controls")?.try_into()?,
            caller: KernelSymbols::address_in_running_kernel(b"__traceiter_sched_switch").unwrap_or(0),
            known_stacks: FxHashMap::default(),
            stored_at_removal: 0,
        })
    }

    /// Adds a process or thread to record. A suspended one is recorded once it runs its program.
    pub fn choose(&mut self, id: u32, is_suspended: bool) -> Result<(), MapError> {
        self.chosen.entries.insert(id, u32::from(!is_suspended), 0)
    }

    /// Makes the program sum blocks up in this window, 0 or 1.
    pub fn open_window(&mut self, window: usize) -> Result<(), MapError> {
        self.control.set(0, window as u64, 0)
    }

    /// Reads and removes the sums of a closed window. Sums that were read before an error are returned with it.
    pub fn drain_window(&mut self, window: usize) -> (Vec<BlockSum>, Result<(), MapError>) {
        let (entries, result) = self.blocks[window].drain();
        let mut sums: Vec<BlockSum> = entries.into_iter().map(BlockSum::from_words).collect();
        // The order of the map differs from run to run.
        sums.sort_unstable_by_key(|sum| (sum.context.pid, sum.comm, sum.context.stacks, sum.context.preempted));
        (sums, result)
    }

    /// Reads the threads that are off their CPUs. Those that were read before an error are returned with it.
    pub fn read_absences(&self) -> (Vec<Absence>, Result<(), MapError>) {
        let (entries, result) = self.absences.read();
        let mut absences: Vec<Absence> = entries.into_iter().filter_map(Absence::from_words).collect();
        absences.sort_unstable_by_key(|absence| absence.tid);
        (absences, result)
    }

    /// Returns the addresses of the kernel's stack and the program's stack, innermost first, and at most `max_frames`
    /// in all. `None` if a stack did not fit into the map.
    pub fn stacks(&mut self, context: SwitchContext, max_frames: usize) -> Option<(&[u64], &[u64])> {
        for hash in context.stacks {
            if hash != 0 && !self.known_stacks.contains_key(&hash) {
                let stack = self.stacks.entries.get(&hash, 0).ok()?;
                self.known_stacks.insert(hash, addresses(&stack));
            }
        }
        let [kernel, user] = context.stacks.map(|hash| self.known_stacks.get(&hash).map_or(&[][..], |stack| stack));
        let kernel = &kernel[self.tracing_frames(kernel).min(kernel.len())..];
        let kernel = &kernel[..kernel.len().min(max_frames)];
        Some((kernel, &user[..user.len().min(max_frames - kernel.len())]))
    }

    /// Returns the number of innermost frames that only exist because of tracing: the program, its caller, the caller's
    /// caller if several programs trace switches, and `__schedule`, which the kernel's own samples leave out too.
    fn tracing_frames(&self, kernel: &[u64]) -> usize {
        match kernel.get(2).map(|address| address.wrapping_sub(self.caller)) {
            Some(1..MAX_CALLER_SIZE) => 4,
            _ => 3,
        }
    }

    /// Returns the current counters of the program, summed over all CPUs.
    pub fn counts(&self) -> Result<Counts, MapError> {
        let mut sums = [0; 6];
        for cpu_counts in self.counts.get(&0, 0)?.iter() {
            sums.iter_mut().zip(cpu_counts).for_each(|(sum, count)| *sum += count);
        }
        let [stored_stacks, lost_stacks, lost_absences, lost_processes, lost_blocks, lost_nanoseconds] = sums;
        Ok(Counts { stored_stacks, lost_stacks, lost_absences, lost_processes, lost_blocks, lost_nanoseconds })
    }

    /// If the kernel has stored many stacks, removes them, and forgets all known stacks that no entry refers to any
    /// more.
    pub fn remove_stacks(&mut self, stored_stacks: u64) -> Result<(), MapError> {
        if stored_stacks - self.stored_at_removal < MAX_KERNEL_STACKS {
            return Ok(());
        }
        self.stored_at_removal = stored_stacks;
        let (entries, result) = self.stacks.drain();
        for (hash, stack) in &entries {
            self.known_stacks.entry(*hash).or_insert_with(|| addresses(stack));
        }
        result?;
        // A switch that found its stack in the map before it was removed has written the entry that refers to it by
        // then.
        sys::wait_for_cpus();
        let mut used = FxHashSet::default();
        let (absences, result) = self.read_absences();
        result?;
        used.extend(absences.iter().flat_map(|absence| absence.context.stacks));
        for window in &self.blocks {
            let (blocks, result) = window.read();
            result?;
            used.extend(blocks.iter().flat_map(|(block, _)| [block[0], block[1]]));
        }
        self.known_stacks.retain(|hash, _| used.contains(hash));
        Ok(())
    }
}

impl Absence {
    /// Parses an entry; `None` for a thread that is on a CPU.
    fn from_words((tid, [since, user, kernel, process]): (u32, AbsenceWords)) -> Option<Self> {
        (since > 0).then(|| Self { tid, since, context: SwitchContext::from_words(process, [kernel, user]) })
    }
}

fn addresses(stack: &StackWords) -> Box<[u64]> {
    let [frames, addresses @ ..] = stack;
    addresses[..addresses.len().min(*frames as usize)].into()
}
