//! A JSON parser that produces a tape: one node of eight bytes per value, in the order of the text.
//!
//! The parser does not recurse, so documents may be nested to any depth, and its memory is bounded by the document's
//! length. Strings and numbers are parsed only when they are needed.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// Maximum number of values: a gigabyte of nodes.
const MAX_NODES: usize = 1 << 27;

/// A parsed document.
#[derive(Debug)]
pub(super) struct Tape<'a> {
    pub(super) text: &'a [u8],
    pub(super) nodes: Vec<Node>,
    /// True if the text ends before the document does.
    pub(super) is_truncated: bool,
    /// True if the text ends inside anything but the outermost array, which some tools never close.
    pub(super) is_truncated_in_value: bool,
    /// The offset of the document's end in the text.
    pub(super) end: usize,
    /// The numbers that were read as 0 because they are too small, by the offsets of their nodes.
    pub(super) too_small: RefCell<BTreeSet<u32>>,
}

/// A value of the tape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// The offset of the value in the text.
    pub(super) start: u32,
    /// The index of the node after the value and everything inside it.
    pub(super) next: u32,
}

/// An error in the syntax of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) offset: usize,
    pub(super) message: &'static str,
}

/// The tokens that may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
}

impl<'a> Tape<'a> {
    /// Parses the first value of a text of less than 4 GB. If the text ends before the value does, the tape contains
    /// the values up to there. A comma before the end of an array or object is accepted. Both occur in the output of
    /// tools that write for as long as they run.
    pub(super) fn parse(text: &'a [u8]) -> Result<Self, SyntaxError> {
        let mut parser = Parser { text, offset: 0, nodes: Vec::new(), open: Vec::new() };
        let expected = parser.run()?;
        let Parser { offset, mut nodes, open, .. } = parser;
        if !open.is_empty() && matches!(expected, Expected::Colon | Expected::Value) {
            // Remove a key without a value.
            nodes.pop();
        }
        let first_is_object = open.first().is_some_and(|open| text[nodes[*open as usize].start as usize] == b'{');
        let next = nodes.len() as u32;
        for container in &open {
            nodes[*container as usize].next = next;
        }
        let is_truncated_in_value = open.len() > 1 || first_is_object;
        let (is_truncated, too_small) = (!open.is_empty(), RefCell::default());
        Ok(Self { text, nodes, is_truncated, is_truncated_in_value, end: offset, too_small })
    }
}

struct Parser<'a> {
    text: &'a [u8],
    offset: usize,
    nodes: Vec<Node>,
    /// The arrays and objects that have not ended, the outermost first.
    open: Vec<u32>,
}

