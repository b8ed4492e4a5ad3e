//! `go tool pprof -raw`: samples as values and location IDs, leaf first; then the locations with their functions,
//! innermost first; then the mappings.
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
//! The weight is the value that `--event` names, else the default one (`[dflt]`), else the last one. A location without
//! a function is named by its file, with `--addrs` also by its address. `--label KEY` makes a sample's labels, in the lines
//! below it, its root frame: `request:[/home] bytes:[512]`. Files and lines are left out.

use std::collections::HashMap;

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{
    first_lines, function_name, indentation, is_address, parse_number, split_once, split_word, split_words,
};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::markers;
use crate::profile::{Stacks, Weight};

pub(super) static FORMAT: Format = Format {
    name: "pprof-raw",
    description: "go tool pprof -raw",
    tested_with: "Go 1.19, published files",
    has_times: false,
    has_labels: true,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    let mut lines = first_lines(head);
    let has_type = lines.any(|line| line.starts_with(b"PeriodType: ") || line == b"Samples:");
    has_type && (head.starts_with(b"Samples:") || lines.any(|line| line == b"Samples:"))
}

/// A section of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Heading,
    Types,
    Samples,
    Locations,
    Mappings,
}

/// The profile that is being read.
#[derive(Default)]
struct RawProfile {
    /// The index of the value that becomes the weight.
    column: usize,
    /// The number of values per sample.
    column_count: usize,
    /// The places of stacks, numbered densely: stacks consist of these numbers.
    place_numbers: HashMap<Place, u32>,
    /// The last sample, whose labels may follow.
    sample: Option<(Vec<u32>, Weight)>,
    /// The frames of labels.
    labels: HashMap<u32, Vec<u8>>,
    stacks: Stacks,
    /// The weights of the stacks, by stack number.
    weights: Vec<Weight>,
    locations: HashMap<u32, Location>,
    /// File names by mapping ID.
    mappings: HashMap<u64, Vec<u8>>,
}

/// A place in a stack: a location, by its ID in the text, or a label as a frame.
#[derive(PartialEq, Eq, Hash)]
enum Place {
    Location(u64),
    Label(Vec<u8>),
}

#[derive(Default)]
struct Location {
    /// The innermost first.
    functions: Vec<Vec<u8>>,
    address: Vec<u8>,
    mapping: u64,
}

/// Returns true for a line before the samples: `Period: 10000000`.
fn is_setting(line: &[u8]) -> bool {
    split_once(line, ": ").is_some_and(|(name, _)| name.iter().all(u8::is_ascii_alphabetic))
}

/// Least number of blanks before a function without a location.
const FUNCTION_INDENTATION: usize = 8;

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut profile, mut section) = (Vec::new(), RawProfile::default(), Section::Heading);
    let mut last_location = None;
    while document.read_line(&mut line)? {
        let next = match &line[..] {
            b"Samples:" => Some(Section::Types),
            b"Locations" => Some(Section::Locations),
            b"Mappings" => Some(Section::Mappings),
            _ => None,
        };
        if let Some(next) = next {
            section = next;
            continue;
        }
        match section {
            Section::Heading if is_setting(&line) => {}
            Section::Heading => document.skip_line(),
            Section::Types if split_words(&line).all(|name| name.contains(&b'/')) => {
                profile.parse_types(&line, document)?;
                section = Section::Samples;
            }
            Section::Types => document.report_malformed("expected the names and units of the values")?,
            Section::Samples => {
                if !profile.parse_labels(&line, document.options) && !profile.parse_sample(&line)? {
                    document.report_malformed("expected a sample: its values, a colon and its locations")?;
                }
            }
            Section::Locations => {
                if !profile.parse_location(&line, &mut last_location) {
                    document.report_unindented("expected a location: its number, a colon and an address")?;
                }
            }
            Section::Mappings => {
                if !profile.parse_mapping(&line) {
                    document.report_malformed("expected a mapping: its number, a colon, addresses and a file")?;
                }
            }
        }
    }
    profile.end_sample()?;
    profile.add_to(sink, document.options)?;
    document.check_end(section == Section::Mappings, "its mappings")
}

