//! Spans, a JSON object a line: `{"name": "GET /", "trace_id": "7f", "tid": 12, "start": 1000, "end": 2000}`, with times
//! in nanoseconds on the clock of the samples, as numbers or texts. What else an object has is not read.

use std::path::Path;

use bstr::ByteSlice as _;

use super::tape::Tape;
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
                match span(line.trim_ascii()) {
                    Some(span) => spans.push(span),
                    None if line.trim_ascii().is_empty() => {}
                    None => diagnostics.malformed(&name, number, "expected an object with name, tid, start and end")?,
                }
            }
        }
        Ok(Self::new(name, spans))
    }
}

fn span(line: &[u8]) -> Option<Span> {
    let tape = Tape::read(line).ok().filter(|tape| !tape.cut && tape.end == line.len())?;
    let object = tape.root()?;
    let number = |name: &[u8]| std::str::from_utf8(&object.get(name)?.label()?).ok()?.parse::<u64>().ok();
    let (start, end) = (number(b"start")?, number(b"end")?);
    let tid = number(b"tid")?.try_into().ok()?;
    let name = object.get(b"name")?.text()?.into_owned();
    (start <= end && !name.is_empty()).then_some(Span { name, tid, start, end })
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_line_is_an_object_with_whole_numbers() {
        let read =
            span(br#"{"name":"a\"b","trace_id":"7","tid":3,"start":"1700000000000000001","end":1700000000000000002}"#);
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
            assert!(span(bad).is_none(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