impl Parser<'_> {
    /// Parses until the document or the text ends. Returns the token that was expected next.
    fn run(&mut self) -> Result<Expected, SyntaxError> {
        let mut expected = Expected::Value;
        loop {
            let blanks =
                self.text[self.offset..].iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
            self.offset += blanks.count();
            let Some(byte) = self.text.get(self.offset) else { return Ok(expected) };
            expected = self.parse_token(expected, *byte)?;
            if self.open.is_empty() {
                return Ok(expected);
            }
        }
    }

    /// Parses the token that begins with `byte`. Returns the token that is expected next.
    fn parse_token(&mut self, expected: Expected, byte: u8) -> Result<Expected, SyntaxError> {
        use Expected::{Colon, CommaOrEnd, Key, KeyOrEnd, Value, ValueOrEnd};
        let in_array = self.open.last().is_none_or(|open| self.first_byte(*open) == b'[');
        match (expected, byte) {
            (Value | ValueOrEnd, b'{' | b'[') => {
                self.open.push(self.nodes.len() as u32);
                self.push_node()?;
                self.offset += 1;
                Ok(if byte == b'{' { KeyOrEnd } else { ValueOrEnd })
            }
            (ValueOrEnd | CommaOrEnd, b']') if in_array => Ok(self.close_container()),
            (KeyOrEnd | Key | CommaOrEnd, b'}') if !in_array => Ok(self.close_container()),
            (KeyOrEnd | Key, b'"') => {
                self.push_node()?;
                Ok(if self.skip_string() { Colon } else { KeyOrEnd })
            }
            (Colon, b':') => {
                self.offset += 1;
                Ok(Value)
            }
            (CommaOrEnd, b',') => {
                self.offset += 1;
                Ok(if in_array { ValueOrEnd } else { Key })
            }
            (Value | ValueOrEnd, b'"') => {
                self.push_node()?;
                Ok(if self.skip_string() { CommaOrEnd } else { expected })
            }
            (Value | ValueOrEnd, b'-' | b'+' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => {
                self.push_node()?;
                Ok(if self.skip_scalar() { CommaOrEnd } else { expected })
            }
            _ => Err(self.error(match expected {
                Value | ValueOrEnd => "expected a value",
                Key | KeyOrEnd => "expected a key in quotes",
                Colon => "expected a colon",
                CommaOrEnd => "expected a comma or the end of an array or object",
            })),
        }
    }

    /// Ends the innermost array or object.
    fn close_container(&mut self) -> Expected {
        self.offset += 1;
        if let Some(open) = self.open.pop() {
            self.nodes[open as usize].next = self.nodes.len() as u32;
        }
        Expected::CommaOrEnd
    }

    /// Adds a value that begins here.
    fn push_node(&mut self) -> Result<(), SyntaxError> {
        if self.nodes.len() == MAX_NODES {
            return Err(self.error("more than 134217728 values"));
        }
        self.nodes.push(Node { start: self.offset as u32, next: self.nodes.len() as u32 + 1 });
        Ok(())
    }

    /// Skips a number, `true`, `false` or `null`. Returns false if it may be truncated, after removing its node.
    fn skip_scalar(&mut self) -> bool {
        let rest = &self.text[self.offset..];
        self.offset += rest.iter().take_while(|byte| is_scalar_byte(**byte)).count();
        let is_complete = self.offset < self.text.len() || self.open.is_empty();
        if !is_complete {
            self.nodes.pop();
        }
        is_complete
    }

    /// Skips a string. Returns false if it is truncated, after removing its node.
    fn skip_string(&mut self) -> bool {
        self.offset += 1;
        while let Some(found) = memchr::memchr2(b'"', b'\\', &self.text[self.offset..]) {
            self.offset += found + 1;
            if self.text[self.offset - 1] == b'"' {
                return true;
            }
            self.offset = (self.offset + 1).min(self.text.len());
        }
        self.offset = self.text.len();
        self.nodes.pop();
        false
    }

    fn first_byte(&self, node: u32) -> u8 {
        self.text[self.nodes[node as usize].start as usize]
    }

    fn error(&self, message: &'static str) -> SyntaxError {
        SyntaxError { offset: self.offset, message }
    }
}

/// Returns true if a byte can be part of a number, `true`, `false` or `null`.
pub(super) fn is_scalar_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::super::value::Value;
    use super::{SyntaxError, Tape};

    #[test]
    fn keeps_the_values_of_a_truncated_document() {
        let text = br#"{"a":[{"b":1},{"c":2,"d":"x\"y"}],"e":{"f":"g"}}"#;
        assert!(!Tape::parse(text).unwrap().is_truncated);
        for end in 1..text.len() {
            let tape = Tape::parse(&text[..end]).unwrap();
            assert!(tape.is_truncated, "{end}");
            let root = Value::root(&tape).unwrap();
            // Every key has a value, and iterating ends.
            assert!(root.members().all(|(_, value)| value.items().count() < 3), "{end}");
            let first = root.get(b"a").and_then(|a| a.items().next()?.get(b"b")?.as_integer());
            assert!(first.is_none_or(|number| number == 1), "{end}");
        }
    }

    #[test]
    fn parses_a_million_levels() {
        let deep = b"[".repeat(1_000_000);
        assert!(Tape::parse(&deep).unwrap().is_truncated);
        let closed = [deep, b"]".repeat(1_000_000)].concat();
        assert_eq!(Tape::parse(&closed).unwrap().nodes.len(), 1_000_000);
    }

    #[test]
    fn reports_the_offset_of_a_syntax_error() {
        for (text, offset) in [(&b"{1:2}"[..], 1), (b"[1 2]", 3), (b"[}", 1), (b"{\"a\" 1}", 5), (b"[1}", 2), (b";", 0)]
        {
            let error = Tape::parse(text).map(|_| ()).map_err(|SyntaxError { offset, .. }| offset);
            assert_eq!(error, Err(offset), "{text:?}");
        }
        assert!(Tape::parse(b"[1,2,]").is_ok() && Tape::parse(b"{\"a\":1,}").is_ok() && Tape::parse(b"").is_ok());
    }
}
