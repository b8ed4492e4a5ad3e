//! Flame graphs as Unix filters: the library behind the `fg-*` programs.
//!
//! A program parses its options (`bins/`), calls this library, and writes the result. Programs exchange *folded
//! stacks*, text with one stack per line: `main;parse;read 3`.
//!
//! # The two flows
//! Recording and conversion make folded stacks from profiler output or from the kernel:
//!
//! ```text
//! profiler output ── input ── collapse ──────────┐
//! perf.data file ─── input ── collapse ── perf ──┼── Profile ── folded::write
//! kernel ─────────── record ───────────── perf ──┘
//! ```
//!
//! Analysis reads folded stacks and changes, compares, tabulates or draws them:
//!
//! ```text
//! folded::read ── filter │ diff │ csv │ check │ report │ pprof │ svg ── output
//! ```
//!
//! - [`input`] opens files and pipes, decompresses them and cuts them into blocks of whole records.
//! - [`collapse`] detects the format and parses the blocks on all cores; each format is one module of
//!   `collapse::formats`.
//! - `record` (Linux only) samples through `perf_event_open`. [`perf`] unwinds and symbolizes the samples, whether they
//!   come from the kernel or from a `perf.data` file.
//! - [`profile`] has the data structure in the middle, [`Profile`](profile::Profile): distinct stacks and their
//!   weights.
//! - [`folded`] reads and writes the text format, and merges sorted text as a stream.
//! - [`heatmap`] draws the samples of `collapse` over time; it needs profiler output, since folded stacks have no
//!   times.
//! - [`cli`] has what the programs share: options, help, man pages, exit statuses.
//!
//! # Terms
//! - A *frame* is the name of a function on a stack. A *stack* lists frames from the *root*, the outermost caller, to
//!   the *leaf*, the function that ran.
//! - A *sample* is one observation of a stack. Its *weight* is 1 or its *period*: by how much the event's counter grew
//!   since the sample before it.
//! - *Self* weight of a function is the weight of stacks with this function as the leaf. *Inclusive* weight is the
//!   weight of stacks that contain it, counted once per stack.
//! - A *callchain* is a stack as addresses. *Unwinding* finds it, *symbolization* turns it into names.
//! - A *differential* profile has two weights per stack, before and after.
//! - A *marker* is a frame in brackets that is not a function, such as `[unknown]` or `[off-cpu]`: see [`markers`].
//!
//! # Example
//! ```
//! use fgkit::{diagnostics::Diagnostics, folded, input::Blocks, profile::Profile};
//! let text = b"main;parse;read 3\nmain;parse 1\nmain;parse;read 2\n";
//! let mut input = Blocks::new("example".to_owned(), Box::new(&text[..]))?;
//! let profile = folded::read_into(Profile::new(false), &mut input, &mut Diagnostics::silent())?;
//! let mut merged = Vec::new();
//! folded::write(&profile, &mut merged).expect("writing to memory does not fail");
//! assert_eq!(merged, b"main;parse 1\nmain;parse;read 5\n");
//! # Ok::<(), fgkit::Error>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod bench;
mod bytes;
mod categories;
pub mod check;
pub mod cli;
pub mod collapse;
pub mod csv;
pub mod diagnostics;
pub mod diff;
mod error;
pub mod filter;
pub mod folded;
pub mod heatmap;
pub mod input;
pub mod interrupts;
mod java;
pub mod markers;
pub mod otlp;
pub mod output;
mod own_code;
mod parallel;
mod pattern_list;
pub mod perf;
pub mod pprof;
pub mod profile;
mod protobuf;
#[cfg(target_os = "linux")]
pub mod record;
pub mod report;
mod script_source;
pub mod stats;
mod stdout_state;
pub mod svg;
pub mod symbol_name;
pub mod tally;

pub use error::{Error, io_error_text};
