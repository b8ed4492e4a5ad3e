//! Formats that are JSON, each told by the names that its document has.

pub(super) mod bpftrace;
mod chrome;
pub(super) mod cpuprofile;
pub(super) mod firefox;
mod forest;
pub(super) mod ghc;
pub(super) mod heapprofile;
mod spans;
pub(super) mod speedscope;
pub(super) mod stackprof;
mod tape;
mod timeline;
pub(super) mod trace_event;
pub(super) mod v8_log;
mod value;
mod weights;

use self::tape::{Fault, Tape};
use self::value::Value;
use crate::Error;
use crate::bytes::strip_bom;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::whole;

/// So much of a document's beginning tells its format.
const TELLING: usize = 256 * 1024;

/// Whether the JSON that an input begins with passes a test. It may be cut.
fn begins(head: &[u8], test: impl FnOnce(Value<'_>) -> bool) -> bool {
    let head = strip_bom(head).trim_ascii_start();
    if !matches!(head.first(), Some(b'{' | b'[')) {
        return false;
    }
    Tape::read(&head[..head.len().min(TELLING)]).is_ok_and(|tape| tape.root().is_some_and(test))
}

/// Reads the whole document and hands it over.
fn read(
    document: &mut Document<'_>,
    sink: &mut Sink,
    fold: fn(Value<'_>, &mut Document<'_>, &mut Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    let text = whole::read(document)?;
    let tape = parse(&text, document)?;
    if tape.cut {
        return Err(document.unreadable("JSON that is cut short"));
    }
    tape.root().map_or(Ok(()), |root| fold(root, document, sink))
}

/// A document, which may be cut short.
fn parse<'a>(text: &'a [u8], document: &Document<'_>) -> Result<Tape<'a>, Error> {
    let tape = Tape::read(text).map_err(|fault| no_json(text, fault, document))?;
    let behind = text[tape.end..].iter().position(|byte| !byte.is_ascii_whitespace());
    let what = "the document ends before the file does";
    match behind {
        None => Ok(tape),
        Some(behind) => Err(no_json(text, Fault { at: tape.end + behind, what }, document)),
    }
}

fn no_json(text: &[u8], Fault { at, what }: Fault, document: &Document<'_>) -> Error {
    let line = memchr::memchr_iter(b'\n', &text[..at]).count() + 1;
    let column = at - memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1) + 1;
    document.unreadable(format!("no JSON at line {line}, column {column}: {what}"))
}
