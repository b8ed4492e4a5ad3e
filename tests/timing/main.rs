//! Tests whose verdict depends on sampling, scheduling or time: shares of samples, durations, rates, CPU time.
//!
//! Each runs within [`statistical`](support::statistics::statistical), which retries a missed bound and lets one test
//! measure at a time. Cargo runs this target when the others have finished.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../support/mod.rs"]
mod support;

mod agreement;
mod bpf;
mod collapse;
mod coverage;
mod critical_path;
mod events;
mod gate;
mod harness;
mod idle;
mod jit;
mod latency;
mod noise;
mod off_cpu;
mod pairs;
mod progress;
mod renames;
mod ring;
mod script;
mod spans;
mod storms;
mod targets;
mod unwinding;
mod wakers;
