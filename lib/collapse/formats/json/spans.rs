//! Files of spans (`--span`), of one of two kinds:
//!
//! - a JSON object per line, such as `{"name": "GET /", "trace_id": "7f", "tid": 12, "start": 1000, "end": 2000}`. Times are
//!   in nanoseconds on the clock of the samples, as numbers or strings. All other members are ignored;
//! - OpenTelemetry traces (OTLP): see [`span_documents`](super::span_documents).

use std::io::Read as _;

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
    /// Reads spans from a file or standard input.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Unreadable`] for damaged traces, and with strict diagnostics the first malformed line.
    pub fn load(source: &Source, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let mut input = source.open()?;
        let name = input.name().to_owned();
        let head = input.head()?;
        let mut traces = TraceFile::new(name.clone());
        if is_protobuf(head) {
            traces.add_protobuf(&read_whole(&mut input)?)?;
        } else if is_trace_document(head) {
            traces.add_documents(&read_whole(&mut input)?)?;
        } else {
            let skipped = diagnostics.skipped_lines();
            let spans = read_lines(&mut input, diagnostics)?;
            let is_partial = diagnostics.skipped_lines() > skipped;
            return Ok(Self::new(name, SpanClock::Samples, spans, is_partial));
        }
        let is_partial = traces.has_left_out();
        Ok(Self::new(name, SpanClock::Unix, traces.into_spans(diagnostics), is_partial))
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
                Ok(span) => spans.push(span),
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(what) => diagnostics.malformed(&name, number, &what)?,
            }
        }
    }
    Ok(spans)
}

/// The members of a span that must be there.
const MEMBERS: [&[u8]; 4] = [b"name", b"tid", b"start", b"end"];

fn parse_time(value: Option<Value<'_>>, name: &str) -> Result<u64, String> {
    value.and_then(parse_number).ok_or_else(|| format!("{name} is not a whole number of nanoseconds"))
}

/// Parses a line.
///
/// # Errors
/// The reason why it is no span.
fn parse_span(line: &[u8]) -> Result<Span, String> {
    const EXPECTED: &str = "expected an object with name, tid, start and end";
    let tape = Tape::parse(line).map_err(|error| format!("{EXPECTED}: malformed JSON: {}", error.message))?;
    let Some(object) = Value::root(&tape).filter(|_| line.first() == Some(&b'{')) else {
        return Err(EXPECTED.to_owned());
    };
    if tape.is_truncated {
        return Err(format!("{EXPECTED}: the line is cut short"));
    }
    if tape.end != line.len() {
        return Err(format!("{EXPECTED}: more follows the object"));
    }
    let [name, tid, start, end] = MEMBERS.map(|key| object.get(key));
    if let Some(missing) = MEMBERS.iter().zip([name, tid, start, end]).find(|(_, value)| value.is_none()) {
        return Err(format!("{EXPECTED}: {} is missing", missing.0.as_bstr()));
    }
    let (start, end) = (parse_time(start, "start")?, parse_time(end, "end")?);
    let name = name.and_then(|name| name.as_string()).unwrap_or_default().into_owned();
    match tid.and_then(parse_number).map(u32::try_from) {
        None => Err("tid is not a whole number".to_owned()),
        Some(Err(_)) => Err("tid is not the thread id that gettid returns, which has at most 32 bits".to_owned()),
        Some(Ok(_)) if name.is_empty() => Err("name is not a text, or is empty".to_owned()),
        Some(Ok(_)) if start > end => Err("end is before start".to_owned()),
        Some(Ok(tid)) => Ok(Span { name, tid, pid: None, start, end }),
    }
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
            assert!(parse_span(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn says_why_a_line_is_no_span() {
        for (line, reason) in [
            (&b"a log line"[..], "expected an object with name, tid, start and end"),
            (br#"{"name":}"#, "expected an object with name, tid, start and end: malformed JSON: "),
            (b"[]", "expected an object with name, tid, start and end"),
            (br#"{"name":"a","tid":3"#, "expected an object with name, tid, start and end: the line is cut short"),
            (br#"{"name":"a","tid":3} {"#, "expected an object with name, tid, start and end: more follows the object"),
            (br#"{"name":"a","tid":3,"start":1}"#, "expected an object with name, tid, start and end: end is missing"),
            (br#"{"name":"a","tid":3,"start":1.5,"end":2}"#, "start is not a whole number of nanoseconds"),
            (br#"{"name":"a","tid":"x","start":1,"end":2}"#, "tid is not a whole number"),
            (
                br#"{"name":"a","tid":140234567890176,"start":1,"end":2}"#,
                "tid is not the thread id that gettid returns",
            ),
            (br#"{"name":"","tid":3,"start":1,"end":2}"#, "name is not a text, or is empty"),
            (br#"{"name":"a","tid":3,"start":2,"end":1}"#, "end is before start"),
        ] {
            let error = parse_span(line).unwrap_err();
            assert!(error.starts_with(reason), "{}: {error}", String::from_utf8_lossy(line));
        }
    }
}
