//! Pairing switches: from what the kernel tells of threads, in the order of time, to how long each stood in which stack.
//!
//! Every switch is told, so the time that a thread ran, was blocked, and waited for a CPU is known exactly. Stacks may be
//! taken at every switch or at some of them. Where at some, blocks of one thread that lasted about equally long (within
//! a factor of four) share the time of all of them out among those that have a stack; where none has, among those of the
//! nearest lengths, up to 16 times as long. A rare long block is thus never charged to frequent short ones. Run time is
//! shared out among the samples that fell in it.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::perf::thread_state::ThreadState;

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It ran already when the recording began, or slept.
    Found,
    /// It was made, and waits for a CPU.
    Born,
    /// It began to run a new program.
    Exec,
    /// It was seen running, with this stack.
    Ran(u32),
    /// It is about to leave its CPU, with this stack: taken at every switch, or else at one of several.
    Leaves {
        /// Which.
        stack: Leaving,
        /// Whether stacks are taken at every switch.
        every: bool,
    },
    /// It left its CPU.
    Out {
        /// Though it could have gone on.
        preempted: bool,
        /// Whether blocks that begin there are wanted.
        wanted: bool,
    },
    /// It came onto a CPU.
    In,
    /// It ended.
    Gone,
}

/// A stack at a switch, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// That which was found.
    pub stack: u32,
    /// What is left of it if the thread was back when the rest was read.
    pub certain: u32,
    /// Before this time.
    pub read: u64,
}

/// What happened, when, to which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds of the recording's clock.
    pub time: u64,
    /// The thread.
    pub tid: u32,
    /// What.
    pub what: What,
}

/// Time to be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The thread.
    pub tid: u32,
    /// When the charge was made: the thread's name at that time is meant.
    pub time: u64,
    /// The stack; `None` if it is not known.
    pub stack: Option<u32>,
    /// What the thread was doing.
    pub state: ThreadState,
    /// How many blocks, or samples.
    pub count: u64,
    /// For how long.
    pub nanoseconds: u64,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whether time on a CPU is wanted too, so that each thread's charges make its lifetime.
    pub wall: bool,
    /// Blocks shorter than this are left out.
    pub min: u64,
    /// Blocks longer than this are left out.
    pub max: u64,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nobody has told yet.
    Somewhere,
    /// Made, and not yet run.
    New,
    On,
    Off(Block),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    state: ThreadState,
    wanted: bool,
    stack: Option<(Leaving, bool)>,
}

/// Blocks of one state and of about one length.
#[derive(Debug, Default)]
struct Alike {
    count: u64,
    nanoseconds: u64,
    /// How many of them have which stack, and for how long.
    sampled: FxHashMap<u32, (u64, u64)>,
}

#[derive(Debug)]
struct Thread {
    place: Place,
    /// Since when it is there.
    since: u64,
    /// The stack of the switch that is to come, and whether stacks are taken at every switch.
    leaving: Option<(Leaving, bool)>,
    ran: u64,
    /// How many samples fell where while it ran.
    samples: FxHashMap<u32, u64>,
    /// Blocks not all of which have a stack, by state and length: by its logarithm to the base of four.
    blocks: BTreeMap<(ThreadState, u32), Alike>,
}

/// All threads, and what is to be charged so far.
#[derive(Debug)]
pub struct Ledger {
    wanted: Wanted,
    /// Whether a stack was to be taken at every switch from the beginning: where one is missing, it was lost.
    every: bool,
    threads: FxHashMap<u32, Thread>,
    /// Threads that ended, whose last switch may still be told.
    gone: FxHashSet<u32>,
    charges: Vec<Charge>,
    /// How many stacks were cut since they were asked for, as their threads were back too soon.
    cut: u64,
}

impl Ledger {
    /// No thread yet. With `every`, a stack is taken at each switch.
    pub fn new(wanted: Wanted, every: bool) -> Self {
        Self { wanted, every, threads: FxHashMap::default(), gone: FxHashSet::default(), charges: Vec::new(), cut: 0 }
    }

    /// From now on stacks are not taken at every switch.
    pub fn some_only(&mut self) {
        self.every = false;
    }

    /// What is to be charged since the last call.
    pub fn charges(&mut self) -> Vec<Charge> {
        std::mem::take(&mut self.charges)
    }

    /// How many stacks were cut since the last call, as their threads were back too soon.
    pub fn take_cut(&mut self) -> u64 {
        std::mem::take(&mut self.cut)
    }

    /// Takes in what happened next.
    pub fn take(&mut self, moment: Moment) {
        let Moment { time, tid, what } = moment;
        let place = match what {
            What::Born => Place::New,
            What::Found => Place::Somewhere,
            _ => Place::On,
        };
        match what {
            What::Gone => {
                self.end(tid, time);
                self.gone.insert(tid);
                return;
            }
            // The number is another thread's now.
            What::Born => self.end(tid, time),
            _ => {}
        }
        if matches!(what, What::Born | What::Exec) {
            self.gone.remove(&tid);
        } else if self.gone.contains(&tid) {
            return;
        }
        let mut thread = self.threads.remove(&tid).unwrap_or_else(|| Thread::new(place, time));
        self.happens(&mut thread, moment);
        self.threads.insert(tid, thread);
    }

