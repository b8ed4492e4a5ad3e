//! Go's `pprof -raw`: samples as values and numbers of locations, leaf first; then what the locations are.
//!
//! ```text
//! PeriodType: cpu nanoseconds
//! Samples:
//! samples/count cpu/nanoseconds
//!           2   20000000: 1 2
//! Locations
//!      1: 0x4a1 M=1 main.hash /src/main.go:10:0 s=8
//!              main.inlined_into /src/main.go:20:0 s=18
//!      2: 0x4a3 M=1 main.main /src/main.go:30:0 s=28
//! Mappings
//! 1: 0x400000/0x4c9000/0x0 /bin/app
//! ```

use std::collections::HashMap;

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::{Options, text};
use crate::markers;
use crate::profile::{Stacks, Weight};

pub(super) static FORMAT: Format = Format {
    name: "pprof-raw",
    description: "go tool pprof -raw",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let mut lines = text::lines(head);
    let typed = lines.any(|line| line.starts_with(b"PeriodType: ") || line == b"Samples:");
    typed && (head.starts_with(b"Samples:") || lines.any(|line| line == b"Samples:"))
}

/// Which part of the text is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Heading,
    Types,
    Samples,
    Locations,
    Mappings,
}

/// What was read so far.
#[derive(Default)]
struct Raw {
    column: usize,
    columns: usize,
    /// Numbers of locations by the dense numbers that stacks are made of.
    numbers: HashMap<u64, u32>,
    stacks: Stacks,
    weights: Vec<Weight>,
    /// Of each location its functions, the innermost first, or where it lies.
    locations: HashMap<u32, Location>,
    mappings: HashMap<u64, Vec<u8>>,
}

#[derive(Default)]
struct Location {
    functions: Vec<Vec<u8>>,
    address: Vec<u8>,
    mapping: u64,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut raw, mut part, mut last) = (Vec::new(), Raw::default(), Part::Heading, None);
    while document.line(&mut line)? {
        let next = match &line[..] {
            b"Samples:" => Some(Part::Types),
            b"Locations" => Some(Part::Locations),
            b"Mappings" => Some(Part::Mappings),
            _ => None,
        };
        if let Some(next) = next {
            part = next;
        } else if part == Part::Types {
            raw.types(&line, document)?;
            part = Part::Samples;
        } else {
            let whole = match part {
                Part::Samples => raw.sample(&line)?,
                Part::Locations => raw.location(&line, &mut last),
                Part::Mappings => raw.mapping(&line),
                _ => true,
            };
            if !whole {
                document.malformed("not of the form that pprof -raw has here")?;
            }
        }
    }
    raw.add_to(sink, document.options)?;
    document.ends(part == Part::Mappings, "its mappings")
}

impl Raw {
    fn types(&mut self, line: &[u8], document: &mut Document<'_>) -> Result<(), Error> {
        let names: Vec<String> = text::words(line).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let usual = names.iter().position(|name| name.ends_with("[dflt]")).unwrap_or(names.len().saturating_sub(1));
        let names: Vec<&str> = names.iter().map(|name| name.trim_end_matches("[dflt]")).collect();
        self.columns = names.len();
        self.column = document.column(&names, usual)?;
        if let Some((_, unit)) = names.get(self.column).and_then(|name| name.split_once('/')) {
            document.unit(unit);
        }
        Ok(())
    }

