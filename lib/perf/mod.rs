//! The profiler core: what a live recording and a `perf.data` file both flow through.
//!
//! [`event`] says what a record means, [`process`] keeps what was mapped and named when, [`objects`] holds the files whose
//! code ran, [`recording`] adds up samples as stacks of addresses, [`unwind`] finds those
//! that the kernel does not, and [`symbols`] names those addresses at the end,
//! each once.

pub mod cfi;
pub mod data;
pub mod event;
pub mod export;
pub mod jit;
pub mod location;
pub mod objects;
pub mod process;
pub mod recording;
pub mod stop_reason;
pub mod symbols;
pub mod thread_state;
pub mod unwind;
