//! Callgrind's output, and Xdebug's and others' in its form: a graph of calls, and not stacks. What a function and its
//! callees cost is shared out among its callers in proportion, as all readers of this format do.

use std::collections::HashMap;

use super::{Format, Reading};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::{stack, text};
use crate::profile::Weight;

mod graph;

use self::graph::Graph;

pub(super) static FORMAT: Format = Format {
    name: "callgrind",
    about: "callgrind and cachegrind-like graphs of calls",
    recognises,
    reading: Reading::Lines(read),
};

fn recognises(head: &[u8]) -> bool {
    head.starts_with(b"# callgrind format")
        || text::lines(head).any(|line| line.starts_with(b"events:"))
            && text::lines(head).any(|line| line.starts_with(b"fn="))
}

/// Where in the text we are.
#[derive(Default)]
struct Place {
    graph: Graph,
    /// Functions by number, as `(12) name` compresses them, or by name.
    known: HashMap<Vec<u8>, u32>,
    function: Option<u32>,
    callee: Option<u32>,
    /// Whether the next line of costs is that of a call.
    calls: bool,
    positions: usize,
    column: usize,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut place) = (Vec::new(), Place { positions: 1, ..Place::default() });
    while document.line(&mut line)? {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || trimmed.starts_with(b"#") {
            continue;
        }
        let word = trimmed.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        match (&trimmed[..word], trimmed.get(word)) {
            (b"events", Some(b':')) => place.events(&trimmed[word + 1..], document)?,
            (b"positions", Some(b':')) => place.positions = text::words(&trimmed[word + 1..]).count().max(1),
            (b"", _) => {
                if !place.cost(trimmed)? {
                    document.malformed("expected a position and costs, after a function")?;
                }
            }
            (key, Some(b'=')) => place.set(key, trimmed[word + 1..].trim_ascii(), sink),
            (_, Some(b':')) => {}
            _ => document.malformed("neither a key and a value nor costs")?,
        }
    }
    place.graph.add_to(sink)
}

impl Place {
    fn events(&mut self, names: &[u8], document: &mut Document<'_>) -> Result<(), Error> {
        let names: Vec<String> = text::words(names).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.column = document.column(&names, 0)?;
        if let Some(name) = names.get(self.column) {
            document.unit(name);
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: &[u8], sink: &mut Sink) {
        match key {
            b"fn" => (self.function, self.callee, self.calls) = (Some(self.number(value, sink)), None, false),
            b"cfn" => self.callee = Some(self.number(value, sink)),
            b"calls" => self.calls = true,
            _ => {}
        }
    }

    /// The function of `(12) name`, of `(12)` if that was named before, or of a name.
    fn number(&mut self, value: &[u8], sink: &mut Sink) -> u32 {
        let compressed = value.strip_prefix(b"(").and_then(|rest| text::split_once(rest, ")"));
        let (key, name) = match compressed.filter(|(number, _)| text::number(number).is_some()) {
            Some((number, name)) => (number, name.trim_ascii()),
            None => (value, value),
        };
        let graph = &mut self.graph;
        let number = *self.known.entry(key.to_vec()).or_insert_with(|| graph.function(stack::frame(name, sink)));
        if !name.is_empty() {
            self.graph.name(number, stack::frame(name, sink));
        }
        number
    }

    /// Takes a line of costs; `false` if it is none, or belongs to no function.
    fn cost(&mut self, line: &[u8]) -> Result<bool, Error> {
        let is_position = |word: &[u8]| {
            let digits = word.strip_prefix(b"+").or_else(|| word.strip_prefix(b"-")).unwrap_or(word);
            word == b"*" || text::number(digits).is_some() || text::is_address(digits)
        };
        let words: Vec<&[u8]> = text::words(line).collect();
        let positions = words.len() >= self.positions && words[..self.positions].iter().all(|word| is_position(word));
        let Some(function) = self.function.filter(|_| positions) else { return Ok(false) };
        // Costs at the end of a line that are zero may be left out.
        let cost = words.get(self.positions + self.column).map_or(Some(Weight::ZERO), |cost| Weight::parse(cost));
        let Some(cost) = cost else { return Ok(false) };
        match (std::mem::take(&mut self.calls), self.callee) {
            (false, _) => self.graph.costs(function, cost)?,
            (true, Some(callee)) => self.graph.calls(function, callee, cost)?,
            (true, None) => return Ok(false),
        }
        Ok(true)
    }
}
