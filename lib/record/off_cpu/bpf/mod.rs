//! Blocked time added up inside the kernel, by a small program there: for recording a whole system all the time.
//!
//! It costs a switch what the other way costs, the walk of two stacks. It saves the way of each stack to the recorder,
//! and the recorder's work: what is read, once a second, is how long blocks of one kind were in all. In builds with the
//! feature `bpf`; `off_cpu.bpf.c` is the program, and `scripts/build-bpf` makes the object of it that is part of the build.

#[cfg(feature = "bpf")]
mod aggregation;
#[cfg(not(feature = "bpf"))]
#[path = "unsupported.rs"]
mod aggregation;
#[cfg(feature = "bpf")]
mod errors;
#[cfg(feature = "bpf")]
mod table;
#[cfg(feature = "bpf")]
mod tables;

use std::time::Duration;

pub use self::aggregation::Aggregation;

/// How often what was added up is read.
pub const WINDOW: Duration = Duration::from_secs(1);