impl RawProfile {
    /// Parses the names of the values and chooses one of them as the weight.
    fn parse_types(&mut self, line: &[u8], document: &mut Document<'_>) -> Result<(), Error> {
        let names: Vec<String> = split_words(line).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let default = names.iter().position(|name| name.ends_with("[dflt]")).unwrap_or(names.len().saturating_sub(1));
        let names: Vec<&str> = names.iter().map(|name| name.trim_end_matches("[dflt]")).collect();
        self.column_count = names.len();
        self.column = document.select_value(&names, default)?;
        if let Some((_, unit)) = names.get(self.column).and_then(|name| name.split_once('/')) {
            document.set_unit(unit);
        }
        Ok(())
    }

    /// Adds the labels of `key:[value] bytes:[512]` that the options name to the last sample; returns true for such a line.
    fn parse_labels(&mut self, line: &[u8], options: &Options) -> bool {
        let line = line.trim_ascii();
        if !line.ends_with(b"]") || !line.contains_str(":[") {
            return false;
        }
        for key in options.labels.iter().rev() {
            if let Some(value) = find_label(line, key) {
                let frame = [key, &b"="[..], value].concat();
                let number = self.place_number(Place::Label(frame.clone()));
                self.labels.insert(number, frame);
                self.sample.iter_mut().for_each(|(stack, _)| stack.push(number));
            }
        }
        true
    }

    /// Adds the sample of `VALUE VALUE: LOCATION LOCATION`.
    fn parse_sample(&mut self, line: &[u8]) -> Result<bool, Error> {
        self.end_sample()?;
        let Some((values, locations)) = split_once(line, ":") else { return Ok(line.is_empty()) };
        let values: Vec<&[u8]> = split_words(values).collect();
        let weight = values.get(self.column).filter(|_| values.len() == self.column_count);
        let is_sample = values.iter().all(|value| Weight::parse(value).is_some())
            && split_words(locations).all(|location| parse_number(location).is_some());
        let Some(weight) = weight.and_then(|value| Weight::parse(value)).filter(|_| is_sample) else {
            return Ok(false);
        };
        let mut stack = Vec::new();
        for location in split_words(locations) {
            let Some(id) = parse_number(location) else { return Ok(false) };
            stack.push(self.place_number(Place::Location(id)));
        }
        self.sample = Some((stack, weight));
        Ok(true)
    }

    /// Adds the last sample, which has all its labels.
    fn end_sample(&mut self) -> Result<(), Error> {
        let Some((stack, weight)) = self.sample.take() else { return Ok(()) };
        let stack = self.stacks.intern(&stack) as usize;
        self.weights.resize(self.weights.len().max(stack + 1), Weight::ZERO);
        self.weights[stack] = self.weights[stack].checked_add(weight).ok_or(Error::Overflow)?;
        Ok(())
    }

    /// Returns the dense number of a place.
    fn place_number(&mut self, place: Place) -> u32 {
        let next = self.place_numbers.len() as u32;
        *self.place_numbers.entry(place).or_insert(next)
    }

