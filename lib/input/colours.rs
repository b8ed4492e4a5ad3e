//! Drops the escape sequences of terminals from text: colours as `grep --color` and `perf report --stdio` write them, and what else
//! `script` and logs of CI keep. They may begin anywhere, and reach across reads.

use std::io::{self, Read};

/// The byte with which escape sequences begin.
const ESCAPE: u8 = 0x1b;

/// The longest sequence: a longer one is no sequence, and its bytes are text. Links contain an address.
const LONGEST: usize = 4096;

/// The text at an escape byte.
enum Sequence {
    /// A sequence of this length.
    Whole(usize),
    /// The beginning of a sequence.
    Cut,
    /// No sequence.
    None,
}

/// Returns the sequence at the beginning of a text that begins with an escape byte (ECMA-48): a control sequence (`ESC [ 31 m`), a
/// string such as a title or a link (`ESC ] … BEL`, `ESC ] … ESC \\`), or the choice of a character set (`ESC ( B`).
fn find_sequence(text: &[u8]) -> Sequence {
    let text = &text[..text.len().min(LONGEST)];
    let is_cut = |is_cut: bool| if is_cut && text.len() < LONGEST { Sequence::Cut } else { Sequence::None };
    match text.get(1) {
        None => is_cut(true),
        Some(b'[') => {
            let parameters = text[2..].iter().position(|byte| !matches!(byte, b' '..=b'?'));
            match parameters.map(|end| (end, text[2 + end])) {
                Some((end, b'@'..=b'~')) => Sequence::Whole(2 + end + 1),
                Some(_) => Sequence::None,
                None => is_cut(true),
            }
        }
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            match text[2..].iter().position(|byte| matches!(*byte, 0x07 | ESCAPE | b'\n')).map(|end| 2 + end) {
                Some(end) if text[end] == 0x07 => Sequence::Whole(end + 1),
                Some(end) if text[end..].starts_with(b"\x1b\\") => Sequence::Whole(end + 2),
                Some(end) => is_cut(text[end] == ESCAPE && end + 1 == text.len()),
                None => is_cut(true),
            }
        }
        Some(b'(' | b')' | b'*' | b'+') => {
            if text.len() > 2 {
                Sequence::Whole(3)
            } else {
                is_cut(true)
            }
        }
        Some(_) => Sequence::None,
    }
}

/// Returns true if a text has an escape sequence. Binary data may have one by chance.
pub(super) fn has_colours(text: &[u8]) -> bool {
    let mut starts = memchr::memchr_iter(ESCAPE, text);
    starts.any(|start| matches!(find_sequence(&text[start..]), Sequence::Whole(_))) && !is_binary(text)
}

/// True for the beginning of data that is no text.
pub(super) fn is_binary(start: &[u8]) -> bool {
    memchr::memchr(0, start).is_some()
}

/// Appends a text without its escape sequences; returns the number of bytes before a sequence that is cut short at its end.
fn strip(text: &[u8], out: &mut Vec<u8>) -> usize {
    let mut start = 0;
    while let Some(escape) = memchr::memchr(ESCAPE, &text[start..]).map(|escape| start + escape) {
        out.extend_from_slice(&text[start..escape]);
        match find_sequence(&text[escape..]) {
            Sequence::Whole(length) => start = escape + length,
            Sequence::Cut => return escape,
            Sequence::None => {
                out.push(ESCAPE);
                start = escape + 1;
            }
        }
    }
    out.extend_from_slice(&text[start..]);
    text.len()
}

/// A reader that drops escape sequences.
pub(super) struct Uncoloured {
    raw: Box<dyn Read + Send>,
    /// The beginning of a sequence at the end of what was read.
    cut: Vec<u8>,
    /// Text without sequences, of which the first bytes are consumed.
    text: Vec<u8>,
    consumed: usize,
}

impl Uncoloured {
    /// Creates a reader of a text.
    pub(super) fn new(raw: Box<dyn Read + Send>) -> Self {
        Self { raw, cut: Vec::new(), text: Vec::new(), consumed: 0 }
    }

    /// Returns a whole text without escape sequences.
    pub(super) fn strip_whole(text: &[u8]) -> Vec<u8> {
        let mut stripped = Vec::with_capacity(text.len());
        let whole = strip(text, &mut stripped);
        stripped.extend_from_slice(&text[whole..]);
        stripped
    }

    /// Returns the beginning of a text, and a reader of its rest, without escape sequences.
    pub(super) fn after(start: &[u8], raw: Box<dyn Read + Send>) -> (Vec<u8>, Self) {
        let mut text = Vec::with_capacity(start.len());
        let whole = strip(start, &mut text);
        (text, Self { cut: start[whole..].to_vec(), ..Self::new(raw) })
    }
}

impl Read for Uncoloured {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.consumed == self.text.len() {
            let read = self.raw.read(buffer)?;
            // Nearly all text has no sequences, and is not copied.
            if self.cut.is_empty() && memchr::memchr(ESCAPE, &buffer[..read]).is_none() {
                return Ok(read);
            }
            self.cut.extend_from_slice(&buffer[..read]);
            let text = std::mem::take(&mut self.cut);
            self.text.clear();
            self.consumed = 0;
            match read {
                0 => self.text = text,
                _ => {
                    let whole = strip(&text, &mut self.text);
                    self.cut = text[whole..].to_vec();
                }
            }
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

    /// Returns a text without sequences, read in pieces of this size.
    fn read(text: &[u8], size: usize) -> String {
        let mut reader = Uncoloured::new(Box::new(Cursor::new(text.to_vec())));
        let (mut whole, mut piece) = (Vec::new(), vec![0; size]);
        while let read @ 1.. = reader.read(&mut piece).unwrap() {
            whole.extend_from_slice(&piece[..read]);
        }
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn drops_sequences_at_any_place() {
        let text = "a;\u{1b}[1;31mf\u{1b}[0m 1\n".repeat(3);
        assert!(has_colours(text.as_bytes()) && has_colours(b"a\x1b[K 1"));
        assert!(!has_colours(b"a\x1b[\n") && !has_colours(b"a\x1b[31m\0"));
        for place in 0..text.len() {
            let (start, end) = text.as_bytes().split_at(place);
            let (mut whole, mut rest) = Uncoloured::after(start, Box::new(Cursor::new(end.to_vec())));
            rest.read_to_end(&mut whole).unwrap();
            assert_eq!(String::from_utf8(whole).unwrap(), "a;f 1\n".repeat(3), "{place}");
        }
    }

    #[test]
    fn drops_all_kinds_of_sequences_whatever_is_read_at_once() {
        for (text, expected) in [
            ("a\u{1b}[38;5;208mb\u{1b}[38:2::255:0:0mc\u{1b}[?25ld\u{1b}[mf\u{1b}[2J", "abcdf"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;https://host/x\u{1b}\\b\u{1b}]8;;\u{1b}\\c", "abc"),
            ("\u{1b}(Ba\u{1b}P1$r0m\u{1b}\\b", "ab"),
            // What is no sequence is text.
            ("a\u{1b}b\u{1b}[\nc\u{1b}]open\nd\u{1b}", "a\u{1b}b\u{1b}[\nc\u{1b}]open\nd\u{1b}"),
            ("a\u{1b}[1;3", "a\u{1b}[1;3"),
        ] {
            for size in [1, 2, 3, 5, 100] {
                assert_eq!(read(text.as_bytes(), size), expected, "{size}");
            }
        }
        let long = format!("\u{1b}]{}", "x".repeat(100_000));
        assert_eq!(read(long.as_bytes(), 1000), long);
    }
}
