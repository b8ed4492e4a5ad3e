//! The tables that the program in the kernel fills, and reading them.

use aya::Ebpf;
use aya::maps::{Array, MapData, MapError, PerCpuArray};
use rustc_hash::{FxHashMap, FxHashSet};

use super::table::{self, Table};
use crate::perf::symbols::kallsyms::KernelSymbols;
use crate::record::sys;

/// `struct block`: two stacks by their hashes, a process, and a thread's name in two words.
type BlockWords = [u64; 5];
/// `struct sum`.
type SumWords = [u64; 3];
/// `struct absence`.
type AbsenceWords = [u64; 4];
/// `struct stack`.
type StackWords = [u64; 128];
/// `struct counts`.
type CountWords = [u64; 6];

/// How many stacks the kernel keeps before it is made to forget them: three quarters of its table.
const MOST_STACKS: u64 = 12_288;

/// A function that does so little is no larger.
const SMALL: u64 = 256;

/// Who was off the CPU, where, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The process.
    pub pid: u32,
    /// Whether it could have gone on.
    pub preempted: bool,
    /// The stack in the kernel and the one of the program, by their hashes; 0 for none.
    pub stacks: [u64; 2],
}

/// Blocks of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Which.
    pub place: Place,
    comm: [u8; 16],
    /// How many.
    pub blocks: u64,
    /// How long in all.
    pub nanoseconds: u64,
    /// When the last one ended.
    pub last: u64,
}

impl Sum {
    fn of(([user, kernel, process, comm @ ..], [blocks, nanoseconds, last]): (BlockWords, SumWords)) -> Self {
        let mut name = [0; 16];
        name[..8].copy_from_slice(&comm[0].to_ne_bytes());
        name[8..].copy_from_slice(&comm[1].to_ne_bytes());
        Self { place: place(process, [kernel, user]), comm: name, blocks, nanoseconds, last }
    }

    /// The thread's name.
    pub fn comm(&self) -> &[u8] {
        self.comm.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// A thread off its CPU.
#[derive(Clone, Copy, Debug)]
pub struct Absence {
    /// The thread.
    pub tid: u32,
    /// Since when.
    pub since: u64,
    /// How.
    pub place: Place,
}

/// What the kernel counted: how many stacks it kept, and what did not fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// How many stacks it kept.
    pub kept: u64,
    /// How many did not fit.
    pub stacks: u64,
    /// How often a thread left its CPU and was not noted.
    pub absences: u64,
    /// How many processes were not followed.
    pub processes: u64,
    /// Blocks that were not added.
    pub blocks: u64,
    /// How long they were.
    pub nanoseconds: u64,
}

/// All of them.
pub struct Tables {
    chosen: Table<u32, u32>,
    absences: Table<u32, AbsenceWords>,
    /// Of each of the two windows, which take turns.
    blocks: [Table<BlockWords, SumWords>; 2],
    stacks: Table<u64, StackWords>,
    counts: PerCpuArray<MapData, CountWords>,
    control: Array<MapData, u64>,
    /// The function by which the kernel calls several programs at a switch.
    caller: u64,
    /// The stacks that were read already.
    known: FxHashMap<u64, Box<[u64]>>,
    /// How many had been kept when the kernel's were last forgotten.
    forgotten: u64,
}

impl Tables {
    /// Those of a program that is loaded.
    pub fn of(program: &mut Ebpf) -> Result<Self, MapError> {
        Ok(Self {
            chosen: Table::of(program, "chosen")?,
            absences: Table::of(program, "absences")?,
            blocks: [Table::of(program, "even")?, Table::of(program, "odd")?],
            stacks: Table::of(program, "stacks")?,
            counts: table::map(program, "counted")?.try_into()?,
            control: table::map(program, "controls")?.try_into()?,
            caller: KernelSymbols::address_in_running_kernel(b"__traceiter_sched_switch").unwrap_or(0),
            known: FxHashMap::default(),
            forgotten: 0,
        })
    }

    /// Chooses a process or thread; one that is held, only once it runs its program.
    pub fn choose(&mut self, number: u32, is_held: bool) -> Result<(), MapError> {
        self.chosen.entries.insert(number, u32::from(!is_held), 0)
    }

