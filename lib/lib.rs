//! Flame graphs as Unix filters: the core that the `fg-*` programs share.
//!
//! ```text
//! bytes ─ input ─ collapse ───────────┐
//!                                     ├─ Profile ─ folded::write
//! perf_event rings ─ record ─┐        │
//!                            ├─ perf ─┘
//! perf.data file ─ collapse ─┘
//! folded::read ─ { filter | diff | csv | check | pprof | svg::layout ─ svg::write }
//! ```
//!
//! # Terms
//! A *frame* is a function on a stack, by name. A *stack* lists frames from the *root* (outermost caller) to the *leaf*.
//! A *sample* is one observation of a stack; its *weight* is one, or the *period*, the event's own count since the last
//! sample. *Self* weight is that of stacks in which a function is the leaf, *inclusive* weight that of all in which it
//! stands, once a stack. A *callchain* is a stack as addresses; *unwinding* finds it, *symbolization* names it.
//!
//! # Example
//! ```
//! use fgkit::{diagnostics::Diagnostics, folded, input::Blocks, profile::Profile};
//! let text = b"main;parse;read 3\nmain;parse 1\nmain;parse;read 2\n";
//! let mut input = Blocks::new("example".to_owned(), Box::new(&text[..]))?;
//! let profile = folded::read_into(Profile::new(false), &mut input, &mut Diagnostics::silent())?;
//! let mut merged = Vec::new();
//! folded::write(&profile, &mut merged).expect("memory does not fail");
//! assert_eq!(merged, b"main;parse 1\nmain;parse;read 5\n");
//! # Ok::<(), fgkit::Error>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bytes;
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
pub mod markers;
pub mod output;
mod parallel;
pub mod perf;
pub mod pprof;
pub mod profile;
#[cfg(target_os = "linux")]
pub mod record;
pub mod stats;
pub mod svg;
pub mod symbol_name;

pub use error::{Error, io_error_text};
