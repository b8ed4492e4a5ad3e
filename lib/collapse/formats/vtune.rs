//! Stack reports of Intel VTune as CSV (`vtune -report top-down -format csv -csv-delimiter comma`): a tree, root first,
//! each function indented by one space per level.
//!
//! ```text
//! Function Stack,CPU Time:Self,Module
//! Total,0.0,[Unknown]
//!  main,0.010,app.exe
//!   "f(int, int)",1.25,app.exe
//! ```
//! The weight is the value in a `:Self` column: the first one, or `Allocations`, or the one that `--event` names. Times
//! are in seconds and become milliseconds. Frames are named ``module`function``. All other columns are left out.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, indentation, parse_scaled, split_csv};
use crate::collapse::sink::Sink;
use crate::collapse::stack::CallTree;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "vtune",
    description: "Intel VTune stack report, CSV",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

const HEADING: &[u8] = b"Function Stack,";

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).take(8).any(|line| line.starts_with(HEADING) && line.contains_str(":Self"))
}

/// The indices of the fields that are read.
struct Columns {
    weight: usize,
    module: Option<usize>,
    is_time: bool,
    /// The number of columns.
    count: usize,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut columns) = (Vec::new(), CallTree::default(), None);
    let mut total_depth = None;
    while document.read_line(&mut line)? {
        if line.starts_with(HEADING) {
            total_depth = None;
            columns = Some(Columns::parse(&line, document)?);
        } else if line.trim_ascii().is_empty() || line.starts_with(b"war:") {
            continue;
        } else if let Some(columns) = &columns {
            match parse_node(&line, columns) {
                None => document.report_malformed("expected a function and its values")?,
                // All functions are below the total.
                Some((depth, ..)) if total_depth.is_some_and(|total| depth <= total) => {
                    return Err(document.indentation_lost());
                }
                Some((depth, name, own)) => {
                    if is_total(&line) {
                        total_depth = Some(depth);
                    }
                    if !tree.enter(depth, &name, own, sink)? {
                        document.report_too_deep()?;
                    }
                }
            }
        } else {
            document.report_malformed("expected the column names first")?;
        }
    }
    tree.leave(0, sink)?;
    document.check_last_line()
}

impl Columns {
    /// Parses the line that names the columns.
    fn parse(line: &[u8], document: &mut Document<'_>) -> Result<Self, Error> {
        let names: Vec<String> = line.split_str(",").map(|name| name.trim().to_str_lossy().into_owned()).collect();
        let self_columns: Vec<usize> = (0..names.len()).filter(|index| names[*index].ends_with(":Self")).collect();
        let known: Vec<&str> = self_columns.iter().map(|index| names[*index].trim_end_matches(":Self")).collect();
        let default = known.iter().position(|name| *name == "Allocations").unwrap_or(0);
        let chosen = document.select_value(&known, default)?;
        let is_time = known.get(chosen).is_some_and(|name| name.contains("Time"));
        if is_time {
            document.set_unit("milliseconds");
        }
        let weight = self_columns.get(chosen).copied().unwrap_or(1);
        Ok(Self { weight, module: names.iter().position(|name| name == "Module"), is_time, count: names.len() })
    }
}

/// Returns true for the root of the tree: `Total,0.0,[Unknown]`.
fn is_total(line: &[u8]) -> bool {
    let name = line.trim_ascii_start();
    name.starts_with(b"Total,") || name.starts_with(b"\"Total\",")
}

/// Returns a function's depth, its name with its module, and its own weight.
fn parse_node(line: &[u8], columns: &Columns) -> Option<(usize, Vec<u8>, Weight)> {
    let fields = split_csv(line).filter(|fields| fields.len() <= columns.count)?;
    let value = fields.get(columns.weight)?.trim_ascii();
    let own = if columns.is_time { parse_scaled(value, 3)? } else { Weight::parse(value)? };
    let function = fields.first()?;
    let depth = indentation(function);
    let module = columns.module.and_then(|index| fields.get(index)).map(|module| module.trim_ascii());
    let name = match module {
        None | Some(b"") => function[depth..].to_vec(),
        Some(module) => [module, &function[depth..]].join(&b'`'),
    };
    Some((depth, name, own))
}
