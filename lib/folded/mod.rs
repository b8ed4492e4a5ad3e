//! The folded format: one stack a line, `frame;frame;…;frame WEIGHT`, root first.
//!
//! A differential line has two weights, `stack BEFORE AFTER`. Bytes, not necessarily UTF-8; `fg-folded(5)` is the
//! specification. Output is sorted frame by frame, bytewise, a stack before its extensions, and each stack stands once.

mod grammar;
mod kway_merge;
mod ordered_writer;
mod parallel_files;
mod parallel_merge;
mod parallel_read;
mod read;
mod sort_file;
pub mod sorted_reader;
mod sortedness;
mod stack_order;
mod write;

pub use grammar::{Kind, Line, is_comment, parse_line};
pub use kway_merge::merge_sorted;
pub(crate) use parallel_merge::merge_parallel;
pub use parallel_read::read_parallel;
pub use read::{NO_STACK, StackSink, read_all, read_into, read_profile, read_profiles};
pub use sort_file::{SortedFile, sort_files};
pub use sortedness::{SortedSummary, check_sorted};
pub use write::write;
