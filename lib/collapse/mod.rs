//! Folds the output of profilers: bytes in some format become a [`Profile`](crate::profile::Profile).
//!
//! Each input format is one module that declares its name, how to recognize it, and how to read it. Formats that can be
//! large have a function that finds the end of the last whole sample in a block, and a parser of blocks. The others
//! have a function that reads the whole document, by lines or as bytes. A format knows nothing of threads, files or
//! output.
//!
//! The driver knows nothing of formats. It reads and splits inputs, distributes blocks over threads, merges the
//! profiles, and reports malformed lines by file and line in input order. The result does not depend on the number
//! of threads.

mod appended;
mod calendar;
mod detect;
mod document;
mod document_helpers;
mod document_starts;
mod driver;
mod filter;
mod format;
mod formats;
mod held_samples;
mod input_summary;
mod line_helpers;
mod merge_sorted;
mod mixed_text;
mod options;
mod ordered_log;
mod parser;
mod sink;
mod slice_filter;
mod spans;
mod stack;
mod strays;
mod text_kind;
mod timed_samples;
mod timeline;
mod trial;
mod units;
mod unsupported;
mod useless_options;
mod worker;

pub use driver::{collapse, collapse_in_order, collapse_in_time};
pub use filter::args::{EventChoice, NumberList, OffsetSpan, TimeSpan};
pub use format::Format;
pub use formats::{find_format, formats};
pub use merge_sorted::{merge_declared_sorted, merge_if_sorted};
pub use options::{FormatName, Options};
pub use spans::{RecordedSpan, Spans};
pub use timeline::{TimedSample, Timeline};
