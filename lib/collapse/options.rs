//! Options of the collapse.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use super::filter::args::{EventChoice, NumberList, OffsetSpan, TimeSpan};
use super::spans::Spans;
use crate::profile::SampleWeight;

/// Options of the collapse. The default is that of `stackcollapse-perf.pl`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Input format; detected by content if `None`.
    pub format: Option<FormatName>,
    /// Number of parser threads; by default one for each core.
    pub threads: Option<NonZeroUsize>,
    /// Keep names as the profiler printed them: with argument lists, without splitting inlined Java methods.
    pub verbatim: bool,
    /// Add the process id to the root frame.
    pub pid: bool,
    /// Add process and thread id to the root frame.
    pub tid: bool,
    /// Append `_[k]` to kernel frames.
    pub kernel: bool,
    /// Append `_[j]` to frames of just-in-time compiled code.
    pub jit: bool,
    /// Add the address to frames without a symbol.
    pub addrs: bool,
    /// Add source file and line to functions, if the input has them.
    pub srcline: bool,
    /// Labels of samples that become root frames.
    pub labels: Vec<Vec<u8>>,
    /// Functions that become the root of stacks that contain them.
    pub skip_after: Vec<Vec<u8>>,
    /// Weight of a sample.
    pub weight: SampleWeight,
    /// Event whose samples count.
    pub event: EventChoice,
    /// Time span of samples that count.
    pub time: Option<TimeSpan>,
    /// Part of each second in which samples count.
    pub offset: Option<OffsetSpan>,
    /// Names of threads whose samples count; all if empty.
    pub comms: Vec<Vec<u8>>,
    /// Processes whose samples count.
    pub pids: Option<NumberList>,
    /// Thread ids whose samples count.
    pub tids: Option<NumberList>,
    /// CPUs whose samples count.
    pub cpus: Option<NumberList>,
    /// Spans of work that become root frames.
    pub spans: Option<Arc<Spans>>,
    /// Leave out samples of the idle thread.
    pub no_idle: bool,
    /// Folder with the files that ran, for recordings from another machine.
    pub symfs: Option<PathBuf>,
    /// Symbols of the kernel that ran, if not those of this one.
    pub kallsyms: Option<PathBuf>,
    /// Leave out inlined calls when addresses are symbolized.
    pub no_inline: bool,
}

/// The name of an input format that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatName(&'static str);

impl FormatName {
    pub(super) const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Returns the name as text.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}
