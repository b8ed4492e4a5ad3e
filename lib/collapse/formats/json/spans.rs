//! Spans (`--span`): a JSON object per line, such as
//! `{"name": "GET /", "trace_id": "7f", "tid": 12, "start": 1000, "end": 2000}`. Times are in nanoseconds on the clock
//! of the samples, as numbers or strings. All other members are ignored.

use std::path::Path;

use bstr::ByteSlice as _;

use super::tape::Tape;
use super::value::Value;
use crate::Error;
use crate::collapse::spans::{Span, Spans};
use crate::diagnostics::Diagnostics;
use crate::input::{Source, last_line_end};

impl Spans {
    /// Reads spans from a file.
    ///
    /// # Errors
    /// [`Error::Read`], and with strict diagnostics the first malformed line.
    pub fn load(path: &Path, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let mut input = Source::File(path.to_owned()).open()?;
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
        Ok(Self::new(name, spans))
    }
}

fn parse_span(line: &[u8]) -> Option<Span> {
    let tape = Tape::parse(line).ok().filter(|tape| !tape.is_truncated && tape.end == line.len())?;
    let object = Value::root(&tape)?;
    let (start, end) = (parse_number(object.get(b"start")?)?, parse_number(object.get(b"end")?)?);
    let tid = parse_number(object.get(b"tid")?)?.try_into().ok()?;
    let name = object.get(b"name")?.as_string()?.into_owned();
    (start <= end && !name.is_empty()).then_some(Span { name, tid, start, end })
}

/// Parses a number exactly: times need all 64 bits.
fn parse_number(value: Value<'_>) -> Option<u64> {
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
