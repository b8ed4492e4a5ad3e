//! Records live programs with the kernel's perf_event counters. Linux only.
//!
//! A [`request::Request`] says what to record, and [`recorder`] does it: it opens the [`target`] and its [`counters`],
//! and reads the [`rings`] into a [`Recording`](crate::perf::recording::Recording). [`run`] is what fg-record runs: it
//! shows the progress, and prints the result.

mod advice;
pub mod bpf;
mod clock;
pub mod command;
pub mod counters;
mod coverage;
pub mod cpus;
mod end_reason;
mod errors;
pub mod event_record;
pub mod events;
mod exit_files;
pub mod flight_recorder;
mod hints;
mod hotspot;
mod java_attach;
pub mod observer;
pub mod off_cpu;
pub mod output_pattern;
mod overhead;
pub mod pairs;
mod process_table;
mod procfs;
mod program_file;
pub mod recorder;
pub mod report;
pub mod request;
pub mod rings;
pub mod run;
mod session;
pub mod summary;
mod sys;
pub mod target;
mod unrecorded_children;
pub mod usage;

pub use self::sys::read_process_memory;
