//! Reads profiles from standard input and files, compressed or not, in blocks of whole records.

mod blocks;
mod colours;
mod compressed;
mod file_range;
mod pipe;
mod read;
mod read_ahead;
mod source;
mod utf16;

pub(crate) use blocks::BlockSource;
pub use blocks::{Block, Blocks, last_line_end};
pub(crate) use file_range::FileRange;
pub(crate) use read_ahead::ReadAhead;
pub use source::Source;
