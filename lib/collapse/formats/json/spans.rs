//! Files of spans (`--span`), of one of two kinds:
//!
//! - a JSON object per line, such as `{"name": "GET /", "trace_id": "7f", "tid": 12, "start": 1000, "end": 2000}`. Times are
//!   in nanoseconds on the clock of the samples, as numbers or strings. All other members are ignored;
//! - OpenTelemetry traces (OTLP): see [`span_documents`](super::span_documents).

use std::io::Read as _;
use std::path::Path;

use bstr::ByteSlice as _;

use super::span_documents::{TraceFile, is_protobuf, is_trace_document};
use super::tape::Tape;
use super::value::Value;
use crate::Error;
use crate::collapse::document_helpers::MAX_LENGTH;
use crate::collapse::spans::{Span, SpanClock, Spans};
use crate::diagnostics::Diagnostics;
use crate::input::{Blocks, Source, last_line_end};

impl Spans {
    /// Reads spans from a file.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Unreadable`] for damaged traces, and with strict diagnostics the first malformed line.
    pub fn load(path: &Path, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let mut input = Source::File(path.to_owned()).open()?;
        let name = input.name().to_owned();
        let head = input.head()?;
        let mut traces = TraceFile::new(name.clone());
        if is_protobuf(head) {
            traces.add_protobuf(&read_whole(&mut input)?)?;
        } else if is_trace_document(head) {
            traces.add_documents(&read_whole(&mut input)?)?;
        } else {
            return Ok(Self::new(name, SpanClock::Samples, read_lines(&mut input, diagnostics)?));
        }
        Ok(Self::new(name, SpanClock::Unix, traces.into_spans(diagnostics)))
    }
}

/// Reads a file of at most 1 GiB.
fn read_whole(input: &mut Blocks) -> Result<Vec<u8>, Error> {
    let (name, mut bytes) = (input.name().to_owned(), Vec::new());
    if let Err(error) = input.by_ref().take(MAX_LENGTH as u64 + 1).read_to_end(&mut bytes) {
        return Err(Error::read(name, error));
    }
    if bytes.len() > MAX_LENGTH {
        let what = "longer than 1 GiB, the maximum for OpenTelemetry traces".to_owned();
        return Err(Error::Unreadable { name, what });
    }
    Ok(bytes)
}

/// Reads an object per line.
fn read_lines(input: &mut Blocks, diagnostics: &mut Diagnostics) -> Result<Vec<Span>, Error> {
    let (name, mut number, mut spans) = (input.name().to_owned(), 0, Vec::new());
    while let Some(block) = input.next_block(last_line_end)? {
        for line in block.lines() {
            number += 1;
            match parse_span(line.trim_ascii()) {
                Some(span) => spans.push(span),
                None if line.trim_ascii().is_empty() => {}
                None => diagnostics.malformed(&name, number, "expected an object with name, tid, start and end")?,
            }
        }
    }
    Ok(spans)
}

fn parse_span(line: &[u8]) -> Option<Span> {
    let tape = Tape::parse(line).ok().filter(|tape| !tape.is_truncated && tape.end == line.len())?;
    let object = Value::root(&tape)?;
    let (start, end) = (parse_number(object.get(b"start")?)?, parse_number(object.get(b"end")?)?);
    let tid = parse_number(object.get(b"tid")?)?.try_into().ok()?;
    let name = object.get(b"name")?.as_string()?.into_owned();
    (start <= end && !name.is_empty()).then_some(Span { name, tid, pid: None, start, end })
}

/// Parses a number exactly: times need all 64 bits.
pub(super) fn parse_number(value: Value<'_>) -> Option<u64> {
    std::str::from_utf8(&value.as_label()?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse_span;

    #[test]
    fn parses_objects_with_integers() {
        let read = parse_span(
            br#"{"name":"a\"b","trace_id":"7","tid":3,"start":"1700000000000000001","end":1700000000000000002}"#,
        );
        let read = read.unwrap();
        assert_eq!((&read.name[..], read.tid), (&b"a\"b"[..], 3));
        assert_eq!((read.start, read.end), (1_700_000_000_000_000_001, 1_700_000_000_000_000_002));
        for bad in [
            &br#"{"name":"a","tid":3,"start":2,"end":1}"#[..],
            br#"{"name":"","tid":3,"start":1,"end":2}"#,
            br#"{"name":"a","tid":3,"start":1.5,"end":2}"#,
            br#"{"name":"a","tid":-3,"start":1,"end":2}"#,
            br#"{"name":7,"tid":3,"start":1,"end":2}"#,
            br#"{"name":"a","tid":3,"start":1,"end":2"#,
            br#"{"name":"a","tid":3,"start":1,"end":2} x"#,
            br#"{"tid":3,"start":1,"end":2}"#,
            b"[]",
            b"",
        ] {
            assert!(parse_span(bad).is_none(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
