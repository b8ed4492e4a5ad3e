//! Tables of a profile: weights by function, command, stack, call or category.

mod count;
mod summary;
mod table;
mod write;

pub use crate::categories::{Categories, DEFAULT as DEFAULT_CATEGORIES, OTHER as OTHER_CATEGORY};
pub use crate::tally::{GroupBy, Row};
pub use count::{Counts, count, count_runs};
pub use summary::summary;
pub use table::{Cell, Column, Table};
pub use write::{Format, write};