    fn happens(&mut self, thread: &mut Thread, moment: Moment) {
        match moment.what {
            What::Born | What::Found | What::Exec | What::Gone => {}
            What::Ran(stack) => *thread.samples.entry(stack).or_default() += 1,
            // Of two counters that see the same switch, the one that sees them all is believed.
            What::Leaves { stack, every } => {
                thread.leaving = thread.leaving.filter(|(_, every)| *every).or(Some((stack, every)));
            }
            What::Out { preempted, wanted } => {
                match thread.place {
                    Place::Somewhere | Place::On => thread.ran += thread.pass(moment.time),
                    Place::New | Place::Off(_) => self.charge_lost(thread, moment),
                }
                let state = if preempted { ThreadState::Runnable } else { ThreadState::Blocked };
                thread.place = Place::Off(Block { state, wanted, stack: thread.leaving.take() });
            }
            What::In => {
                match thread.place {
                    Place::On => self.charge_lost(thread, moment),
                    _ => self.charge_absence(thread, moment),
                }
                // A sample whose switch was lost is not the next one's.
                thread.leaving = None;
                thread.place = Place::On;
            }
        }
    }

    /// A thread comes back, or is seen for the last time.
    fn charge_absence(&mut self, thread: &mut Thread, moment: Moment) {
        let nanoseconds = thread.pass(moment.time);
        match thread.place {
            Place::On => thread.ran += nanoseconds,
            // It slept before the recording began, where nobody saw it.
            Place::Somewhere if self.wanted.wall => {
                self.charge(moment, None, ThreadState::Asleep, (1, nanoseconds));
            }
            Place::New if self.wanted.wall => self.charge(moment, None, ThreadState::Runnable, (1, nanoseconds)),
            Place::Somewhere | Place::New => {}
            Place::Off(block) => self.charge_block(thread, moment, block, nanoseconds),
        }
    }

    fn charge_block(&mut self, thread: &mut Thread, moment: Moment, block: Block, nanoseconds: u64) {
        if !block.wanted || !(self.wanted.min..=self.wanted.max).contains(&nanoseconds) {
            return;
        }
        let stack = block.stack.map(|(leaving, every)| (self.stack_until(leaving, moment.time), every));
        match stack {
            Some((stack, true)) => self.charge(moment, Some(stack), block.state, (1, nanoseconds)),
            None if self.every => self.charge(moment, None, ThreadState::Lost, (1, nanoseconds)),
            stack => {
                let alike = thread.blocks.entry((block.state, nanoseconds.max(1).ilog2() / 2)).or_default();
                alike.count += 1;
                alike.nanoseconds += nanoseconds;
                if let Some((stack, _)) = stack {
                    let sampled = alike.sampled.entry(stack).or_default();
                    *sampled = (sampled.0 + 1, sampled.1 + nanoseconds);
                }
            }
        }
    }

    /// The stack of a thread that came back at this time.
    fn stack_until(&mut self, leaving: Leaving, time: u64) -> u32 {
        if time > leaving.read || leaving.stack == leaving.certain {
            return leaving.stack;
        }
        self.cut += 1;
        leaving.certain
    }

    /// Two switches the same way: what was between them was not told.
    fn charge_lost(&mut self, thread: &mut Thread, moment: Moment) {
        let nanoseconds = thread.pass(moment.time);
        if self.wanted.wall || matches!(moment.what, What::Out { .. }) {
            self.charge(moment, None, ThreadState::Lost, (1, nanoseconds));
        }
    }

    fn charge(&mut self, moment: Moment, stack: Option<u32>, state: ThreadState, (count, nanoseconds): (u64, u64)) {
        self.charges.push(Charge { tid: moment.tid, time: moment.time, stack, state, count, nanoseconds });
    }

    /// The end of the recording: who is blocked has been so up to now.
    pub fn finish(&mut self, time: u64) {
        let mut all: Vec<u32> = self.threads.keys().copied().collect();
        all.sort_unstable();
        for tid in all {
            self.end(tid, time);
        }
    }

    fn end(&mut self, tid: u32, time: u64) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        let moment = Moment { time, tid, what: What::Gone };
        self.charge_absence(&mut thread, moment);
        for ((state, length), alike) in &thread.blocks {
            let (count, amount) = (alike.count, alike.nanoseconds);
            let Some(sampled) = thread.nearest(*state, *length) else {
                self.charge(moment, None, state.unsampled(), (count, amount));
                continue;
            };
            let whole = sampled.values().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
            for (stack, part) in sampled {
                let shares = (share(count, part.0, whole.0), share(amount, part.1, whole.1));
                self.charge(moment, Some(*stack), *state, shares);
            }
        }
        if !self.wanted.wall {
            return;
        }
        let whole: u64 = thread.samples.values().sum();
        if whole == 0 && thread.ran > 0 {
            self.charge(moment, None, ThreadState::Unsampled, (1, thread.ran));
        }
        for (stack, samples) in &thread.samples {
            let nanoseconds = share(thread.ran, *samples, whole);
            self.charge(moment, Some(*stack), ThreadState::Running, (*samples, nanoseconds));
        }
    }
}

impl Thread {
    fn new(place: Place, since: u64) -> Self {
        let (samples, blocks) = (FxHashMap::default(), BTreeMap::new());
        Self { place, since, leaving: None, ran: 0, samples, blocks }
    }

    /// The stacks of blocks of that length, or of the nearest one that has any.
    fn nearest(&self, state: ThreadState, length: u32) -> Option<&FxHashMap<u32, (u64, u64)>> {
        let lengths = [length, length.wrapping_sub(1), length + 1, length.wrapping_sub(2), length + 2];
        let sampled = |length: &u32| Some(&self.blocks.get(&(state, *length))?.sampled).filter(|all| !all.is_empty());
        lengths.iter().find_map(sampled)
    }

    /// Time goes on; how much of it went by.
    fn pass(&mut self, time: u64) -> u64 {
        let passed = time.saturating_sub(self.since);
        self.since = self.since.max(time);
        passed
    }
}

/// `part` of `whole`, of an amount.
fn share(amount: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(amount) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
