//! The folded format: one stack a line, `frame;frame;…;frame WEIGHT`, root first.
//!
//! A differential line has two weights, `stack BEFORE AFTER`. Bytes, not necessarily UTF-8; `fg-folded(5)` is the
//! specification. Output is sorted frame by frame, bytewise, a stack before its extensions, and each stack stands once.

mod at_once;
mod grammar;
mod in_turn;
mod lines;
mod merge;
mod ordered;
mod parts;
mod ranges;
mod read;
mod scan;
pub mod sorted;
mod write;

pub use grammar::{Kind, Line, is_comment, parse_line};
pub use merge::merge;
pub use ordered::{Ordered, in_order};
pub use parts::read_in_parts;
pub(crate) use ranges::merge_in_ranges;
pub use read::{NO_STACK, Target, gather, gather_each, read_all, read_into};
pub use scan::{Scanned, scan};
pub use write::write;
