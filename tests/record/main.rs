//! Recordings of real programs, with verdicts that do not depend on how busy the machine is. What depends on sampling rates,
//! shares of samples or times is in the target `timing`.
//!
//! The tests need a kernel that lets us record. Without one they are skipped.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod bpf;
mod churn;
mod containers;
mod critical_path;
mod debug_files;
mod deep_scripts;
mod events;
mod exact_stacks;
mod exit_status;
mod files;
mod go;
mod interval;
mod java;
mod jit;
mod losses;
mod node;
mod off_cpu;
mod pairs;
mod php;
mod python;
mod realigned_frames;
mod refusals;
mod ring;
mod ruby;
mod script;
mod sleeping_scripts;
mod streams;
mod subprocesses;
mod targets;
mod tasks;
mod thread_context;
mod wakers;
mod weight_field;
mod workload;
