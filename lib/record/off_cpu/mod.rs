//! Time off the CPU, and all of a thread's time.
//!
//! A sample at a switch brings the stack with which a thread leaves its CPU; records of all switches, in a ring of their
//! own, say when and whether it was preempted, and when it came back. The [`switch_pairing`] pairs them. Stacks are what switches
//! cost most for, so where there are very many of them only every so many brings its stack.
//!
//! Or a program in the kernel adds all of it up there, and only sums are read: see [`bpf`].

pub mod bpf;
mod rate_control;
pub mod switch_pairing;

use std::time::Duration;

use rustc_hash::FxHashMap;

use self::rate_control::Pace;
use self::switch_pairing::{Charge, Leaving, Ledger, Moment, Wanted, What};
use crate::perf::event::{Event, Sample, Stamp};
use crate::perf::recording::Recording;
use crate::perf::thread_state::ThreadState;
use crate::record::clock;
use crate::record::counters::sampling::Rate;
use crate::record::events::spec::EventSpec;

/// Which time is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct OffCpu {
    /// All time, also that on the CPU.
    pub wall: bool,
    /// One stack every so many switches; `None` for each, until there are very many.
    pub period: Option<u64>,
    /// Shorter blocks are left out.
    pub min_block: Option<Duration>,
    /// Longer blocks are left out.
    pub max_block: Option<Duration>,
    /// Whether blocks are added up in the kernel.
    pub in_kernel: bool,
}

/// How many switches a second are so many that not each brings its stack.
const MANY: u64 = 20_000;

/// Every so many switches a stack where there are many: a prime number, since what a program does again and again may
/// take a round number of switches.
const SPARSE: u64 = 17;

/// What a counter's samples tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The stack of each switch.
    Every,
    /// The stack of one of several.
    Some,
    /// Where a thread runs.
    Running,
}

impl OffCpu {
    fn roles(&self) -> Vec<Role> {
        let mut roles = match self.period {
            None => vec![Role::Every, Role::Some],
            Some(1) => vec![Role::Every],
            Some(_) => vec![Role::Some],
        };
        if self.wall {
            roles.push(Role::Running);
        }
        roles
    }

    /// The bounds of blocks that are wanted, in nanoseconds.
    fn bounds(&self) -> (u64, u64) {
        let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        (self.min_block.map_or(0, nanoseconds), self.max_block.map_or(u64::MAX, nanoseconds))
    }

    /// The counters that it takes. Where the kernel adds up, one that counts nothing brings what stacks refer to.
    pub(super) fn metrics(&self, often: Rate) -> Vec<(EventSpec, Rate)> {
        if self.in_kernel {
            return vec![(EventSpec::dummy(), Rate::Period(1))];
        }
        let switches = |period| (EventSpec::context_switches(), Rate::Period(period));
        let metric = |role| match role {
            Role::Every => switches(1),
            Role::Some => switches(self.period.unwrap_or(SPARSE)),
            Role::Running => (EventSpec::cpu_clock(), often),
        };
        self.roles().into_iter().map(metric).collect()
    }
}

/// How long a record may take from its stamp until it stands in its ring.
const HOLD_BACK_NS: u64 = 10_000_000;

/// A switch from one thread to another takes no longer.
const SWITCH_NS: u64 = 5_000;

/// What becomes of all switches.
#[derive(Debug)]
pub struct Switches {
    roles: Vec<Role>,
    ledger: Ledger,
    /// What happened, in the order in which it was read.
    waiting: Vec<Moment>,
    /// The recorder's own process, whose switches are of no interest.
    own: u32,
    /// On each CPU, which thread left it last, and when.
    left: FxHashMap<u32, (u32, u64)>,
    /// The CPUs on which blocks are wanted to begin; none for all.
    cpus: Vec<u32>,
    /// Whether threads that are made are recorded too.
    follows: bool,
    pace: Option<Pace>,
    /// What was charged.
    pub times: Times,
}

/// What was charged, in all.
#[derive(Clone, Debug, Default)]
pub struct Times {
    sums: Vec<(ThreadState, u64, u64)>,
    /// The period where not every switch brings its stack, once that was so.
    pub sparse: Option<u64>,
}

