//! Folds the output of profilers: bytes in some format become a [`Profile`](crate::profile::Profile).
//!
//! Each input format is one module that declares its name, how to recognize it, and how to read it. Formats that can be
//! large have a function that finds the end of the last whole sample in a block, and a parser of blocks. The others
//! have a function that reads the whole document, by lines or as bytes. A format knows nothing of threads, files or
//! output.
//!
//! The driver knows nothing of formats. It reads and splits inputs, distributes blocks over threads, merges the
//! profiles, and reports the readers' remarks by file and line in input order. The result does not depend on the number
//! of threads.

mod detect;
mod document;
mod driver;
mod filter;
mod formats;
mod merge_sorted;
mod ordered_log;
mod sink;
mod spans;
mod stack;
mod text;
mod timeline;
mod units;
mod unsupported;
mod whole;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

pub use driver::{collapse, collapse_in_order, collapse_in_time};
pub use filter::args::{EventChoice, NumberList, OffsetSpan, TimeSpan};
pub use formats::{Format, find_format, formats};
pub use merge_sorted::{merge_if_sorted, merge_promised};
pub use spans::Spans;
pub use timeline::{TimedSample, Timeline};

use self::formats::{FORMATS, FormatReader};
use self::sink::Sink;

use crate::Error;
use crate::profile::{SampleWeight, Weight};

/// Options of the collapse. The default is that of `stackcollapse-perf.pl`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Input format; detected by content if `None`.
    pub format: Option<&'static Format>,
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

impl Options {
    /// True if an option selects samples by time, thread, process or CPU.
    fn filters_samples(&self) -> bool {
        self.spans.is_some() || !filter::sample::SampleFilter::new(self).accepts_all()
    }
}

/// A parser of one format. It may cache frames between blocks, so each parser is used with one sink only.
trait Parser: Send {
    /// Parses a block of whole samples and adds them to the sink.
    fn parse(&mut self, text: &[u8], sink: &mut Sink, remarks: &mut Remarks) -> Result<(), Error>;

    /// Returns a parser for another thread and sink. `None` while this parser has not seen enough to know how to read
    /// the rest.
    fn fork(&self) -> Option<Box<dyn Parser>>;

    /// Returns the counts so far, for formats that have several events or record losses.
    fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// Counts of an input: samples by event, lost samples, and the unit of the weights.
#[derive(Clone, Debug, Default)]
struct Counts {
    events: Vec<Event>,
    lost: u64,
    unit: Option<Unit>,
}

/// The unit of the weights of an input.
#[derive(Clone, Debug)]
struct Unit {
    input: String,
    name: String,
}

/// Number of samples of one event, and weight of those that count.
#[derive(Clone, Debug)]
struct Event {
    name: Vec<u8>,
    taken: bool,
    samples: u64,
    counted: u64,
    weight: Weight,
}

/// Remarks of a parser about a block.
#[derive(Debug, Default)]
struct Remarks {
    /// Number of lines read so far, with the current one.
    lines: u64,
    malformed: Vec<(u64, &'static str)>,
}

impl Remarks {
    /// Reports the current line as malformed and left out.
    fn malformed(&mut self, what: &'static str) {
        self.malformed.push((self.lines, what));
    }
}
