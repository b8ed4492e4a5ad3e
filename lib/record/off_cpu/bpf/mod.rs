//! Sums blocked time up inside the kernel with a BPF program, to record a whole system continuously.
//!
//! A switch costs as much as without BPF: two stacks are walked. BPF saves the transfer of each stack to the recorder,
//! and the recorder's work: it reads once a second how long all blocks of a kind were.
//! `off_cpu.bpf.c` is the program, and `scripts/build-bpf` compiles it to the object that is part of the build.

mod aggregation;
mod errors;
mod hash_map;
mod maps;

use std::time::Duration;

pub use self::aggregation::Aggregation;

/// The time between two readings of the sums.
pub const WINDOW: Duration = Duration::from_secs(1);
