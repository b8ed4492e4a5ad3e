//! The events that can be sampled: their names, their kernel configuration, and the values that their samples carry.

pub mod pmu;
pub mod program_kind;
pub mod spec;
pub mod uprobe;
pub mod value;