    /// Adds the location of `1: 0x4a1 M=1 main.hash /src/main.go:10:0 s=8`. On a line that has only a function, the
    /// last location's function is inlined into it.
    fn parse_location(&mut self, line: &[u8], last: &mut Option<u32>) -> bool {
        let trimmed = line.trim_ascii();
        let numbered = split_once(trimmed, ": ").and_then(|(id, rest)| Some((parse_number(id)?, rest)));
        let numbered = numbered.filter(|(_, rest)| is_address(split_word(rest).0));
        // Functions that others are inlined into are indented.
        if numbered.is_none() && !trimmed.is_empty() && indentation(line) < FUNCTION_INDENTATION {
            return false;
        }
        let function = match numbered {
            Some((id, rest)) => {
                let number = self.place_number(Place::Location(id));
                let (address, rest) = split_word(rest);
                let (mapping, function) = match split_word(rest) {
                    (word, after) if word.starts_with(b"M=") => (parse_number(&word[2..]).unwrap_or(0), after),
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
        let name = strip_position(function);
        if !name.is_empty() {
            location.functions.push(name.to_vec());
        }
        true
    }

    /// Adds the mapping of `1: 0x400000/0x4c9000/0x0 /bin/app`.
    fn parse_mapping(&mut self, line: &[u8]) -> bool {
        let Some((id, rest)) = split_once(line, ": ") else { return line.is_empty() };
        let file = split_word(split_word(rest).1).0;
        let base = file.rsplit(|byte| *byte == b'/').next().unwrap_or(file);
        parse_number(id.trim_ascii()).map(|id| self.mappings.insert(id, base.to_vec())).is_some()
    }

    /// Adds all stacks to the sink.
    fn add_to(&self, sink: &mut Sink, options: &Options) -> Result<(), Error> {
        let mut stack = Stack::default();
        for (stack_number, weight) in (0..).zip(&self.weights) {
            for place in self.stacks.get(stack_number) {
                if let Some(label) = self.labels.get(place) {
                    stack.push(label, sink);
                    continue;
                }
                match self.locations.get(place) {
                    None => stack.push(markers::UNKNOWN, sink),
                    Some(location) if location.functions.is_empty() => {
                        stack.push(&self.module_frame(location, options), sink);
                    }
                    Some(location) => {
                        for name in &location.functions {
                            stack.push(&function_name(name, options), sink);
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

    /// Returns the name of a location without a function: its file, and its address if `--addrs` asks for it.
    fn module_frame(&self, location: &Location, options: &Options) -> Vec<u8> {
        let file = self.mappings.get(&location.mapping).filter(|file| !file.is_empty());
        let file = file.map_or(&b"unknown"[..], |file| file);
        match options.addrs {
            true => [b"[", file, b" <", &location.address, b">]"].concat(),
            false => [b"[", file, b"]"].concat(),
        }
    }
}

/// Returns the value of a label in `key:[value] other:[value]`. Values may contain blanks and brackets.
fn find_label<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let start = [key, b":["].concat();
    let begins = |at: &usize| *at == 0 || line[..*at].ends_with(b"] ");
    let begin = line.find_iter(&start).find(begins)? + start.len();
    let rest = &line[begin..];
    // The next label begins with its key.
    let ends_value = |at: &usize| {
        let word = split_word(&rest[at + 1..]).0;
        word.is_empty() || word.contains_str(":[")
    };
    rest.find_iter(b"]").find(ends_value).map(|end| &rest[..end])
}

/// Returns the function of `main.hash /src/main.go:10:0 s=8`, without its file, line and start line.
fn strip_position(text: &[u8]) -> &[u8] {
    let start = memchr::memmem::rfind(text, b" s=").map_or(text, |end| &text[..end]);
    let end = memchr::memmem::find(start, b" /").or_else(|| memchr::memrchr(b' ', start));
    end.map_or(start, |end| &start[..end]).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::find_label;

    #[test]
    fn finds_labels_whose_values_have_blanks_and_brackets() {
        let line = b"n:[1] req:[/a b;c] list:[[x] y] size:[512 bytes]";
        for (key, value) in [
            ("n", Some("1")),
            ("req", Some("/a b;c")),
            ("list", Some("[x] y")),
            ("size", Some("512 bytes")),
            ("ist", None),
            ("q", None),
        ] {
            assert_eq!(find_label(line, key.as_bytes()), value.map(str::as_bytes), "{key}");
        }
    }
}
