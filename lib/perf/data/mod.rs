//! `perf.data`: what `perf record` wrote, as a file, as a stream (`perf record -o -`), compressed (`-z`) or not.
//!
//! [`header`] says what was recorded: events with the layout of their records, names, build-ids. [`Reader`] hands out the
//! kernel's records, in the order of their times as far as the file tells it (`window`), decompressed, while another thread
//! reads on (`ahead`). [`files`] finds
//! the files whose code ran. What the records say is [`event`](super::event)'s and
//! [`recording`](super::recording)'s matter, as in a live recording.
//!
//! The reader is our own because it is the smaller part: records are taken apart by the code that takes the kernel's
//! rings apart, and nothing is parsed that a profile does not need.

mod attr;
mod compressed;
pub mod files;
pub mod header;
mod read_ahead;
mod reader;
mod record_reader;
mod reorder;

pub use attr::{Attr, Attrs};
pub use header::Head;
pub use reader::Reader;

/// The first bytes of such a file; on a big-endian machine it writes them the other way round.
pub const MAGIC: &[u8] = b"PERFILE2";
/// Those of a machine of the other byte order.
pub const SWAPPED: &[u8] = b"2ELIFREP";

/// What can be wrong with such a file, in words.
#[derive(Debug)]
pub enum Fault {
    /// The system says that it cannot be read.
    Io(std::io::Error),
    /// It does not hold what it says it holds.
    Broken(String),
    /// What took the records in could not go on.
    Taker(crate::Error),
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

fn broken<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Broken(what.into()))
}
