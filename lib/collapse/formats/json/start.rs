//! Detects the format of JSON: the text is parsed once, and each format looks for its keys in the result.

use super::tape::Tape;
use super::value::Value;
use super::{
    bpftrace, cpuprofile, d3, dhat, firefox, flamebearer, ghc, gprof2dot, heapprofile, jfr_print, otlp, perf_json,
    pyinstrument, pyspy_dump, safari, scalene, sentry, speedscope, stackprof, thread_dump, trace_event, v8_log,
};
use crate::collapse::format::Format;

/// Returns true for the root of a document of a format.
type IsRoot = fn(Value<'_>) -> bool;

/// The formats whose documents are JSON, in the order in which they are tried.
static DOCUMENTS: [(&Format, IsRoot); 22] = [
    (&trace_event::FORMAT, trace_event::is_root),
    (&cpuprofile::FORMAT, cpuprofile::is_root),
    (&heapprofile::FORMAT, heapprofile::is_root),
    (&v8_log::FORMAT, v8_log::is_root),
    (&speedscope::FORMAT, speedscope::is_root),
    (&firefox::FORMAT, firefox::is_root),
    (&stackprof::FORMAT, stackprof::is_root),
    (&ghc::FORMAT, ghc::is_root),
    (&jfr_print::FORMAT, |root| root.get_path([b"recording", b"events"]).is_some()),
    (&bpftrace::FORMAT, bpftrace::is_root),
    (&otlp::FORMAT, otlp::is_root),
    (&thread_dump::FORMAT, thread_dump::is_root),
    (&perf_json::FORMAT, perf_json::is_root),
    (&pyspy_dump::FORMAT, pyspy_dump::is_root),
    (&dhat::FORMAT, dhat::is_root),
    (&gprof2dot::FORMAT, gprof2dot::is_root),
    (&pyinstrument::FORMAT, pyinstrument::is_root),
    (&scalene::FORMAT, scalene::is_root),
    (&sentry::FORMAT, sentry::is_root),
    (&flamebearer::FORMAT, flamebearer::is_root),
    (&safari::FORMAT, safari::is_root),
    (&d3::FORMAT, d3::is_root),
];

/// The array or object with which a text begins.
pub(in crate::collapse) struct Start {
    /// The format of a profile.
    pub(in crate::collapse) format: Option<&'static Format>,
    pub(in crate::collapse) end: StartEnd,
}

/// Where the array or object ends with which a text begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collapse) enum StartEnd {
    /// Behind the text.
    Behind,
    /// At the end of the text, which may be blank from there on.
    AtEnd,
    /// Before other text.
    Before,
}

/// Parses the array or object with which a text begins, after blanks. `None` if there is none.
pub(in crate::collapse) fn parse(text: &[u8]) -> Option<Start> {
    if !matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return None;
    }
    let tape = Tape::parse(text).ok()?;
    let root = Value::root(&tape)?;
    let found = DOCUMENTS.iter().find(|(_, is_root)| is_root(root));
    let end = match text[tape.end..].trim_ascii() {
        _ if tape.is_truncated => StartEnd::Behind,
        b"" => StartEnd::AtEnd,
        _ => StartEnd::Before,
    };
    Some(Start { format: found.map(|(format, _)| *format), end })
}

#[cfg(test)]
mod tests {
    use super::{StartEnd, parse};

    #[test]
    fn finds_the_end_of_json() {
        for (text, end) in [
            ("{\"a\": [1,", Some(StartEnd::Behind)),
            (" {\"a\": 1}\n\n", Some(StartEnd::AtEnd)),
            ("[unknown];a 1\n", Some(StartEnd::Before)),
            ("{\"a\": 1}\n{\"a\": 2}\n", Some(StartEnd::Before)),
            ("{closure} 1\n", None),
            ("12\n", None),
        ] {
            assert_eq!(parse(text.as_bytes()).map(|start| start.end), end, "{text}");
        }
    }
}
