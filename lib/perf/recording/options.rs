//! How a recording is kept.

use crate::profile::SampleWeight;

/// How a recording is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What a stack weighs.
    pub weight: SampleWeight,
    /// Whether each sample is kept by itself, to be printed as `perf script` does.
    pub each_sample: bool,
    /// How many addresses the kernel writes of a stack at most.
    pub max_stack: usize,
    /// How many calls the CPU keeps at most.
    pub max_branches: usize,
    /// Whether each place in the code keeps its address in the process.
    pub addresses: bool,
    /// What a stack begins with.
    pub thread: ThreadBy,
}

impl Default for Options {
    fn default() -> Self {
        let (weight, thread) = (SampleWeight::Samples, ThreadBy::default());
        Self { weight, each_sample: false, max_stack: usize::MAX, max_branches: usize::MAX, addresses: false, thread }
    }
}

/// What threads are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadBy {
    /// By their names.
    #[default]
    Name,
    /// `NAME-PID`
    Pid,
    /// `NAME-PID/TID`
    Tid,
}
