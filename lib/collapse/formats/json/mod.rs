//! JSON formats. Each is recognized by the keys of its document.

pub(super) mod bpftrace;
pub(super) mod call_stack;
pub(super) mod cpuprofile;
pub(super) mod d3;
pub(super) mod dhat;
pub(super) mod firefox;
pub(super) mod flamebearer;
mod forest;
pub(super) mod ghc;
pub(super) mod gprof2dot;
pub(super) mod heapprofile;
pub(super) mod jfr_print;
pub(super) mod otlp;
pub(super) mod perf_json;
pub(super) mod pyinstrument;
pub(super) mod pyspy_dump;
pub(super) mod rbspy;
pub(super) mod safari;
pub(super) mod scalene;
pub(super) mod sentry;
mod span_documents;
mod spans;
pub(super) mod speedscope;
pub(super) mod stackprof;
pub(in crate::collapse) mod start;
mod tape;
pub(super) mod thread_dump;
pub(super) mod trace_event;
mod trace_samples;
mod tree;
pub(super) mod v8_log;
mod v8_samples;
pub(in crate::collapse) mod value;
mod weights;

use self::tape::{SyntaxError, Tape};
use self::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{function_with_source, read_bytes};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;

/// Returns the name of a frame, whose function, file and line are members with these keys.
fn frame_name(frame: Value<'_>, [function, file, line]: [&[u8]; 3], options: &Options) -> Vec<u8> {
    let line = frame.get(line).and_then(Value::as_integer);
    function_with_source(&frame.get_string(function), &frame.get_string(file), line, options)
}

/// Reads the whole document and calls `fold` with its root.
fn read_root(
    document: &mut Document<'_>,
    sink: &mut Sink,
    fold: fn(Value<'_>, &mut Document<'_>, &mut Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    let text = read_bytes(document)?;
    let tape = parse(&text, document)?;
    if tape.is_truncated {
        return Err(document.unreadable("JSON that is cut short"));
    }
    Value::root(&tape).map_or(Ok(()), |root| fold(root, document, sink))?;
    report_too_small(&tape, document)
}

/// Reports the numbers that were read as 0.
fn report_too_small(tape: &Tape<'_>, document: &mut Document<'_>) -> Result<(), Error> {
    let count = tape.too_small.borrow().len() as u64;
    document.report_problems(count, "number", "below 0.0000005 read as 0: weights have six decimals")
}

/// Parses a document, which may be truncated.
fn parse<'a>(text: &'a [u8], document: &Document<'_>) -> Result<Tape<'a>, Error> {
    let tape = Tape::parse(text).map_err(|error| locate_error(text, error, document))?;
    let extra = text[tape.end..].iter().position(|byte| !byte.is_ascii_whitespace());
    let message = "expected the end of the file";
    match extra {
        None => Ok(tape),
        Some(extra) => Err(locate_error(text, SyntaxError { offset: tape.end + extra, message }, document)),
    }
}

/// Converts a syntax error to one with line and column.
fn locate_error(text: &[u8], SyntaxError { offset, message }: SyntaxError, document: &Document<'_>) -> Error {
    let line = memchr::memchr_iter(b'\n', &text[..offset]).count() + 1;
    let column = offset - memchr::memrchr(b'\n', &text[..offset]).map_or(0, |end| end + 1) + 1;
    document.unreadable(format!("malformed JSON at line {line}, column {column}: {message}"))
}
