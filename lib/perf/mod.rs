//! The part of a profiler that a live recording and a `perf.data` file share.
//!
//! [`event`] parses records, and [`data`] reads them from `perf.data`. [`process`] keeps what is mapped and what threads
//! are called, over time. [`objects`] holds the files whose code ran, [`jit`] describes the code that processes generate.
//! [`recording`] adds up samples as stacks of locations; [`unwind`] finds the user stacks that the kernel does not, with
//! the unwind information in [`cfi`], and [`runtimes`] the functions of interpreters. [`thread_context`] reads which span a
//! thread works on. At the end [`symbols`] names each
//! location once, and [`export`] turns the recording into a profile or the text of `perf script`.

pub mod cfi;
pub mod data;
pub mod event;
pub mod export;
pub mod go;
pub mod jit;
pub mod location;
pub mod mappings;
pub mod objects;
pub mod process;
pub mod recording;
pub mod runtime;
pub mod runtimes;
pub mod stop_reason;
pub mod symbols;
pub mod thread_context;
pub mod thread_state;
pub mod unwind;
