//! The Callgrind format: `valgrind --tool=callgrind` (file `callgrind.out.PID`), Xdebug's profiler, and other tools
//! that write for KCachegrind.
//!
//! ```text
//! events: Ir
//! fn=(1) main
//! 16 400
//! cfn=(2) work
//! calls=3 51
//! 16 1200
//! ```
//! A function's lines are a position and its own costs. After `calls=`, the next line is the inclusive cost of calls to
//! the function that `cfn=` names. This is a call graph without stacks: a function's own cost is distributed among its
//! callers in proportion to the cost of their calls, as all readers of this format do.
//!
//! The weight is the cost that `--event` names, by default the first one. Numbers of calls and jumps are left out, and
//! files unless `--srcline` asks for them. Specification: <https://valgrind.org/docs/manual/cl-format.html>.

use std::collections::HashMap;

use rustc_hash::FxHashSet;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::function_with_source;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, is_address, parse_number, split_once, split_words};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack;
use crate::profile::Weight;
use crate::symbol_name::simplify;

mod graph;
mod stacks;

use self::graph::Graph;

pub(super) static FORMAT: Format = Format {
    name: "callgrind",
    description: "Callgrind format (valgrind, Xdebug profiler, KCachegrind)",
    tested_with: "valgrind 3.19, published files",
    has_times: false,
    has_labels: false,
    counts_samples: false,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    head.starts_with(b"# callgrind format")
        || first_lines(head).any(|line| line.starts_with(b"events:"))
            && first_lines(head).any(|line| line.starts_with(b"fn="))
}

/// The graph and the state of the reader.
#[derive(Default)]
struct GraphReader {
    graph: Graph,
    /// Functions by ID, as in `(12) name`, or by object, file and name.
    functions: HashMap<Vec<u8>, u32>,
    /// The functions whose ID has no name yet.
    nameless: FxHashSet<u32>,
    /// Names of objects and files by kind and ID.
    files: HashMap<Vec<u8>, Vec<u8>>,
    object: Vec<u8>,
    file: Vec<u8>,
    callee_object: Option<Vec<u8>>,
    callee_file: Option<Vec<u8>>,
    function: Option<u32>,
    callee: Option<u32>,
    /// True if the next line of costs is that of a call.
    in_call: bool,
    /// Number of positions before the costs of a line.
    position_count: usize,
    /// The names of the costs, and whether a function has any of them.
    events: Vec<(String, bool)>,
    /// Index of the cost that is the weight.
    column: usize,
    /// The cost of all functions, as `totals:` states it.
    totals: Option<Weight>,
    /// True if Callgrind itself wrote the text. It always ends with `totals:`.
    is_callgrind: bool,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut reader) = (Vec::new(), GraphReader { position_count: 1, ..GraphReader::default() });
    while document.read_line(&mut line)? {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || trimmed.starts_with(b"#") {
            continue;
        }
        let word = trimmed.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        match (&trimmed[..word], trimmed.get(word)) {
            (b"events", Some(b':')) => reader.choose_event(&trimmed[word + 1..], document)?,
            (b"positions", Some(b':')) => {
                reader.position_count = split_words(&trimmed[word + 1..]).count().max(1);
            }
            (b"creator", Some(b':')) => {
                reader.is_callgrind = trimmed[word + 1..].trim_ascii().starts_with(b"callgrind");
            }
            (b"totals", Some(b':')) => reader.add_totals(&trimmed[word + 1..])?,
            (b"", _) => {
                if !reader.add_costs(trimmed)? {
                    document.report_malformed("expected a position and costs, after a function")?;
                }
            }
            (key, Some(b'=')) => {
                reader.handle_assignment(key, trimmed[word + 1..].trim_ascii(), document.options, sink)
            }
            (_, Some(b':')) => {}
            _ => document.report_malformed("expected KEY=VALUE, KEY: VALUE, or a position and costs")?,
        }
    }
    reader.finish(document, sink)
}

/// Returns true for the position of a cost: a line number or an address, which may be relative, or `*`, the last one.
fn is_position(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"+").or_else(|| word.strip_prefix(b"-")).unwrap_or(word);
    word == b"*" || parse_number(digits).is_some() || is_address(digits)
}

impl GraphReader {
    /// Parses the names of the events and chooses one of them as the weight.
    fn choose_event(&mut self, names: &[u8], document: &mut Document<'_>) -> Result<(), Error> {
        let names: Vec<String> = split_words(names).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.column = document.select_value(&names, 0)?;
        if let Some(name) = names.get(self.column) {
            document.set_unit(name);
        }
        self.events = names.iter().map(|name| ((*name).to_owned(), false)).collect();
        Ok(())
    }

    /// Adds the total of a part of the text: a profile has one for each time that it was written.
    fn add_totals(&mut self, costs: &[u8]) -> Result<(), Error> {
        let cost = split_words(costs).nth(self.column).and_then(Weight::parse);
        if let Some(cost) = cost {
            self.totals = Some(self.totals.unwrap_or_default().checked_add(cost).ok_or(Error::Overflow)?);
        }
        Ok(())
    }

