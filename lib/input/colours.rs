//! Drops the escape sequences with which programs colour text, as `script` and logs of CI keep them.

use std::io::{self, Read};

use anstream::adapter::StripBytes;

use super::read::READ_SIZE;

/// Returns true if a text has a sequence that sets a colour, or that erases the rest of a line, as grep writes it: `ESC [ 31 m`,
/// `ESC [ K`. Binary data may have one by chance.
pub(super) fn has_colours(text: &[u8]) -> bool {
    let mut starts = memchr::memmem::find_iter(text, b"\x1b[").map(|start| &text[start + 2..]);
    starts.any(|rest| {
        rest.iter().find(|byte| !byte.is_ascii_digit() && **byte != b';').is_some_and(|end| matches!(end, b'm' | b'K'))
    }) && memchr::memchr(0, text).is_none()
}

/// A reader that drops escape sequences.
pub(super) struct Uncoloured {
    raw: Box<dyn Read + Send>,
    strip: StripBytes,
    text: Vec<u8>,
    consumed: usize,
}

impl Uncoloured {
    /// Returns the beginning of a text, and a reader of its rest, without escape sequences.
    pub(super) fn new(start: &[u8], raw: Box<dyn Read + Send>) -> (Vec<u8>, Self) {
        let mut strip = StripBytes::new();
        let text = strip.strip_next(start).collect::<Vec<_>>().concat();
        (text, Self { raw, strip, text: Vec::new(), consumed: 0 })
    }
}

impl Read for Uncoloured {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.consumed == self.text.len() {
            let mut bytes = vec![0; READ_SIZE];
            let read = self.raw.read(&mut bytes)?;
            if read == 0 {
                return Ok(0);
            }
            self.text = self.strip.strip_next(&bytes[..read]).collect::<Vec<_>>().concat();
            self.consumed = 0;
        }
        let read = (&self.text[self.consumed..]).read(buffer)?;
        self.consumed += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};

    use super::{Uncoloured, has_colours};

    #[test]
    fn drops_sequences_at_any_place() {
        let text = "a;\u{1b}[1;31mf\u{1b}[0m 1\n".repeat(3);
        assert!(
            has_colours(text.as_bytes())
                && has_colours(b"a\x1b[K 1")
                && !has_colours(b"a\x1b[x")
                && !has_colours(b"a\x1b[31m\0")
        );
        for place in 0..text.len() {
            let (start, end) = text.as_bytes().split_at(place);
            let (mut whole, mut rest) = Uncoloured::new(start, Box::new(Cursor::new(end.to_vec())));
            rest.read_to_end(&mut whole).unwrap();
            assert_eq!(String::from_utf8(whole).unwrap(), "a;f 1\n".repeat(3), "{place}");
        }
    }
}
