//! The input formats: one module each, and the table of all of them.
//!
//! A module declares a `FORMAT`: its name and description for `--list-formats`, a function that recognizes it by the
//! first bytes of an input, and its reader. To add a format, write its module and add it to [`FORMATS`]; CONTRIBUTING.md
//! names the other files to change.

mod bcc;
mod bpftrace;
mod callgrind;
mod dtrace;
mod eu_stack;
mod faulthandler;
pub(super) mod folded;
mod gdb;
mod ghc_prof;
mod go_raw;
mod go_traces;
mod goroutines;
mod instruments;
mod java;
mod java_exceptions;
mod javacore;
mod json;
mod jstack;
mod ljp;
mod perf_data;
mod perf_report;
mod perf_script;
mod pmcstat;
mod pprof;
mod procstack;
mod sample;
mod simpleperf;
mod stap;
mod v8_prof;
mod vsprof;
mod vtune;
mod wcp;
mod xctrace;
mod xdebug;

use super::document::Document;
use super::sink::Sink;
use super::{Options, Parser};
use crate::Error;
use crate::folded::LineKind;

/// An input format.
#[derive(Debug)]
pub struct Format {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// The program or command that writes the format, in a few words.
    pub description: &'static str,
    /// True if the reader gets a time, a thread and a CPU with each sample, so that `--time`, `--comm`, `--span` and
    /// their like apply.
    pub(super) has_times: bool,
    /// Returns true if an input that begins with these bytes has this format. They are its first 128 KiB and at least
    /// its first line, or all of it. No other format may recognize the same input.
    pub(super) recognizes: fn(&[u8]) -> bool,
    pub(super) reader: FormatReader,
}

impl Format {
    /// Returns true if this is folded text: its lines may be sorted already, and each may have two weights.
    pub(super) fn is_folded(&self) -> bool {
        self.name == folded::FORMAT.name
    }

    /// Returns the number of weights per stack of an input that begins with `head`, or `None` if no stack is in `head`.
    pub(super) fn weight_kind(&self, head: &[u8]) -> Option<LineKind> {
        if self.is_folded() { folded::weight_kind(head) } else { Some(LineKind::Plain) }
    }
}

/// The function that reads a format.
#[derive(Debug)]
pub(super) enum FormatReader {
    /// Parses blocks of whole samples, on all threads: for text that can be large.
    Blocks {
        /// Returns the offset after the last whole sample of a text, if it can be found.
        find_boundary: fn(&[u8]) -> Option<usize>,
        new_parser: fn(&Options) -> Box<dyn Parser>,
    },
    /// Reads text line by line, on one thread.
    Lines(ReadDocument),
    /// Reads a document that may be binary, on one thread.
    Bytes(ReadDocument),
}

/// A function that reads a document from its beginning to its end and adds its samples to the sink.
pub(super) type ReadDocument = fn(&mut Document<'_>, &mut Sink) -> Result<(), Error>;

/// All formats, in the order in which they are tried. Folded stacks come last because lines of many formats look like
/// one. Text whose first lines are all folded stacks is recognized before any of these is tried (`folded::is_certain`).
pub(super) static FORMATS: &[&Format] = &[
    &perf_data::FORMAT,
    &perf_script::FORMAT,
    &pprof::FORMAT,
    &xctrace::FORMAT,
    &json::trace_event::FORMAT,
    &json::cpuprofile::FORMAT,
    &json::heapprofile::FORMAT,
    &json::v8_log::FORMAT,
    &json::speedscope::FORMAT,
    &json::firefox::FORMAT,
    &json::stackprof::FORMAT,
    &json::ghc::FORMAT,
    &json::bpftrace::FORMAT,
    &perf_script::sched::FORMAT,
    &perf_report::FORMAT,
    &bpftrace::FORMAT,
    &bcc::FORMAT,
    &dtrace::FORMAT,
    &stap::FORMAT,
    &sample::FORMAT,
    &instruments::FORMAT,
    &go_raw::FORMAT,
    &go_traces::FORMAT,
    &goroutines::FORMAT,
    &jstack::FORMAT,
    &javacore::FORMAT,
    &java_exceptions::FORMAT,
    &ljp::FORMAT,
    &eu_stack::FORMAT,
    &gdb::FORMAT,
    &faulthandler::FORMAT,
    &callgrind::FORMAT,
    &ghc_prof::FORMAT,
    &pmcstat::FORMAT,
    &simpleperf::FORMAT,
    &vtune::FORMAT,
    &vsprof::FORMAT,
    &wcp::FORMAT,
    &v8_prof::FORMAT,
    &procstack::FORMAT,
    &xdebug::FORMAT,
    &folded::FORMAT,
];

/// Returns all formats, sorted by name.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    let mut formats = FORMATS.to_vec();
    formats.sort_by_key(|format| format.name);
    formats.into_iter()
}

/// Returns the format with this name.
///
/// # Errors
/// Returns a message if no format has this name.
pub fn find_format(name: &str) -> Result<&'static Format, String> {
    let found = FORMATS.iter().find(|format| format.name == name);
    found.copied().ok_or_else(|| "no such format; --list-formats lists them".to_owned())
}
