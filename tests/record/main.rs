//! Real recordings of real programs. They need a kernel that lets us record; without one they skip, and say so.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../support/mod.rs"]
mod support;

mod bpf;
mod debug_files;
mod endings;
mod events;
mod files;
mod folded;
mod gate;
mod idle;
mod jit;
mod living_stack;
mod losses;
mod noise;
mod off_cpu;
mod parts;
mod programs;
mod progress;
mod quantities;
mod refusals;
mod script;
mod spans;
mod storms;
mod streams;
mod targets;
mod unwinding;
