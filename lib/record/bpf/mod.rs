//! Takes user stacks with a BPF program, where they cannot change: in the interrupted thread's own context.
//!
//! `sampler.bpf.c` is the program, and `scripts/build-bpf` compiles it to the object that is part of the build. The
//! program runs for each sample of the counters on every CPU, and writes the user stack into the ring before the kernel
//! writes the sample. It walks stacks by tables that the recorder fills (`tables`): rows made from the unwind
//! information of each object, and the mappings of each process. Where it cannot, it sends the words of the stack that
//! unwinding needs. Beside that it adds up the CPU time of the target's processes that have ended.

mod errors;
mod followed;
mod layouts;
mod maps;
mod pairs;
mod process_map;
mod row_compiler;
mod row_tables;
mod sampler;
mod sleepers;
mod switches;
mod table_parts;
mod tables;

pub(in crate::record) use self::errors::{BoxError, Refusal, repeat_if_interrupted};
pub use self::followed::{FollowedTime, OwnTime};
pub use self::sampler::{StackSampler, StackUses};