    /// Has blocks added up in this window from now on: 0 or 1.
    pub fn open_window(&mut self, window: usize) -> Result<(), MapError> {
        self.control.set(0, window as u64, 0)
    }

    /// Takes out what was added up in a window to which nothing is added any more; what could be read, if not all could.
    pub fn take(&mut self, window: usize) -> (Vec<Sum>, Result<(), MapError>) {
        let (found, result) = self.blocks[window].take();
        let mut sums: Vec<Sum> = found.into_iter().map(Sum::of).collect();
        // The table's order is not the same each time.
        sums.sort_unstable_by_key(|sum| (sum.place.pid, sum.comm, sum.place.stacks, sum.place.preempted));
        (sums, result)
    }

    /// The threads that are off their CPUs; those that could be read, if not all could.
    pub fn absences(&self) -> (Vec<Absence>, Result<(), MapError>) {
        let (found, result) = self.absences.read();
        let absence = |(tid, [since, user, kernel, process]): (u32, AbsenceWords)| {
            (since > 0).then_some(Absence { tid, since, place: place(process, [kernel, user]) })
        };
        let mut absences: Vec<Absence> = found.into_iter().filter_map(absence).collect();
        absences.sort_unstable_by_key(|absence| absence.tid);
        (absences, result)
    }

    /// The addresses of the stacks of a place, innermost first, no more than so many in all; `None` if one did not fit.
    pub fn stacks(&mut self, place: Place, most: usize) -> Option<(&[u64], &[u64])> {
        for hash in place.stacks {
            if hash != 0 && !self.known.contains_key(&hash) {
                let stack = self.stacks.entries.get(&hash, 0).ok()?;
                self.known.insert(hash, addresses(&stack));
            }
        }
        let [kernel, user] = place.stacks.map(|hash| self.known.get(&hash).map_or(&[][..], |stack| stack));
        let kernel = &kernel[self.tracing(kernel).min(kernel.len())..];
        let kernel = &kernel[..kernel.len().min(most)];
        Some((kernel, &user[..user.len().min(most - kernel.len())]))
    }

    /// How many of a stack's innermost frames are there only because we look: the program, who calls it, who calls that
    /// where several programs look, and `__schedule`, which the kernel's own samples leave out too.
    fn tracing(&self, kernel: &[u64]) -> usize {
        let is_caller = |address: &u64| (1..SMALL).contains(&address.wrapping_sub(self.caller));
        if kernel.get(2).is_some_and(is_caller) { 4 } else { 3 }
    }

    /// What the kernel counted so far.
    pub fn counts(&self) -> Result<Counts, MapError> {
        let mut sums = [0; 6];
        for of_cpu in self.counts.get(&0, 0)?.iter() {
            sums.iter_mut().zip(of_cpu).for_each(|(sum, count)| *sum += count);
        }
        let [kept, stacks, absences, processes, blocks, nanoseconds] = sums;
        Ok(Counts { kept, stacks, absences, processes, blocks, nanoseconds })
    }

    /// Makes the kernel forget its stacks, if it keeps many, and forgets all that nobody is in any more.
    pub fn forget_stacks(&mut self, kept: u64) -> Result<(), MapError> {
        if kept - self.forgotten < MOST_STACKS {
            return Ok(());
        }
        self.forgotten = kept;
        let (all, result) = self.stacks.take();
        for (hash, stack) in &all {
            self.known.entry(*hash).or_insert_with(|| addresses(stack));
        }
        result?;
        // Who found its stack in the table has said by then that it is in it.
        sys::wait_for_cpus();
        let mut used = FxHashSet::default();
        let (absences, result) = self.absences();
        result?;
        used.extend(absences.iter().flat_map(|absence| absence.place.stacks));
        for table in &self.blocks {
            let (blocks, result) = table.read();
            result?;
            used.extend(blocks.iter().flat_map(|(block, _)| [block[0], block[1]]));
        }
        self.known.retain(|hash, _| used.contains(hash));
        Ok(())
    }
}

fn addresses(stack: &StackWords) -> Box<[u64]> {
    let [frames, addresses @ ..] = stack;
    addresses[..addresses.len().min(*frames as usize)].into()
}

fn place(process: u64, stacks: [u64; 2]) -> Place {
    Place { pid: (process >> 32) as u32, preempted: process & 1 == 1, stacks }
}