impl Times {
    /// Charges a stack with so many blocks or samples of so many nanoseconds.
    fn charge(&mut self, recording: &mut Recording, stack: u32, state: ThreadState, amount: (u64, u64)) {
        recording.charge(stack, state, amount);
        let (count, nanoseconds) = amount;
        match self.sums.iter_mut().find(|sum| sum.0 == state) {
            Some(sum) => *sum = (state, sum.1 + count, sum.2 + nanoseconds),
            None => self.sums.push((state, count, nanoseconds)),
        }
    }

    /// Charges blocks of which nobody knows where they were.
    #[cfg(feature = "bpf")]
    fn charge_lost(&mut self, recording: &mut Recording, amount: (u64, u64)) {
        let stack = recording.intern_bare(0, 0);
        self.charge(recording, stack, ThreadState::Lost, amount);
    }

    /// How many blocks or samples, and nanoseconds, were spent in states like this, with their stack or without.
    pub fn sum(&self, state: ThreadState) -> (u64, u64) {
        let of = |sum: &&(ThreadState, u64, u64)| sum.0 == state || sum.0 == state.unsampled();
        self.sums.iter().filter(of).fold((0, 0), |all, sum| (all.0 + sum.1, all.1 + sum.2))
    }
}

impl Switches {
    /// Nothing yet.
    pub(super) fn new(asked: &OffCpu, cpus: Vec<u32>, follows: bool) -> Self {
        let (min, max) = asked.bounds();
        let wanted = Wanted { wall: asked.wall, min, max };
        let roles = asked.roles();
        let pace = asked.period.is_none().then(|| Pace::new(MANY, SPARSE));
        Self {
            ledger: Ledger::new(wanted, roles.contains(&Role::Every)),
            roles,
            waiting: Vec::new(),
            own: std::process::id(),
            left: FxHashMap::default(),
            cpus,
            follows,
            pace,
            times: Times { sparse: asked.period.filter(|period| *period > 1), ..Times::default() },
        }
    }

    /// A thread that was there when the recording began.
    pub(super) fn found(&mut self, tid: u32, time: u64) {
        self.waiting.push(Moment { time, tid, what: What::Found });
    }

    /// Takes in a record that is no sample.
    pub(super) fn see(&mut self, stamp: Stamp, event: &Event<'_>) {
        let (tid, what) = match *event {
            Event::Switch { out: true, preempted } => {
                (stamp.tid, What::Out { preempted, wanted: self.is_wanted(stamp.cpu) })
            }
            Event::Switch { .. } => (stamp.tid, What::In),
            Event::Fork { tid, .. } if self.follows => (tid, What::Born),
            Event::Comm { tid, exec: true, .. } => (tid, What::Exec),
            Event::Exit { tid, .. } => (tid, What::Gone),
            _ => return,
        };
        if let (What::Out { .. }, Some(pace)) = (what, &mut self.pace) {
            pace.count();
        }
        let stamp = self.as_accounted(stamp, what);
        self.wait(stamp, tid, what);
    }

    fn is_wanted(&self, cpu: u32) -> bool {
        self.cpus.is_empty() || self.cpus.contains(&cpu)
    }

    /// The kernel accounts the work of a switch, which is also ours, to the thread that comes: it came when the other left.
    fn as_accounted(&mut self, stamp: Stamp, what: What) -> Stamp {
        let left = match what {
            What::Out { .. } => self.left.insert(stamp.cpu, (stamp.tid, stamp.time)).and(None),
            What::In => self.left.remove(&stamp.cpu),
            _ => None,
        };
        let just_left = |(tid, time): &(u32, u64)| *tid != stamp.tid && stamp.time.saturating_sub(*time) < SWITCH_NS;
        let left = left.filter(just_left).map(|(_, time)| time);
        Stamp { time: left.unwrap_or(stamp.time), ..stamp }
    }

