//! Decodes UTF-16, which Windows programs write, to UTF-8. It is recognized by its byte order mark, or by the zeros in
//! its first characters. The byte order mark of UTF-8 is dropped, so that no reader meets it.

use std::io::{self, Cursor, Read};

use super::read::{READ_SIZE, read_some};
use crate::bytes::BOM;

type Reader = Box<dyn Read + Send>;

/// Number of first bytes by which UTF-16 without a byte order mark is recognized.
pub(super) const START_LENGTH: usize = 64;

/// True if a text may be UTF-16 by its first [`START_LENGTH`] bytes.
pub(super) fn may_be_utf16(start: &[u8]) -> bool {
    has_bom(start) || is_ascii_in_units(start, 0) || is_ascii_in_units(start, 1)
}

fn has_bom(start: &[u8]) -> bool {
    start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff])
}

/// Number of first bytes in which UTF-16 with a byte order mark has an ASCII character.
const MARKED_LENGTH: usize = 4096;

/// Decodes `raw` to UTF-8 if it starts like UTF-16; otherwise returns it without a byte order mark of UTF-8.
///
/// A name may start with the bytes of the mark by chance, so an ASCII character must follow.
pub(super) fn decode(mut raw: Reader) -> io::Result<Reader> {
    let (mut start, mut failure) = read_start(&mut *raw, START_LENGTH);
    if has_bom(&start) && failure.is_none() {
        let (rest, error) = read_start(&mut *raw, MARKED_LENGTH);
        start.extend(rest);
        failure = error;
    }
    let to_unit: fn([u8; 2]) -> u16 = match &start[..] {
        [0xff, 0xfe, rest @ ..] if has_ascii(rest, u16::from_le_bytes) => u16::from_le_bytes,
        [0xfe, 0xff, rest @ ..] if has_ascii(rest, u16::from_be_bytes) => u16::from_be_bytes,
        text if is_ascii_in_units(text, 0) => u16::from_le_bytes,
        text if is_ascii_in_units(text, 1) => u16::from_be_bytes,
        _ => {
            let mark = if start.starts_with(BOM) { BOM.len() } else { 0 };
            return Ok(Box::new(Cursor::new(start.split_off(mark)).chain(Failure(failure)).chain(raw)));
        }
    };
    let bom = if has_bom(&start) { 2 } else { 0 };
    let raw = Box::new(Cursor::new(start.split_off(bom)).chain(Failure(failure)).chain(raw));
    Ok(Box::new(Utf16 { raw, to_unit, undecoded: Vec::new(), text: Vec::new(), consumed: 0 }))
}

/// True if a text is empty or has an ASCII character.
fn has_ascii(text: &[u8], to_unit: fn([u8; 2]) -> u16) -> bool {
    text.is_empty() || text.as_chunks().0.iter().any(|pair: &[u8; 2]| (1..0x80).contains(&to_unit(*pair)))
}

/// Reads up to `length` bytes. Also returns the error that ended them.
fn read_start(raw: &mut dyn Read, length: usize) -> (Vec<u8>, Option<io::Error>) {
    let (mut start, mut filled, mut failure) = (vec![0; length], 0, None);
    while filled < length {
        match read_some(raw, &mut start[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    start.truncate(filled);
    (start, failure)
}

/// A reader that returns an error once.
struct Failure(Option<io::Error>);

impl Read for Failure {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// True for the bytes of ordinary ASCII text.
fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || b" \t\r\n".contains(&byte)
}

/// Returns true if a text has at least four characters, and of each pair of bytes the one at `ascii` is one of ordinary
/// text and the other one is zero.
fn is_ascii_in_units(text: &[u8], ascii: usize) -> bool {
    text.len() >= 8 && text.chunks_exact(2).all(|pair| is_text(pair[ascii]) && pair[1 - ascii] == 0)
}

/// A reader that decodes UTF-16 to UTF-8.
struct Utf16 {
    raw: Reader,
    to_unit: fn([u8; 2]) -> u16,
    /// Bytes at the end of the last read that are no whole character.
    undecoded: Vec<u8>,
    text: Vec<u8>,
    /// Number of bytes of `text` that were read.
    consumed: usize,
}

impl Utf16 {
    /// Reads and decodes once; `false` at the end. Invalid UTF-16 becomes U+FFFD.
    fn fill(&mut self) -> io::Result<bool> {
        let kept = self.undecoded.len();
        self.undecoded.resize(kept + READ_SIZE, 0);
        let read = read_some(&mut *self.raw, &mut self.undecoded[kept..])?;
        self.undecoded.truncate(kept + read);
        let mut units: Vec<u16> =
            self.undecoded.chunks_exact(2).map(|pair| (self.to_unit)([pair[0], pair[1]])).collect();
        // A high surrogate is kept until its low surrogate is read.
        let is_split = read > 0 && units.last().is_some_and(|last| (0xd800..0xdc00).contains(last));
        units.truncate(units.len() - usize::from(is_split));
        let rest = self.undecoded.split_off(units.len() * 2);
        (self.text, self.consumed) = (String::from_utf16_lossy(&units).into_bytes(), 0);
        self.undecoded = rest;
        if read == 0 && !self.undecoded.is_empty() {
            self.text.extend_from_slice("\u{fffd}".as_bytes());
            self.undecoded.clear();
        }
        Ok(read > 0)
    }
}

impl Read for Utf16 {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // One read may return less than a character.
        while self.consumed == self.text.len() && self.fill()? {}
        let read = (&self.text[self.consumed..]).read(buffer)?;
        self.consumed += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};

    fn decoded(bytes: Vec<u8>) -> String {
        let mut text = String::new();
        let (first, second) = bytes.split_at(bytes.len().min((bytes.len() / 2) | 1));
        let halves = Cursor::new(first.to_vec()).chain(Cursor::new(second.to_vec()));
        super::decode(Box::new(halves)).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn decodes_both_byte_orders_and_split_surrogates() {
        let text = format!("{}\u{1f525}end 1\n", "x".repeat(super::READ_SIZE / 2 - 1));
        let units: Vec<u16> = text.encode_utf16().collect();
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes = [0xfeff].iter().chain(&units).flat_map(|unit| to_bytes(*unit));
            assert_eq!(decoded(bytes.collect()), text);
        }
        assert_eq!(decoded(b"\xff\xfea\0\0\xd8b\0c".to_vec()), "a\u{fffd}b\u{fffd}");
        let text = "main;work 12\nmain 3\n";
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            assert_eq!(decoded(text.encode_utf16().flat_map(to_bytes).collect()), text);
        }
        assert_eq!(decoded(b"a\0b\0".to_vec()), "a\0b\0");
        let mut name = Vec::new();
        super::decode(Box::new(Cursor::new(b"\xff\xfename;a 1\n"))).unwrap().read_to_end(&mut name).unwrap();
        assert_eq!(name, b"\xff\xfename;a 1\n", "a name that starts with the mark");
        assert_eq!((decoded(b"f".to_vec()), decoded(vec![])), ("f".to_owned(), String::new()));
    }
}
