//! Tables of a profile: how much each function weighs, alone and with what it calls.

mod categories;
mod count;
mod summary;
mod table;
mod write;

pub use categories::{Categories, DEFAULT as DEFAULT_CATEGORIES};
pub use count::{By, Counts, Row, charged, count};
pub use summary::summary;
pub use table::{Cell, Column, Table};
pub use write::{Format, write};
