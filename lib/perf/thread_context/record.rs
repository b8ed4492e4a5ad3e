//! The record of a thread's context (OTEP 4947): the span that the thread works on, and attributes of it.

use crate::perf::event::Fields;

/// The context of a thread at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadContext<'a> {
    trace: &'a [u8],
    span: &'a [u8],
    attributes: &'a [u8],
}

impl<'a> ThreadContext<'a> {
    /// Parses a record that is valid. `None` if it is too short.
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(record);
        let (trace, span) = (fields.take(16)?, fields.take(8)?);
        let (_valid_and_flags, size) = (fields.u16()?, fields.u16()?);
        // What does not fit is not sent.
        let sent = fields.len().min(size.into());
        Some(Self { trace, span, attributes: fields.take(sent)? })
    }

    /// Returns the hexadecimal ID of the trace, if a span is active.
    pub fn trace(&self) -> Option<Vec<u8>> {
        hexadecimal(self.trace)
    }

    /// Returns the hexadecimal ID of the active span.
    pub fn span(&self) -> Option<Vec<u8>> {
        hexadecimal(self.span)
    }

    /// Iterates over the attributes: the index of each one's name, and its value. The last one of a name counts.
    pub fn attributes(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut rest = self.attributes;
        std::iter::from_fn(move || {
            let (&[key, length], behind) = rest.split_first_chunk()?;
            let (value, next) = behind.split_at_checked(length.into())?;
            rest = next;
            Some((key, value))
        })
    }
}

/// Returns an ID in hexadecimal digits. An ID of zeroes is none.
fn hexadecimal(id: &[u8]) -> Option<Vec<u8>> {
    let is_id = id.iter().any(|byte| *byte != 0);
    is_id.then(|| id.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use super::ThreadContext;

    fn record(size: u16, attributes: &[u8]) -> Vec<u8> {
        let mut record = [[0xab; 16].as_slice(), &[0x01; 8], &[1, 0], &size.to_le_bytes()].concat();
        record.extend_from_slice(attributes);
        record
    }

    #[test]
    fn parses_ids_and_attributes() {
        let record = record(9, b"\x00\x02/a\x07\x03GETx");
        let context = ThreadContext::parse(&record).unwrap();
        assert_eq!(context.trace().unwrap(), "ab".repeat(16).into_bytes());
        assert_eq!(context.span().unwrap(), b"0101010101010101");
        assert_eq!(context.attributes().collect::<Vec<_>>(), [(0, &b"/a"[..]), (7, b"GET")]);
    }

    #[test]
    fn an_attribute_that_is_cut_ends_the_record() {
        for (size, attributes) in [(4, &b"\x00\x02/a"[..]), (9, b"\x00\x02/a\x07\x09GET"), (200, b"\x00\x02/a\x01")] {
            let record = record(size, attributes);
            let context = ThreadContext::parse(&record).unwrap();
            assert_eq!(context.attributes().collect::<Vec<_>>(), [(0, &b"/a"[..])]);
        }
        assert_eq!(ThreadContext::parse(&[1; 27]), None);
    }

    #[test]
    fn zeroes_are_no_span() {
        let record = [[0; 24].as_slice(), &[1, 0, 3, 0, 5, 1, b'x']].concat();
        let context = ThreadContext::parse(&record).unwrap();
        assert_eq!((context.trace(), context.span()), (None, None));
        assert_eq!(context.attributes().next(), Some((5, &b"x"[..])));
    }
}
