//! The folded format: one stack per line, `frame;frame;…;frame WEIGHT`, root first.
//!
//! A differential line has two weights, `stack BEFORE AFTER`. Text is bytes, not necessarily UTF-8. Output contains
//! each stack once and is sorted frame by frame, bytewise, a stack before its extensions. The man page `fg-folded(5)`
//! specifies the format.

mod distinct_names;
mod grammar;
mod kway_merge;
mod line_filter;
mod line_kind;
mod log_line;
mod message;
mod ordered_writer;
mod other_input;
mod parallel_files;
mod parallel_merge;
mod parallel_read;
mod read;
mod repeated_stacks;
mod sort_file;
pub(crate) mod sorted_profile;
pub mod sorted_reader;
mod sortedness;
mod stack_order;
mod stack_parser;
mod write;

pub use distinct_names::DistinctNames;
pub use grammar::{Line, LineKind, is_comment, parse_line};
pub use kway_merge::merge_sorted;
pub use line_filter::{LineFilter, RequiredLiterals};
pub use line_kind::{DetectedKind, detect_kind};
pub(crate) use line_kind::{MixtureCheck, mixture_error};
pub(crate) use log_line::{begins_with_time, is_log_line};
pub(crate) use message::{Messages, NO_MESSAGE, is_message};
pub(crate) use other_input::{GREP_OUTPUT, is_grep_output};
pub(crate) use parallel_merge::merge_parallel;
pub use parallel_read::read_parallel;
pub use read::{no_stacks, read_all, read_into, read_profile, read_profiles, read_selected, read_sums};
pub use sort_file::{SortedFile, sort_files};
pub use sortedness::{SortedSummary, check_sorted};
pub(crate) use stack_order::shares_frame;
pub use stack_parser::{NO_STACK, StackSink};
pub use write::{LineBuffer, write};
