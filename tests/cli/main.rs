//! The programs as processes: their manners and their results.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../support/mod.rs"]
mod support;

mod check;
mod collapse;
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
mod heatmap;
mod man;
mod manners;
#[cfg(unix)]
mod perf_data;
mod pprof;
#[cfg(target_os = "linux")]
mod signals;
mod svg;
mod svg_options;
