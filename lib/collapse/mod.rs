//! Folding what profilers print: bytes in some format in, a [`Profile`](crate::profile::Profile) out.
//!
//! Each input format is one module. It says how it is called, by which content it is recognised, and how it is read:
//! either where in a text its last whole sample ends, and a parser that takes whole samples, for formats that can be
//! large; or a function that takes the whole document, line after line or as bytes. It knows nothing of threads, files or
//! output. The driver knows nothing of formats: it reads, cuts, spreads the blocks over threads, merges their profiles by
//! name, and tells what the readers remarked, with file and line, in the order of the input. The result does not depend
//! on the threads.

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

/// How to fold. The default is what `stackcollapse-perf.pl` does without options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The inputs' format, where it is not to be told from their content.
    pub format: Option<&'static Format>,
    /// How many threads parse; all cores if not said.
    pub threads: Option<NonZeroUsize>,
    /// Names as the profiler printed them: no argument lists dropped, no Java inlining split.
    pub verbatim: bool,
    /// The process id in the root frame.
    pub pid: bool,
    /// The process and thread id in the root frame.
    pub tid: bool,
    /// `_[k]` after kernel frames.
    pub kernel: bool,
    /// `_[j]` after frames of just-in-time compiled code.
    pub jit: bool,
    /// The address in frames without a symbol.
    pub addrs: bool,
    /// The place in the source after each function's name, where the input tells it.
    pub srcline: bool,
    /// The labels of samples that become root frames.
    pub labels: Vec<Vec<u8>>,
    /// Functions that become the root of stacks in which they stand.
    pub skip_after: Vec<Vec<u8>>,
    /// What a sample weighs.
    pub weight: SampleWeight,
    /// Which event's samples count.
    pub event: EventChoice,
    /// When the samples that count were taken.
    pub time: Option<TimeSpan>,
    /// In which part of each second.
    pub offset: Option<OffsetSpan>,
    /// The threads, by name, whose samples count; all if there is none.
    pub comms: Vec<Vec<u8>>,
    /// The processes whose samples count.
    pub pids: Option<NumberList>,
    /// The threads, by number, whose samples count.
    pub tids: Option<NumberList>,
    /// The CPUs whose samples count.
    pub cpus: Option<NumberList>,
    /// What the threads worked on: a root frame for their samples.
    pub spans: Option<Arc<Spans>>,
    /// The idle thread's samples do not count.
    pub no_idle: bool,
    /// The folder below which the files of a recording of addresses are, if not here.
    pub symfs: Option<PathBuf>,
    /// The names of its kernel, if not those of this one.
    pub kallsyms: Option<PathBuf>,
    /// Inlined calls are left out where addresses are named.
    pub no_inline: bool,
}

impl Options {
    /// Whether they ask when, where or by whom samples were taken.
    fn filters_samples(&self) -> bool {
        self.spans.is_some() || !filter::sample::SampleFilter::new(self).accepts_all()
    }
}

/// Parses one format. It may remember frames between blocks, and so is always given the same sink.
trait Parser: Send {
    /// Adds a block of whole samples.
    fn parse(&mut self, text: &[u8], sink: &mut Sink, remarks: &mut Remarks) -> Result<(), Error>;

    /// A parser for another thread and sink. `None` as long as what this one has seen does not settle how the rest
    /// is to be read.
    fn fork(&self) -> Option<Box<dyn Parser>>;

    /// What was counted so far, for formats that have several events or tell of lost samples.
    fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// How many samples there were of each event, how many the input says were lost, and in which unit it weighs the others.
#[derive(Clone, Debug, Default)]
struct Counts {
    events: Vec<Event>,
    lost: u64,
    unit: Option<Unit>,
}

/// What a weight of 1 means in an input.
#[derive(Clone, Debug)]
struct Unit {
    input: String,
    name: String,
}

/// The samples of one event, and what those of them weigh that count.
#[derive(Clone, Debug)]
struct Event {
    name: Vec<u8>,
    taken: bool,
    samples: u64,
    counted: u64,
    weight: Weight,
}

/// What a parser has to say of a block.
#[derive(Debug, Default)]
struct Remarks {
    /// How many lines of the block were read, the present one included.
    lines: u64,
    malformed: Vec<(u64, &'static str)>,
}

impl Remarks {
    /// The present line is not of the format's form and is left out.
    fn malformed(&mut self, what: &'static str) {
        self.malformed.push((self.lines, what));
    }
}
