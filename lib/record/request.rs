//! The request that the command line makes: what to record, and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::counters::sampling::{CallGraph, Rate};
use super::events::spec::EventSpec;
use super::flight_recorder::RingOptions;
use super::off_cpu::OffCpuOptions;
use super::off_cpu::critical_path::PathThread;
use super::pairs::spec::PairSpec;
use crate::perf::recording::{RootLabels, ScriptFrameOptions};
use crate::profile::SampleWeight;

/// A recording that is asked for.
#[derive(Debug)]
pub struct Request {
    /// The processes to record.
    pub target: RequestTarget,
    /// A command to run beside the target, which is recorded until the command exits. perf calls it the workload.
    pub workload: Option<CommandLine>,
    /// The events to sample. If empty, cycles if the machine counts them, else cpu-clock.
    pub events: Vec<EventSpec>,
    /// The rate of samples. `None` for 997 times a second of a command, 99 times of running processes, and every time
    /// of discrete events such as faults, switches, tracepoints and calls.
    pub rate: Option<Rate>,
    /// The time off the CPU to record, instead of events.
    pub off_cpu: Option<OffCpuOptions>,
    /// The thread whose critical path is recorded, instead of the time of all threads.
    pub critical_path: Option<PathThread>,
    /// The pair of events to record the time between, instead of events.
    pub pair: Option<PairSpec>,
    /// The method of collecting stacks.
    pub call_graph: CallGraph,
    /// The size of the rings: 2^N pages. `None` for the default.
    pub ring_order: Option<u8>,
    /// The largest number of frames of a stack.
    pub max_stack: Option<u16>,
    /// The CPUs to record on; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// The time after which the recording ends, if the target does not end before.
    pub duration: Option<Duration>,
    /// The length of the parts that the recording is split into, if any.
    pub interval: Option<Duration>,
    /// The last part of the recording that is kept. `None` to keep all.
    pub ring: Option<RingOptions>,
    /// The largest share of a CPU that the recorder itself may use, in percent.
    pub max_overhead: Option<f64>,
    /// The weight of a sample.
    pub weight: SampleWeight,
    /// True if each sample is kept, to be printed like `perf script` does.
    pub each_sample: bool,
    /// The frames before a thread's name.
    pub roots: RootLabels,
    /// The frames of interpreted functions.
    pub scripts: ScriptFrameOptions,
    /// True if script frames get their lines.
    pub script_lines: bool,
    /// True if Java processes are asked for the names of their methods, where nothing else tells them.
    pub attaches: bool,
}

/// The processes to record, as the user names them.
#[derive(Debug)]
pub enum RequestTarget {
    /// A command to start.
    Command(CommandLine),
    /// Processes that run already.
    Processes {
        /// The IDs of the processes.
        pids: Vec<u32>,
        /// True if their running descendants are recorded too.
        subprocesses: bool,
    },
    /// Running threads, by TID.
    Threads(Vec<u32>),
    /// The processes of a cgroup, by its path.
    Cgroup(PathBuf),
    /// All processes, on all CPUs.
    System,
}

/// A command to start.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// True if its standard output goes to our standard error.
    pub quiet_stdout: bool,
    /// The user that it runs as; `None` for ours.
    pub user: Option<String>,
}