    /// Takes in a sample of a counter, by its number.
    pub(super) fn sample(&mut self, stamp: Stamp, sample: &Sample<'_>, recording: &mut Recording) {
        if self.is_idle(stamp) {
            return;
        }
        let role = self.roles.get(sample.event as usize).copied().unwrap_or(Role::Running);
        let sample = Sample { event: 0, ..*sample };
        let what = if role == Role::Running {
            What::Ran(recording.intern_stack(stamp, &sample))
        } else {
            let (stack, certain) = recording.intern_leaving(stamp, &sample);
            What::Leaves { stack: Leaving { stack, certain, read: clock::now() }, every: role == Role::Every }
        };
        self.wait(stamp, stamp.tid, what);
    }

    fn wait(&mut self, stamp: Stamp, tid: u32, what: What) {
        if !self.is_idle(stamp) {
            self.waiting.push(Moment { time: stamp.time, tid, what });
        }
    }

    /// Of the idle task, of a thread that is all but gone, or our own.
    fn is_idle(&self, stamp: Stamp) -> bool {
        stamp.tid == 0 || stamp.tid == u32::MAX || stamp.pid == self.own
    }

    /// All rings have been read up to `read`: charges what is known by now.
    pub(super) fn settle(&mut self, read: u64, recording: &mut Recording) {
        let until = read.saturating_sub(HOLD_BACK_NS);
        self.waiting.sort_by_key(|moment| moment.time);
        let ready = self.waiting.partition_point(|moment| moment.time < until);
        for moment in self.waiting.drain(..ready) {
            self.ledger.take(moment);
        }
        self.charge(recording);
    }

    /// The recording ended at this time.
    pub(super) fn finish(&mut self, time: u64, recording: &mut Recording) {
        self.waiting.retain(|moment| moment.time <= time);
        self.settle(u64::MAX, recording);
        self.ledger.finish(time);
        self.charge(recording);
    }

    fn charge(&mut self, recording: &mut Recording) {
        recording.counts.truncated.stale_tail += self.ledger.take_cut();
        for Charge { tid, time, stack, state, count, nanoseconds } in self.ledger.charges() {
            let stack = stack.unwrap_or_else(|| recording.intern_bare(tid, time));
            self.times.charge(recording, stack, state, (count, nanoseconds));
        }
    }

    /// Whether every switch is to bring its stack from now on, if that changes; so many samples were lost up to now.
    pub(super) fn change(&mut self, now: u64, lost: u64) -> Option<bool> {
        let pace = self.pace.as_mut()?;
        pace.lost(lost);
        let every = pace.every(now)?;
        if !every {
            self.times.sparse = Some(pace.sparse);
            self.ledger.some_only();
        }
        Some(every)
    }

    /// The number of the counter that takes every switch.
    pub(super) fn dense_counter(&self) -> Option<u32> {
        self.roles.iter().position(|role| *role == Role::Every).map(|number| number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{OffCpu, Switches, What};
    use crate::perf::event::Stamp;

    #[test]
    fn who_comes_came_when_the_other_left() {
        let asked = OffCpu { wall: false, period: None, min_block: None, max_block: None, in_kernel: false };
        let mut switches = Switches::new(&asked, Vec::new(), true);
        let mut time =
            |time, tid, cpu, what| switches.as_accounted(Stamp { time, tid, cpu, ..Stamp::default() }, what).time;
        let out = What::Out { preempted: false, wanted: true };
        assert_eq!((time(1000, 1, 0, out), time(1500, 2, 0, What::In)), (1000, 1000));
        // On another CPU, after the CPU was idle, and by itself.
        assert_eq!((time(2000, 2, 0, out), time(2500, 3, 1, What::In)), (2000, 2500));
        assert_eq!((time(9000, 3, 1, out), time(90_000, 2, 1, What::In)), (9000, 90_000));
        assert_eq!((time(100_000, 2, 1, out), time(101_000, 2, 1, What::In)), (100_000, 101_000));
        // Once.
        assert_eq!((time(200_000, 2, 1, out), time(201_000, 3, 1, What::In)), (200_000, 200_000));
        assert_eq!(time(201_500, 4, 1, What::In), 201_500);
    }
}
