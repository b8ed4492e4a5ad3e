//! The profiler core: what a live recording and a `perf.data` file both flow through.
//!
//! [`event`] says what a record means, [`process`] keeps what was mapped and named when, [`objects`] holds the files whose
//! code ran, [`recording`] adds up samples as stacks of addresses, [`unwind`] finds those
//! that the kernel does not, and [`symbolize`] names those addresses at the end,
//! each once.

pub mod data;
pub mod debug_file;
pub mod debug_information;
pub mod elf_names;
pub mod event;
pub mod jit;
pub mod jitdump;
pub mod kallsyms;
pub mod kept;
mod mapped_file;
pub mod naming;
pub mod object;
pub mod objects;
pub mod perf_map;
pub mod plt;
pub mod process;
pub mod recording;
pub mod script;
pub mod state;
pub mod symbolize;
pub mod symbols;
#[cfg(unix)]
mod truncation;
mod turn;
pub mod unwind;
pub mod view;
