//! Intel VTune's CSV report of stacks: a tree, root first, a blank a level, self values.
//!
//! ```text
//! Function Stack,CPU Time:Self,Module
//! Total,0.0,[Unknown]
//!  main,0.010,app.exe
//!   "f(int, int)",1.25,app.exe
//! ```

use bstr::ByteSlice as _;

use super::{Format, FormatReader};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Tree;
use crate::collapse::text;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "vtune",
    description: "Intel VTune report of stacks, CSV",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

const FIRST: &[u8] = b"Function Stack,";

fn recognizes(head: &[u8]) -> bool {
    text::lines(head).take(8).any(|line| line.starts_with(FIRST) && line.contains_str(":Self"))
}

/// Which fields hold what.
struct Columns {
    weight: usize,
    module: Option<usize>,
    is_time: bool,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut columns) = (Vec::new(), Tree::default(), None);
    while document.line(&mut line)? {
        if line.starts_with(FIRST) {
            columns = Some(of_heading(&line, document)?);
        } else if line.trim_ascii().is_empty() || line.starts_with(b"war:") {
            continue;
        } else if let Some(columns) = &columns {
            match node(&line, columns) {
                None => document.malformed("expected a function and its values")?,
                Some((depth, name, own)) => {
                    if !tree.enter(depth, &name, own, sink)? {
                        document.malformed("too deep a stack")?;
                    }
                }
            }
        } else {
            document.malformed("expected the names of the columns first")?;
        }
    }
    tree.leave(0, sink)?;
    document.ends_with_a_line()
}

fn of_heading(line: &[u8], document: &mut Document<'_>) -> Result<Columns, Error> {
    let names: Vec<String> = line.split_str(",").map(|name| name.trim().to_str_lossy().into_owned()).collect();
    let own: Vec<usize> = (0..names.len()).filter(|at| names[*at].ends_with(":Self")).collect();
    let known: Vec<&str> = own.iter().map(|at| names[*at].trim_end_matches(":Self")).collect();
    let usual = known.iter().position(|name| *name == "Allocations").unwrap_or(0);
    let chosen = document.column(&known, usual)?;
    let is_time = known.get(chosen).is_some_and(|name| name.contains("Time"));
    if is_time {
        document.unit("milliseconds");
    }
    let weight = own.get(chosen).copied().unwrap_or(1);
    Ok(Columns { weight, module: names.iter().position(|name| name == "Module"), is_time })
}

fn node(line: &[u8], columns: &Columns) -> Option<(usize, Vec<u8>, Weight)> {
    let fields = text::fields(line)?;
    let value = fields.get(columns.weight)?.trim_ascii();
    let own = if columns.is_time { text::scaled(value, 3)? } else { Weight::parse(value)? };
    let function = fields.first()?;
    let depth = text::indentation(function);
    let module = columns.module.and_then(|at| fields.get(at)).map(|module| module.trim_ascii());
    let name = match module {
        None | Some(b"") => function[depth..].to_vec(),
        Some(module) => [module, &function[depth..]].join(&b'`'),
    };
    Some((depth, name, own))
}
