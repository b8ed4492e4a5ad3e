//! The input formats: one module each, and the table of all of them.
//!
//! A module declares a `FORMAT`: its name and description for `--list-formats`, a function that recognizes it by the
//! first bytes of an input, and its reader. To add a format, write its module and add it to [`FORMATS`]; CONTRIBUTING.md
//! names the other files to change.

mod art_trace;
mod austin;
mod bcc;
mod bpftrace;
mod callgrind;
mod dotnet_stack;
mod dtrace;
mod eflame;
mod eu_stack;
mod faulthandler;
pub(super) mod folded;
mod ftrace;
mod gdb;
mod ghc_eventlog;
mod ghc_prof;
mod go_frames;
mod go_raw;
pub(super) mod go_trace;
mod go_traces;
mod goroutines;
mod gperftools;
pub(super) mod headings;
mod heap_text;
mod heaptrack;
mod hprof_text;
mod instruments;
mod java;
mod java_exceptions;
mod javacore;
mod jfr;
mod jfr_print;
pub(super) mod json;
mod jstack;
mod little_endian;
mod ljp;
mod lsan;
mod mapped;
mod massif;
mod memcheck;
mod memleak;
mod memray;
mod nettrace;
mod otlp;
mod perf_data;
pub(super) mod perf_report;
mod perf_script;
mod perfetto;
mod perfview;
mod phpspy;
mod pmcstat;
mod pprof;
mod procstack;
mod pyspy_dump;
mod rprof;
mod sample;
mod simpleperf;
mod simpleperf_proto;
mod stackcount;
mod stackprof_dump;
mod stap;
mod strace;
mod sysprof;
mod v8_prof;
mod vsprof;
mod vtune;
mod wcp;
pub(super) mod wpa;
mod xctrace;
mod xdebug;
mod xml;

use super::format::{Format, FormatReader};
use super::options::FormatName;
use crate::folded::{DetectedKind, LineKind};

/// All formats, in the order in which they are tried. Folded stacks come last because lines of many formats look like
/// one. Text whose first lines are all folded stacks is recognized before any of these is tried (`folded::is_certain`).
pub(super) static FORMATS: &[&Format] = &[
    &perf_data::FORMAT,
    &jfr::FORMAT,
    &nettrace::FORMAT,
    &perf_script::FORMAT,
    &ftrace::FORMAT,
    &pprof::FORMAT,
    &otlp::FORMAT,
    &perfetto::FORMAT,
    &simpleperf_proto::FORMAT,
    &art_trace::FORMAT,
    &austin::FORMAT,
    &stackprof_dump::FORMAT,
    &gperftools::FORMAT,
    &sysprof::FORMAT,
    &xctrace::FORMAT,
    &perfview::FORMAT,
    &json::trace_event::FORMAT,
    &json::cpuprofile::FORMAT,
    &json::heapprofile::FORMAT,
    &json::v8_log::FORMAT,
    &json::speedscope::FORMAT,
    &json::firefox::FORMAT,
    &json::stackprof::FORMAT,
    &json::ghc::FORMAT,
    &json::jfr_print::FORMAT,
    &json::bpftrace::FORMAT,
    &json::otlp::FORMAT,
    &json::thread_dump::FORMAT,
    &json::perf_json::FORMAT,
    &json::pyspy_dump::FORMAT,
    &json::rbspy::FORMAT,
    &json::dhat::FORMAT,
    &json::gprof2dot::FORMAT,
    &json::pyinstrument::FORMAT,
    &json::scalene::FORMAT,
    &json::sentry::FORMAT,
    &json::flamebearer::FORMAT,
    &json::safari::FORMAT,
    &json::d3::FORMAT,
    &jfr_print::FORMAT,
    &perf_script::sched::FORMAT,
    &perf_report::FORMAT,
    &bpftrace::FORMAT,
    &bcc::FORMAT,
    &stackcount::FORMAT,
    &dtrace::FORMAT,
    &stap::FORMAT,
    &strace::FORMAT,
    &sample::FORMAT,
    &instruments::FORMAT,
    &go_trace::FORMAT,
    &go_raw::FORMAT,
    &go_traces::FORMAT,
    &goroutines::FORMAT,
    &hprof_text::FORMAT,
    &jstack::FORMAT,
    &javacore::FORMAT,
    &java_exceptions::FORMAT,
    &ljp::FORMAT,
    &eu_stack::FORMAT,
    &gdb::FORMAT,
    &faulthandler::FORMAT,
    &callgrind::FORMAT,
    &ghc_prof::FORMAT,
    &ghc_eventlog::FORMAT,
    &pmcstat::FORMAT,
    &simpleperf::FORMAT,
    &vtune::FORMAT,
    &vsprof::FORMAT,
    &wpa::FORMAT,
    &wcp::FORMAT,
    &v8_prof::FORMAT,
    &procstack::FORMAT,
    &xdebug::FORMAT,
    &pyspy_dump::FORMAT,
    &dotnet_stack::FORMAT,
    &heap_text::FORMAT,
    &heaptrack::FORMAT,
    &massif::FORMAT,
    &memleak::FORMAT,
    &memcheck::FORMAT,
    &lsan::FORMAT,
    &memray::FORMAT,
    &rprof::FORMAT,
    &phpspy::FORMAT,
    &eflame::FORMAT,
    &folded::FORMAT,
];

