//! Reads XML as a stream, with bounded memory. Entity definitions are ignored, so no entity can expand.

use std::borrow::Cow;
use std::io::{self, BufReader, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::Error;

/// Maximum size of a tag or text, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 20;

/// The reason why a document could not be read.
pub(super) enum ParseError {
    /// The input is not well-formed.
    Xml(String),
    /// The function that handles events failed.
    Handler(Error),
}

/// Returns true if a text begins with a tag, a declaration or a comment. `<0.90.0>;f` is a process of Erlang.
pub(super) fn begins(text: &[u8]) -> bool {
    let tag = text.trim_ascii_start().strip_prefix(b"<").and_then(|tag| tag.first());
    tag.is_some_and(|first| first.is_ascii_alphabetic() || b"?!".contains(first))
}

/// Calls `handle` with each event of the document. Fails at a tag or text of more than [`MAX_TOKEN_BYTES`], since the
/// parser would read all of it into memory.
pub(super) fn parse(
    input: impl Read,
    mut handle: impl FnMut(Event<'_>) -> Result<(), Error>,
) -> Result<(), ParseError> {
    let mut reader = Reader::from_reader(BufReader::new(LimitedReader { input, remaining: MAX_TOKEN_BYTES }));
    reader.config_mut().check_end_names = false;
    let (mut buffer, mut place) = (Vec::new(), Place::default());
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let event = event
            .map_err(|error| ParseError::Xml(format!("malformed XML at byte {}: {error}", reader.error_position())))?;
        if matches!(event, Event::Eof) {
            return Ok(());
        }
        if !place.add(&event) {
            let what = format!(
                "another document follows its end at byte {}: give each file by itself",
                reader.buffer_position()
            );
            return Err(ParseError::Xml(what));
        }
        handle(event).map_err(ParseError::Handler)?;
        reader.get_mut().get_mut().remaining = MAX_TOKEN_BYTES;
    }
}

/// The place in a document: inside or after its outermost tag.
#[derive(Default)]
struct Place {
    depth: usize,
    has_ended: bool,
}

impl Place {
    /// Moves on by an event. Returns false for a tag or text after the end of the document.
    fn add(&mut self, event: &Event<'_>) -> bool {
        let is_content = match event {
            Event::Start(_) | Event::Empty(_) | Event::Decl(_) | Event::CData(_) => true,
            Event::Text(text) => !text.trim_ascii().is_empty(),
            _ => false,
        };
        if self.has_ended && is_content {
            return false;
        }
        match event {
            Event::Start(_) => self.depth += 1,
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                self.has_ended = self.depth == 0;
            }
            _ => {}
        }
        true
    }
}

/// A reader that fails after `remaining` bytes.
struct LimitedReader<R> {
    input: R,
    remaining: usize,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.remaining == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a single tag or text is longer than 16 MiB"));
        }
        let length = buffer.len().min(self.remaining);
        let read = self.input.read(&mut buffer[..length])?;
        self.remaining -= read;
        Ok(read)
    }
}

/// Returns the value of an attribute, with XML's predefined entities and character references replaced.
pub(super) fn find_attribute<'a>(tag: &'a BytesStart<'_>, name: &str) -> Option<Cow<'a, str>> {
    let attribute = tag.attributes().with_checks(false).flatten().find(|attribute| attribute.key.as_ref() == name)?;
    match attribute.value.contains('&') {
        false => Some(attribute.value),
        true => Some(unescape(&attribute.value).into()),
    }
}

fn unescape(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, entity)) = rest.split_once('&') {
        plain.push_str(before);
        // The longest references are like `&#x10ffff;`.
        let end = entity.bytes().take(10).position(|byte| byte == b';');
        match end.and_then(|end| Some((parse_entity(&entity[..end])?, &entity[end + 1..]))) {
            Some((character, after)) => {
                plain.push(character);
                rest = after;
            }
            None => {
                plain.push('&');
                rest = entity;
            }
        }
    }
    plain + rest
}

/// Returns the character of a predefined entity (`lt`) or a character reference (`#60`, `#x3c`).
pub(super) fn parse_entity(entity: &str) -> Option<char> {
    match entity {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}
