//! The options of a recording.

use crate::profile::SampleWeight;

/// The options of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What a sample weighs.
    pub weight: SampleWeight,
    /// True to keep each sample, so that samples can be printed one by one.
    pub keep_samples: bool,
    /// Maximum number of addresses in a callchain of the kernel.
    pub max_stack: usize,
    /// Maximum number of branch records of the CPU.
    pub max_branches: usize,
    /// True to keep the address in the process of each location.
    pub keep_addresses: bool,
    /// The root frame of a stack.
    pub thread: ThreadLabel,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            weight: SampleWeight::Samples,
            keep_samples: false,
            max_stack: usize::MAX,
            max_branches: usize::MAX,
            keep_addresses: false,
            thread: ThreadLabel::default(),
        }
    }
}

/// What names a thread in the root frame of its stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadLabel {
    /// Its name.
    #[default]
    Name,
    /// `NAME-PID`
    Pid,
    /// `NAME-PID/TID`
    Tid,
}
