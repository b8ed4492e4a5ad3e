//! UTF-16 text, as Windows programs write it: recognised by its byte-order mark, handed on as UTF-8.

use std::io::{self, Cursor, Read};

use super::blocks::{BLOCK, read_full, read_some};

type Reader = Box<dyn Read + Send>;

/// Whether a text begins with a byte-order mark of UTF-16.
pub(super) fn is_marked(start: &[u8]) -> bool {
    start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff])
}

/// The text as UTF-8 if it begins with a byte-order mark of UTF-16; else as it is.
pub(super) fn decode(mut raw: Reader) -> io::Result<Reader> {
    let mut mark = [0; 2];
    let read = read_full(&mut *raw, &mut mark)?;
    let unit: fn([u8; 2]) -> u16 = match mark {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return Ok(Box::new(Cursor::new(mark[..read].to_vec()).chain(raw))),
    };
    Ok(Box::new(Utf16 { raw, unit, bytes: Vec::new(), text: Vec::new(), taken: 0 }))
}

struct Utf16 {
    raw: Reader,
    unit: fn([u8; 2]) -> u16,
    /// What was read and not decoded yet.
    bytes: Vec<u8>,
    /// What was decoded, and how much of it was taken.
    text: Vec<u8>,
    taken: usize,
}

impl Utf16 {
    /// Decodes the next piece; what is no character becomes the one that says so. `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let kept = self.bytes.len();
        self.bytes.resize(kept + BLOCK, 0);
        let read = read_some(&mut *self.raw, &mut self.bytes[kept..])?;
        self.bytes.truncate(kept + read);
        let mut units: Vec<u16> = self.bytes.chunks_exact(2).map(|pair| (self.unit)([pair[0], pair[1]])).collect();
        // The first half of a pair waits for the second.
        let waits = read > 0 && units.last().is_some_and(|last| (0xd800..0xdc00).contains(last));
        units.truncate(units.len() - usize::from(waits));
        let rest = self.bytes.split_off(units.len() * 2);
        (self.text, self.taken) = (String::from_utf16_lossy(&units).into_bytes(), 0);
        self.bytes = rest;
        if read == 0 && !self.bytes.is_empty() {
            self.text.extend_from_slice("\u{fffd}".as_bytes());
            self.bytes.clear();
        }
        Ok(read > 0)
    }
}

impl Read for Utf16 {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A piece may hold no whole character.
        while self.taken == self.text.len() && self.fill()? {}
        let rest = &self.text[self.taken..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.taken += read;
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
    fn both_orders_and_pairs_across_pieces_are_read() {
        let text = format!("{}\u{1f525}end 1\n", "x".repeat(super::BLOCK / 2 - 1));
        let units: Vec<u16> = text.encode_utf16().collect();
        let bytes = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            [0xfeff].iter().chain(&units).flat_map(|unit| order(*unit)).collect()
        };
        assert_eq!(decoded(bytes(u16::to_le_bytes)), text);
        assert_eq!(decoded(bytes(u16::to_be_bytes)), text);
        assert_eq!(decoded(b"\xff\xfea\0\0\xd8b\0c".to_vec()), "a\u{fffd}b\u{fffd}");
        assert_eq!((decoded(b"f".to_vec()), decoded(vec![])), ("f".to_owned(), String::new()));
    }
}
