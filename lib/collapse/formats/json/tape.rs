//! JSON as a tape: one node a value, in the order of the text, eight bytes each.
//!
//! A document is read without recursion, so that nothing depends on how deep it is nested, and in memory that is bounded
//! by its length. Texts and numbers stay where they are until they are asked for.

use super::value::Value;

/// The most values that are taken: a gigabyte of nodes.
const MOST: usize = 1 << 27;

/// A document.
#[derive(Debug)]
pub(super) struct Tape<'a> {
    pub(super) text: &'a [u8],
    pub(super) nodes: Vec<Node>,
    /// Whether the text ends before the document does.
    pub(super) cut: bool,
    /// Whether it ends within something else than an outermost array, which some tools never end.
    pub(super) torn: bool,
    /// Where the document ends.
    pub(super) end: usize,
}

/// A value: where it begins in the text, and which node stands behind it and all that is in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) start: u32,
    pub(super) next: u32,
}

/// Why a text is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

/// What may come next.
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
    /// Reads the first value in a text of less than 4 GB. Where the text ends before the value does, what is there counts,
    /// and where an array or object ends behind a comma, that is not minded: some tools write for as long as they live.
    pub(super) fn read(text: &'a [u8]) -> Result<Self, Fault> {
        let mut reader = Reader { text, at: 0, nodes: Vec::new(), open: Vec::new() };
        let expected = reader.read()?;
        let Reader { at, mut nodes, open, .. } = reader;
        if !open.is_empty() && matches!(expected, Expected::Colon | Expected::Value) {
            // A name without a value.
            nodes.pop();
        }
        let torn =
            open.len() > 1 || open.first().is_some_and(|open| text[nodes[*open as usize].start as usize] == b'{');
        let next = nodes.len() as u32;
        for container in &open {
            nodes[*container as usize].next = next;
        }
        Ok(Self { text, nodes, cut: !open.is_empty(), torn, end: at })
    }

    /// The document's value, if there is any.
    pub(super) fn root(&self) -> Option<Value<'_>> {
        (!self.nodes.is_empty()).then(|| Value::new(self, 0))
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// The arrays and objects that have not ended.
    open: Vec<u32>,
}

