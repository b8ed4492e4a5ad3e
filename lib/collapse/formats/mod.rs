//! What an input format says of itself, and the table of all.

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

/// An input format.
#[derive(Debug)]
pub struct Format {
    /// What `--format` calls it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Whether an input that begins with these bytes, a quarter of a megabyte if it is so long, is of this format.
    pub(super) recognises: fn(&[u8]) -> bool,
    pub(super) reading: Reading,
}

/// How a format is read.
#[derive(Debug)]
pub(super) enum Reading {
    /// In blocks of whole samples, by all threads.
    Samples {
        /// Where in a text its last whole sample ends, if that can be told.
        cut: fn(&[u8]) -> Option<usize>,
        /// Makes a parser.
        parser: fn(&Options) -> Box<dyn Parser>,
    },
    /// Text, from its beginning to its end, by one thread.
    Lines(Reader),
    /// The same for what may be no text.
    Bytes(Reader),
}

/// Reads a whole document.
pub(super) type Reader = fn(&mut Document<'_>, &mut Sink) -> Result<(), Error>;

/// All formats, in the order in which they are asked. Folded stacks come last: many a line may be taken for one.
pub(super) static FORMATS: [&Format; 42] = [
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

/// All formats by name.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    let mut formats = FORMATS;
    formats.sort_by_key(|format| format.name);
    formats.into_iter()
}

/// The format of a name.
///
/// # Errors
/// If there is none.
pub fn format_called(name: &str) -> Result<&'static Format, String> {
    let found = FORMATS.iter().find(|format| format.name == name);
    found.copied().ok_or_else(|| "no such format; --list-formats shows all".to_owned())
}