/// Returns all formats, sorted by name.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    let mut formats = FORMATS.to_vec();
    formats.sort_by_key(|format| format.name);
    formats.into_iter()
}

/// Returns the name of a format, if there is one.
///
/// # Errors
/// Returns a message if no format has this name.
pub fn find_format(name: &str) -> Result<FormatName, String> {
    let found = FORMATS.iter().find(|format| format.name == name);
    found
        .map(|format| FormatName::new(format.name))
        .ok_or_else(|| "no such format; --list-formats lists them".to_owned())
}

/// Returns the format that a name refers to.
pub(super) fn get_format(name: FormatName) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name == name.as_str())
}

/// Returns the name of the format of a document that begins with these bytes: a binary one, or JSON or XML.
pub(super) fn find_document(text: &[u8]) -> Option<&'static str> {
    FORMATS.iter().filter(|format| is_document(format)).find(|format| format.recognizes(text)).map(|format| format.name)
}

/// Returns the format of JSON or XML that begins with these bytes.
pub(super) fn find_markup(text: &[u8]) -> Option<&'static Format> {
    match text.first()? {
        b'{' | b'[' => json::start::parse(&text[..text.len().min(json::start::DETECTION_BYTES)])?.format,
        b'<' => FORMATS.iter().copied().find(|format| is_document(format) && format.recognizes(text)),
        _ => None,
    }
}

/// Returns the name of the format of a binary document that begins with these bytes, and not behind the first one.
pub(super) fn find_binary(bytes: &[u8]) -> Option<&'static str> {
    let mut binary = FORMATS.iter().filter(|format| matches!(format.reader, FormatReader::Bytes(_)));
    let found = binary.find(|format| format.recognizes(bytes) && !format.recognizes(&bytes[1..]));
    found.map(|format| format.name)
}

/// Returns true if a line is certainly the first one of a sample; the second argument is the text after it.
type BeginsSample = fn(&[u8], &[u8]) -> bool;

/// Returns the name of the format, other than `own`, of which a line is certainly the first one of a sample; `next` is the
/// text after it.
#[inline]
pub(super) fn find_sample(line: &[u8], next: &[u8], own: &str) -> Option<&'static str> {
    let begins: [(BeginsSample, &Format); 3] = [
        (perf_script::begins_sample, &perf_script::FORMAT),
        (strace::begins_sample, &strace::FORMAT),
        (ljp::begins_sample, &ljp::FORMAT),
    ];
    let mut others = begins.iter().filter(|(_, format)| !shares_text(own, format.name));
    others.find(|(begins, _)| begins(line, next)).map(|(_, format)| format.name)
}

/// Returns true if a reader of one format reads the text of another one.
pub(super) fn shares_text(reader: &str, text: &str) -> bool {
    reader == text || reader == perf_script::sched::FORMAT.name && text == perf_script::FORMAT.name
}

fn is_document(format: &&'static Format) -> bool {
    let is_text = format.name == perf_script::sched::FORMAT.name;
    matches!(format.reader, FormatReader::Bytes(_)) && !is_text || format.name == json::bpftrace::FORMAT.name
}

/// Returns what is wrong with a text of this format that lacks the fields by which its samples are recognized.
pub(super) fn explain_missing_fields(format: &Format, head: &[u8]) -> Option<&'static str> {
    let is_perf = format.name == perf_script::FORMAT.name;
    is_perf.then(|| perf_script::explain_missing_fields(head)).flatten()
}

/// Returns true if a format is folded text: its lines may be sorted already, and each may have two weights.
pub(super) fn is_folded(format: &Format) -> bool {
    format.name == folded::FORMAT.name
}

/// Returns the number of weights per stack of an input of this format that begins with `head`, or `None` if no stack
/// is in `head`.
pub(super) fn weight_kind(format: &Format, head: &[u8]) -> Option<DetectedKind> {
    let plain = DetectedKind { kind: LineKind::Plain, line: 1 };
    if is_folded(format) { folded::weight_kind(head) } else { Some(plain) }
}

/// Says why no times can be read of an input of this format that begins with `head`, if there is a reason.
pub(super) fn time_problem(format: &Format, head: &[u8]) -> Option<&'static str> {
    let is_perf = format.name == perf_script::FORMAT.name || is_perf_sched(format);
    (is_perf && perf_script::has_time_differences(head))
        .then_some("its times are differences; give the output of perf script without --deltatime")
}

/// Returns true for context switches, whose weights are differences of times.
pub(super) fn is_perf_sched(format: &Format) -> bool {
    format.name == perf_script::sched::FORMAT.name
}
