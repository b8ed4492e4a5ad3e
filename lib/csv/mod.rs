//! Tables of a profile: how much each function weighs, alone and with what it calls.

mod count;
mod table;

pub use count::{Count, count};
pub use table::write;