    /// Takes `VALUE VALUE: LOCATION LOCATION`, or a line of labels.
    fn sample(&mut self, line: &[u8]) -> Result<bool, Error> {
        let Some((values, locations)) = text::split_once(line, ":") else { return Ok(line.is_empty()) };
        let values: Vec<&[u8]> = text::words(values).collect();
        if locations.contains(&b'[') || line.trim_ascii_end().ends_with(b"]") {
            return Ok(true);
        }
        let weight = values.get(self.column).filter(|_| values.len() == self.columns);
        let Some(weight) = weight.and_then(|value| Weight::parse(value)) else { return Ok(false) };
        let mut stack = Vec::new();
        for location in text::words(locations) {
            let Some(number) = text::number(location) else { return Ok(false) };
            stack.push(self.number(number));
        }
        let at = self.stacks.intern(&stack) as usize;
        self.weights.resize(self.weights.len().max(at + 1), Weight::ZERO);
        self.weights[at] = self.weights[at].checked_add(weight).ok_or(Error::Overflow)?;
        Ok(true)
    }

    fn number(&mut self, location: u64) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(location).or_insert(next)
    }

    /// Takes `1: 0x4a1 M=1 main.hash /src/main.go:10:0 s=8`, or a line of a function that the last one is inlined in.
    fn location(&mut self, line: &[u8], last: &mut Option<u32>) -> bool {
        let trimmed = line.trim_ascii();
        let begun = text::split_once(trimmed, ": ").and_then(|(number, rest)| Some((text::number(number)?, rest)));
        let function = match begun {
            Some((number, rest)) => {
                let number = self.number(number);
                let (address, rest) = text::split_word(rest);
                let (mapping, function) = match text::split_word(rest) {
                    (word, after) if word.starts_with(b"M=") => (text::number(&word[2..]).unwrap_or(0), after),
                    _ => (0, rest),
                };
                let location = Location { functions: Vec::new(), address: address.to_vec(), mapping };
                self.locations.insert(number, location);
                *last = Some(number);
                function
            }
            None => trimmed,
        };
        let Some(location) = last.and_then(|last| self.locations.get_mut(&last)) else { return trimmed.is_empty() };
        let name = without_place(function);
        if !name.is_empty() {
            location.functions.push(name.to_vec());
        }
        true
    }

    /// Takes `1: 0x400000/0x4c9000/0x0 /bin/app`.
    fn mapping(&mut self, line: &[u8]) -> bool {
        let Some((number, rest)) = text::split_once(line, ": ") else { return line.is_empty() };
        let file = text::split_word(text::split_word(rest).1).0;
        let base = file.rsplit(|byte| *byte == b'/').next().unwrap_or(file);
        text::number(number.trim_ascii()).map(|number| self.mappings.insert(number, base.to_vec())).is_some()
    }

    fn add_to(&self, sink: &mut Sink, options: &Options) -> Result<(), Error> {
        let mut stack = Stack::default();
        for (at, weight) in self.weights.iter().enumerate() {
            for number in self.stacks.get(at as u32) {
                match self.locations.get(number) {
                    None => stack.push(markers::UNKNOWN, sink),
                    Some(location) if location.functions.is_empty() => stack.push(&self.place(location, options), sink),
                    Some(location) => {
                        for name in &location.functions {
                            stack.push(&text::function(name, options), sink);
                        }
                    }
                }
            }
            if stack.is_empty() {
                stack.push(markers::UNKNOWN, sink);
            }
            stack.add_leaf_first(*weight, sink)?;
        }
        Ok(())
    }

    /// What has no function: its file.
    fn place(&self, location: &Location, options: &Options) -> Vec<u8> {
        let file = self.mappings.get(&location.mapping).filter(|file| !file.is_empty());
        let file = file.map_or(&b"unknown"[..], |file| file);
        match options.addrs {
            true => [b"[", file, b" <", &location.address, b">]"].concat(),
            false => [b"[", file, b"]"].concat(),
        }
    }
}

/// The function without its file and line, and where it starts: `main.hash /src/main.go:10:0 s=8`.
fn without_place(text: &[u8]) -> &[u8] {
    let start = memchr::memmem::rfind(text, b" s=").map_or(text, |end| &text[..end]);
    let end = memchr::memmem::find(start, b" /").or_else(|| memchr::memrchr(b' ', start));
    end.map_or(start, |end| &start[..end]).trim_ascii()
}