impl Reader<'_> {
    /// Reads until the document or the text ends, and says what was expected next.
    fn read(&mut self) -> Result<Expected, Fault> {
        let mut expected = Expected::Value;
        loop {
            let blanks = self.text[self.at..].iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
            self.at += blanks.count();
            let Some(byte) = self.text.get(self.at) else { return Ok(expected) };
            expected = self.step(expected, *byte)?;
            if self.open.is_empty() {
                return Ok(expected);
            }
        }
    }

    fn step(&mut self, expected: Expected, byte: u8) -> Result<Expected, Fault> {
        use Expected::{Colon, CommaOrEnd, Key, KeyOrEnd, Value, ValueOrEnd};
        let in_array = self.open.last().is_none_or(|open| self.byte_of(*open) == b'[');
        match (expected, byte) {
            (Value | ValueOrEnd, b'{' | b'[') => {
                self.open.push(self.nodes.len() as u32);
                self.node()?;
                self.at += 1;
                Ok(if byte == b'{' { KeyOrEnd } else { ValueOrEnd })
            }
            (ValueOrEnd | CommaOrEnd, b']') if in_array => Ok(self.close()),
            (KeyOrEnd | Key | CommaOrEnd, b'}') if !in_array => Ok(self.close()),
            (KeyOrEnd | Key, b'"') => {
                self.node()?;
                Ok(if self.skip_text() { Colon } else { KeyOrEnd })
            }
            (Colon, b':') => {
                self.at += 1;
                Ok(Value)
            }
            (CommaOrEnd, b',') => {
                self.at += 1;
                Ok(if in_array { ValueOrEnd } else { Key })
            }
            (Value | ValueOrEnd, b'"') => {
                self.node()?;
                Ok(if self.skip_text() { CommaOrEnd } else { expected })
            }
            (Value | ValueOrEnd, b'-' | b'+' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => {
                self.node()?;
                Ok(if self.skip_word() { CommaOrEnd } else { expected })
            }
            _ => Err(self.fault(match expected {
                Value | ValueOrEnd => "expected a value",
                Key | KeyOrEnd => "expected a name in quotes",
                Colon => "expected a colon",
                CommaOrEnd => "expected a comma, or the end of an array or object",
            })),
        }
    }

    fn close(&mut self) -> Expected {
        self.at += 1;
        if let Some(open) = self.open.pop() {
            self.nodes[open as usize].next = self.nodes.len() as u32;
        }
        Expected::CommaOrEnd
    }

    /// Adds a value that begins here.
    fn node(&mut self) -> Result<(), Fault> {
        if self.nodes.len() == MOST {
            return Err(self.fault("more values than are taken"));
        }
        self.nodes.push(Node { start: self.at as u32, next: self.nodes.len() as u32 + 1 });
        Ok(())
    }

    /// Goes behind a number or its like; `false` if it may be cut, and then its node is gone: half a number is none.
    fn skip_word(&mut self) -> bool {
        let rest = &self.text[self.at..];
        self.at += rest.iter().take_while(|byte| is_of_word(**byte)).count();
        let whole = self.at < self.text.len() || self.open.is_empty();
        if !whole {
            self.nodes.pop();
        }
        whole
    }

    /// Goes behind a text; `false` if it is cut, and then its node is gone.
    fn skip_text(&mut self) -> bool {
        self.at += 1;
        while let Some(found) = memchr::memchr2(b'"', b'\\', &self.text[self.at..]) {
            self.at += found + 1;
            if self.text[self.at - 1] == b'"' {
                return true;
            }
            self.at = (self.at + 1).min(self.text.len());
        }
        self.at = self.text.len();
        self.nodes.pop();
        false
    }

    fn byte_of(&self, node: u32) -> u8 {
        self.text[self.nodes[node as usize].start as usize]
    }

    fn fault(&self, what: &'static str) -> Fault {
        Fault { at: self.at, what }
    }
}

/// Whether a byte may stand in a number, `true`, `false` or `null`.
pub(super) fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::{Fault, Tape};

    #[test]
    fn what_is_cut_keeps_what_is_there() {
        let text = br#"{"a":[{"b":1},{"c":2,"d":"x\"y"}],"e":{"f":"g"}}"#;
        assert!(!Tape::read(text).unwrap().cut);
        for end in 1..text.len() {
            let tape = Tape::read(&text[..end]).unwrap();
            assert!(tape.cut, "{end}");
            let root = tape.root().unwrap();
            // Every key has a value, and walking over all ends.
            assert!(root.members().all(|(_, value)| value.items().count() < 3), "{end}");
            let first = root.get(b"a").and_then(|a| a.items().next()?.get(b"b")?.whole());
            assert!(first.is_none_or(|number| number == 1), "{end}");
        }
    }

    #[test]
    fn a_million_levels_are_no_more_than_a_million_bytes() {
        let deep = b"[".repeat(1_000_000);
        assert!(Tape::read(&deep).unwrap().cut);
        let closed = [deep, b"]".repeat(1_000_000)].concat();
        assert_eq!(Tape::read(&closed).unwrap().nodes.len(), 1_000_000);
    }

    #[test]
    fn what_is_no_json_is_said_with_its_place() {
        for (text, at) in [(&b"{1:2}"[..], 1), (b"[1 2]", 3), (b"[}", 1), (b"{\"a\" 1}", 5), (b"[1}", 2), (b";", 0)] {
            assert_eq!(Tape::read(text).map(|_| ()).map_err(|Fault { at, .. }| at), Err(at), "{text:?}");
        }
        assert!(Tape::read(b"[1,2,]").is_ok() && Tape::read(b"{\"a\":1,}").is_ok() && Tape::read(b"").is_ok());
    }
}
