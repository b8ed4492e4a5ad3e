//! Reads `perf.data`, as `perf record` writes it: to a file or a pipe (`perf record -o -`), compressed (`-z`) or not.
//!
//! [`header`] parses what describes the recording: events and the layout of their records, event names, build IDs.
//! [`Reader`] hands out the kernel's records, decompressed and as far as possible sorted by time (`reorder`), while
//! another thread reads on (`read_ahead`). [`files`] finds the files whose code ran. [`event`](super::event) parses the
//! records and [`recording`](super::recording) adds them up, as in a live recording.
//!
//! The reader is our own because it is the smaller part: records are parsed by the code that parses those of a live
//! recording, and nothing is parsed that a profile does not need.

mod attr;
mod compressed;
mod error;
pub mod files;
pub mod header;
mod read_ahead;
mod reader;
mod record_reader;
mod reorder;

pub use attr::{Attr, Attrs};
pub use error::ReadError;
pub use header::{Header, MAGIC, SWAPPED_MAGIC};
pub use reader::Reader;
