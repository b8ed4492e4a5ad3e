//! The options of a recording.

use super::root_labels::RootLabels;
use super::sleepers::SchedulerCode;
use crate::perf::unwind::{RunningProcesses, native};
use crate::profile::SampleWeight;

/// The options of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// The weight of a sample.
    pub weight: SampleWeight,
    /// True to keep each sample, so that samples can be printed one by one.
    pub keep_samples: bool,
    /// Maximum number of addresses in a callchain of the kernel.
    pub max_stack: usize,
    /// Maximum number of branch records of the CPU.
    pub max_branches: usize,
    /// True to keep the address in the process of each location.
    pub keep_addresses: bool,
    /// True to unwind copied user stacks. False if they are of a machine whose stacks cannot be unwound here.
    pub unwind: bool,
    /// Reads from the recorded processes; `None` if they do not run.
    pub running: Option<RunningProcesses>,
    /// The form of the root frame of stacks.
    pub thread: ThreadLabel,
    /// The frames before a thread's name.
    pub roots: RootLabels,
    /// The frames of interpreted functions.
    pub scripts: ScriptFrameOptions,
    /// True if script frames get their lines.
    pub script_lines: bool,
    /// The scheduler's functions, if kernel stacks without them are to be completed.
    pub scheduler: Option<SchedulerCode>,
}

/// The frames of interpreted functions, and of the interpreter that runs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScriptFrameOptions {
    /// Script frames replace those of the interpreter.
    #[default]
    Script,
    /// Script frames, and all frames of the interpreter.
    WithInterpreter,
    /// No script frames.
    NativeOnly,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            weight: SampleWeight::Samples,
            keep_samples: false,
            max_stack: usize::MAX,
            max_branches: usize::MAX,
            keep_addresses: false,
            unwind: native::can_unwind(std::env::consts::ARCH),
            running: None,
            thread: ThreadLabel::default(),
            roots: RootLabels::default(),
            scripts: ScriptFrameOptions::default(),
            script_lines: false,
            scheduler: None,
        }
    }
}

/// The form of a thread's root frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadLabel {
    /// `NAME`, the name of the thread.
    #[default]
    Name,
    /// `NAME-PID`, with the process ID.
    Pid,
    /// `NAME-PID/TID`, with both IDs.
    Tid,
}