    /// Handles a line `KEY=VALUE`.
    fn handle_assignment(&mut self, key: &[u8], value: &[u8], options: &Options, sink: &mut Sink) {
        match key {
            b"ob" => self.object = self.resolve_file(b"o", value),
            b"fl" | b"fi" | b"fe" => self.file = self.resolve_file(b"f", value),
            b"cob" => self.callee_object = Some(self.resolve_file(b"o", value)),
            b"cfl" | b"cfi" => self.callee_file = Some(self.resolve_file(b"f", value)),
            b"fn" => {
                let (object, file) = (self.object.clone(), self.file.clone());
                (self.callee, self.in_call) = (None, false);
                self.function = Some(self.resolve_function(value, &object, &file, options, sink));
            }
            b"cfn" => {
                let object = self.callee_object.take().unwrap_or_else(|| self.object.clone());
                let file = self.callee_file.take().unwrap_or_else(|| self.file.clone());
                self.callee = Some(self.resolve_function(value, &object, &file, options, sink));
            }
            b"calls" => self.in_call = true,
            _ => {}
        }
    }

    /// Returns the name of an object or file. `value` is `name`, `(12) name`, or `(12)` if that ID was defined before.
    fn resolve_file(&mut self, kind: &[u8], value: &[u8]) -> Vec<u8> {
        let (id, name) = split_id(value);
        let Some(id) = id else { return name.to_vec() };
        let known = self.files.entry([kind, id].concat()).or_default();
        if !name.is_empty() {
            *known = name.to_vec();
        }
        known.clone()
    }

    /// Returns the graph's number of a function. `value` is as in [`resolve_file`](Self::resolve_file).
    fn resolve_function(
        &mut self,
        value: &[u8],
        object: &[u8],
        file: &[u8],
        options: &Options,
        sink: &mut Sink,
    ) -> u32 {
        let (id, name) = split_id(value);
        let key = id.map_or_else(|| [object, file, name].join(&b'\n'), <[u8]>::to_vec);
        let graph = &mut self.graph;
        let nameless = &mut self.nameless;
        let number = *self.functions.entry(key).or_insert_with(|| {
            let number = graph.add_function(stack::intern_frame(name, sink));
            nameless.insert(number);
            number
        });
        if !name.is_empty() {
            self.nameless.remove(&number);
            let name = if options.verbatim { name.into() } else { simplify::simplify(name) };
            let name = function_with_source(&name, file, None, options);
            self.graph.set_name(number, stack::intern_frame(&name, sink));
        }
        number
    }

    /// Adds the costs of a line. Returns false if the line has none, or belongs to no function.
    fn add_costs(&mut self, line: &[u8]) -> Result<bool, Error> {
        let words: Vec<&[u8]> = split_words(line).collect();
        let positions = words.get(..self.position_count);
        let has_positions = positions.is_some_and(|positions| positions.iter().all(|word| is_position(word)));
        let Some(function) = self.function.filter(|_| has_positions) else { return Ok(false) };
        // Trailing costs that are zero may be missing.
        let cost = words.get(self.position_count + self.column).map_or(Some(Weight::ZERO), |cost| Weight::parse(cost));
        let Some(cost) = cost else { return Ok(false) };
        if !self.in_call {
            for ((_, has_cost), cost) in self.events.iter_mut().zip(&words[self.position_count..]) {
                *has_cost |= *cost != b"0";
            }
        }
        match (std::mem::take(&mut self.in_call), self.callee) {
            (false, _) => self.graph.add_own_cost(function, cost)?,
            (true, Some(callee)) => self.graph.add_call(function, callee, cost)?,
            (true, None) => return Ok(false),
        }
        Ok(true)
    }

    /// Adds the stacks, and reports a text that is cut short or whose costs do not add up to its totals.
    fn finish(self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        let total = self.graph.total_cost()?;
        let with_cost = self.events.iter().filter(|(_, has_cost)| *has_cost).map(|(name, _)| name.as_str());
        let selected = self.events.get(self.column).map_or("", |(name, _)| name);
        document.set_values_with_weight(selected, &with_cost.collect::<Vec<&str>>());
        if self.in_call {
            document.report_malformed("the input ends within a call")?;
        }
        document.check_end(self.totals.is_some() || !self.is_callgrind, "its totals")?;
        if let Some(stated) = self.totals.filter(|stated| *stated != total) {
            let what = format!("its functions cost {total} together, but its totals are {stated}");
            document.report_damage(&what, false)?;
        }
        sink.missing_frames += self.nameless.len() as u64;
        stacks::add_stacks(&self.graph, sink)
    }
}

/// Splits `(12) name` into its ID, if it has one, and its name.
fn split_id(value: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let parts = value.strip_prefix(b"(").and_then(|rest| split_once(rest, ")"));
    match parts.filter(|(id, _)| parse_number(id).is_some()) {
        Some((id, name)) => (Some(id), name.trim_ascii()),
        None => (None, value),
    }
}
