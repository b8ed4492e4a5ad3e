//! Callgrind's output, and Xdebug's and others' in its form: a graph of calls, and not stacks. What a function costs is
//! shared out among its callers in proportion, as all readers of this format do.

use std::collections::HashMap;

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::{Options, stack, text, whole};
use crate::profile::Weight;
use crate::symbol_name::simplify;

mod graph;
mod stacks;

use self::graph::Graph;

pub(super) static FORMAT: Format = Format {
    name: "callgrind",
    description: "callgrind and cachegrind-like graphs of calls",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    head.starts_with(b"# callgrind format")
        || text::lines(head).any(|line| line.starts_with(b"events:"))
            && text::lines(head).any(|line| line.starts_with(b"fn="))
}

/// Where in the text we are.
#[derive(Default)]
struct Place {
    graph: Graph,
    /// Functions by number, as `(12) name` compresses them, or by object, file and name.
    known: HashMap<Vec<u8>, u32>,
    /// Objects and files that were named by number.
    files: HashMap<Vec<u8>, Vec<u8>>,
    object: Vec<u8>,
    file: Vec<u8>,
    called_object: Option<Vec<u8>>,
    called_file: Option<Vec<u8>>,
    function: Option<u32>,
    callee: Option<u32>,
    /// Whether the next line of costs is that of a call.
    calls: bool,
    positions: usize,
    column: usize,
    /// What all functions cost together, as the text says.
    totals: Option<Weight>,
    /// Whether it is Callgrind's own, which ends in totals.
    original: bool,
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
            (b"creator", Some(b':')) => place.original = trimmed[word + 1..].trim_ascii().starts_with(b"callgrind"),
            (b"totals", Some(b':')) => add_stated(&mut place.totals, place.column, &trimmed[word + 1..])?,
            (b"", _) => {
                if !place.cost(trimmed)? {
                    document.malformed("expected a position and costs, after a function")?;
                }
            }
            (key, Some(b'=')) => place.set(key, trimmed[word + 1..].trim_ascii(), document.options, sink),
            (_, Some(b':')) => {}
            _ => document.malformed("neither a key and a value nor costs")?,
        }
    }
    place.finish(document, sink)
}

/// Adds what a part of the text says that its functions cost.
fn add_stated(stated: &mut Option<Weight>, column: usize, costs: &[u8]) -> Result<(), Error> {
    let cost = text::words(costs).nth(column).and_then(Weight::parse);
    if let Some(cost) = cost {
        *stated = Some(stated.unwrap_or_default().checked_add(cost).ok_or(Error::Overflow)?);
    }
    Ok(())
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

    fn set(&mut self, key: &[u8], value: &[u8], options: &Options, sink: &mut Sink) {
        match key {
            b"ob" => self.object = self.named(b"o", value),
            b"fl" | b"fi" | b"fe" => self.file = self.named(b"f", value),
            b"cob" => self.called_object = Some(self.named(b"o", value)),
            b"cfl" | b"cfi" => self.called_file = Some(self.named(b"f", value)),
            b"fn" => {
                let (object, file) = (self.object.clone(), self.file.clone());
                (self.callee, self.calls) = (None, false);
                self.function = Some(self.number(value, &object, &file, options, sink));
            }
            b"cfn" => {
                let object = self.called_object.take().unwrap_or_else(|| self.object.clone());
                let file = self.called_file.take().unwrap_or_else(|| self.file.clone());
                self.callee = Some(self.number(value, &object, &file, options, sink));
            }
            b"calls" => self.calls = true,
            _ => {}
        }
    }

    /// The object or file of `(12) name`, of `(12)` if that was named before, or of a name.
    fn named(&mut self, kind: &[u8], value: &[u8]) -> Vec<u8> {
        let (number, name) = compressed(value);
        let Some(number) = number else { return name.to_vec() };
        let known = self.files.entry([kind, number].concat()).or_default();
        if !name.is_empty() {
            *known = name.to_vec();
        }
        known.clone()
    }

    /// The function of `(12) name`, of `(12)` if that was named before, or of a name in an object and a file.
    fn number(&mut self, value: &[u8], object: &[u8], file: &[u8], options: &Options, sink: &mut Sink) -> u32 {
        let (number, name) = compressed(value);
        let key = number.map_or_else(|| [object, file, name].join(&b'\n'), <[u8]>::to_vec);
        let graph = &mut self.graph;
        let number = *self.known.entry(key).or_insert_with(|| graph.function(stack::frame(name, sink)));
        if !name.is_empty() {
            let name = if options.verbatim { name.into() } else { simplify::simplify(name) };
            let name = whole::located(&name, file, None, options);
            self.graph.name(number, stack::frame(&name, sink));
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

    /// Adds the stacks, and says what the text has less, or more, than it says.
    fn finish(self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        let total = self.graph.total()?;
        if self.calls {
            document.malformed("the input ends within a call")?;
        }
        document.ends(self.totals.is_some() || !self.original, "its totals")?;
        if let Some(stated) = self.totals.filter(|stated| *stated != total) {
            let what = format!("its functions cost {total} together, and its totals say {stated}");
            document.damaged(&what, false)?;
        }
        stacks::add_to(&self.graph, sink)
    }
}

/// The number, if there is one, and the name of `(12) name`.
fn compressed(value: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let parts = value.strip_prefix(b"(").and_then(|rest| text::split_once(rest, ")"));
    match parts.filter(|(number, _)| text::number(number).is_some()) {
        Some((number, name)) => (Some(number), name.trim_ascii()),
        None => (None, value),
    }
}
