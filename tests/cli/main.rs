//! The programs as processes: conventions that all follow, and the results of each.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod check;
mod collapse;
mod conventions;
mod corpus;
mod corpus_formats;
mod corpus_totals;
mod csv;
mod diff;
mod documents;
mod faults;
mod filter;
mod fleet;
mod folded;
mod formats;
#[cfg(target_os = "linux")]
mod harness;
mod heatmap;
mod man;
mod models;
mod moved_cost;
#[cfg(unix)]
mod perf_data;
mod pprof;
mod renames;
mod repeated_runs;
mod report;
mod sample_selection;
mod scaled_verdicts;
#[cfg(target_os = "linux")]
mod signals;
mod svg;
mod svg_options;
mod trace_spans;
mod variants;
mod verdicts;
mod weights;
