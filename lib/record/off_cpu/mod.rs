//! Records time off the CPU (`--off-cpu`), or all time of threads (`--wall`).
//!
//! A sample at a context switch contains the stack with which a thread leaves its CPU. Records of all switches, in
//! rings of their own, say when it left, whether it was preempted, and when it came back. [`switch_pairing`] pairs
//! them. Collecting the stack is what makes a switch expensive, so if there are very many switches, only one in N
//! collects its stack. With BPF, the longest of the other blocks do so when they end: see `record/bpf/switches.bpf.h`.
//!
//! Threads that sleep when the recording begins are examined then: see `record/session/sleepers.rs`.
//!
//! With `--wakers`, the BPF program that takes the stacks of switches also takes those of the threads that end blocks:
//! see [`waker_chains`].
//!
//! With `--critical-path`, the time is charged to what one thread waited for: see [`critical_path`].
//!
//! With `--bpf`, a program in the kernel sums blocks up, and only the sums are read: see [`bpf`].

mod block_history;
mod block_time;
pub mod bpf;
pub mod critical_path;
mod interrupts;
mod parallelism;
mod rate_control;
mod switch_event;
pub mod switch_pairing;
pub mod switches;
pub mod totals;
pub mod waker_chains;

pub use self::block_time::multiply_ratio;
pub use self::interrupts::interrupt_entries;
use std::time::Duration;

use super::counters::sampling::{Rate, SampledEvent};
use super::events::spec::EventSpec;
use super::target::Target;

/// Above this many switches a second, not every switch collects its stack.
const DENSE_SWITCHES_PER_SECOND: u64 = 20_000;

/// The period of stacks where switches are dense: the BPF program takes the stack of a random one in 17, and those of the longest
/// blocks. Without BPF the kernel takes every 17th. The number is prime, because a program that repeats itself may make a round number of switches each time.
const SPARSE_PERIOD: u64 = 17;

/// The time to record.
#[derive(Clone, Copy, Debug)]
pub struct OffCpuOptions {
    /// True to record time on the CPU too.
    pub wall: bool,
    /// The stack of every Nth switch is collected. `None` for every switch, until switches are dense.
    pub period: Option<u64>,
    /// Shorter blocks are left out.
    pub min_block: Option<Duration>,
    /// Longer blocks are left out.
    pub max_block: Option<Duration>,
    /// The largest number of wakers that follow the stack of a block, if wakers are recorded.
    pub waker_depth: Option<usize>,
    /// True if only time on CPUs is recorded, shared among the threads that run at the same moment.
    pub latency: bool,
    /// True if only the time is recorded for which threads could have run and waited for a CPU.
    pub run_queue_only: bool,
    /// True if a BPF program sums blocks up in the kernel.
    pub in_kernel: bool,
}

/// The purpose of a counter's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CounterRole {
    /// Stacks of all switches.
    EverySwitch,
    /// Stacks of every Nth switch.
    SomeSwitches,
    /// Stacks of running threads.
    Running,
}

impl OffCpuOptions {
    /// Returns the purpose of each of the [`OffCpuOptions::events`].
    fn roles(&self) -> Vec<CounterRole> {
        if self.latency {
            return vec![CounterRole::Running];
        }
        let mut roles = match self.period {
            None => vec![CounterRole::EverySwitch, CounterRole::SomeSwitches],
            Some(1) => vec![CounterRole::EverySwitch],
            Some(_) => vec![CounterRole::SomeSwitches],
        };
        if self.wall {
            roles.push(CounterRole::Running);
        }
        roles
    }

    /// True if threads that already sleep when the recording begins are recorded. Where only blocked time of a whole system or a
    /// cgroup is recorded, they are not: most of them never run.
    pub(super) fn includes_sleepers(&self, target: &Target) -> bool {
        let has_blocks = !self.latency && !self.run_queue_only && !self.in_kernel;
        let is_named = matches!(target, Target::Processes { .. } | Target::Threads(_));
        has_blocks && (is_named || self.wall && matches!(target, Target::System))
    }

    /// Returns the shortest and the longest block to record, in nanoseconds.
    fn block_bounds(&self) -> (u64, u64) {
        (self.min_block.map_or(0, to_nanoseconds), self.max_block.map_or(u64::MAX, to_nanoseconds))
    }

    /// Returns the events to sample. `run_rate` is the rate of samples of running threads. With BPF, one event that
    /// never happens provides the side-band records that stacks refer to.
    pub(super) fn events(&self, run_rate: Rate) -> Vec<SampledEvent> {
        if self.in_kernel {
            return vec![SampledEvent { spec: EventSpec::dummy(), rate: Rate::Period(1) }];
        }
        self.roles().into_iter().map(|role| self.event(role, run_rate)).collect()
    }

    fn event(&self, role: CounterRole, run_rate: Rate) -> SampledEvent {
        let (spec, rate) = match role {
            CounterRole::EverySwitch => (EventSpec::context_switches(), Rate::Period(1)),
            CounterRole::SomeSwitches => {
                let mut spec = EventSpec::context_switches();
                spec.is_taken_by_program = true;
                (spec, Rate::Period(self.period.unwrap_or(SPARSE_PERIOD)))
            }
            CounterRole::Running => (EventSpec::cpu_clock(), run_rate),
        };
        SampledEvent { spec, rate }
    }
}

fn to_nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
