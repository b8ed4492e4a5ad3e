//! Call trees of Instruments (macOS), copied with "Deep Copy": tab-separated, root first, indented by one space per
//! level.
//!
//! ```text
//! Weight          Self Weight             Symbol Name
//! 10.00 s  100.0% 0 s                     main (42)
//! 7.00 s   70.0%  7.00 s                   work
//! ```
//! The weight is the self weight, in the base unit of its kind: times in milliseconds, sizes in bytes, and cycles.
//! If there is none, as in a tree of allocations (`Bytes Used`, `Count`), it is the inclusive weight without that of the
//! callees.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, function_name, indentation};
use crate::collapse::sink::Sink;
use crate::collapse::stack::CallTree;
use crate::collapse::units::parse_quantity;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "instruments",
    description: "Instruments call tree, copied with Deep Copy",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).next().is_some_and(is_heading)
}

fn is_heading(line: &[u8]) -> bool {
    let end = line.trim_end();
    line.contains(&b'\t')
        && (end.ends_with(b"Symbol Name") || end.ends_with(b"Symbol Names"))
        && (line.contains_str("Self") || line.contains_str("Bytes Used") || line.contains_str("Weight"))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut unit, mut columns) = (Vec::new(), CallTree::default(), None, Columns::default());
    while document.read_line(&mut line)? {
        if is_heading(&line) {
            columns = Columns::find(&line, document)?;
        } else if !line.trim_ascii().is_empty() {
            match parse_node(&line, columns.weight) {
                None => document.report_malformed("expected a weight, a self weight and a symbol between tabs")?,
                Some((depth, name, own, base)) => {
                    if unit.is_none() && !own.is_zero() {
                        document.set_unit(base);
                        unit = Some(base);
                    }
                    if unit.is_some_and(|unit| unit != base && !own.is_zero()) {
                        document.report_malformed("the weight is in another unit than those before it")?;
                    } else if !columns.enter(&mut tree, depth, &function_name(name, document.options), own, sink)? {
                        document.report_too_deep()?;
                    }
                }
            }
        }
    }
    tree.leave(0, sink)
}

/// The column of the weights.
#[derive(Clone, Copy, Default)]
struct Columns {
    weight: usize,
    /// True if the weight includes that of the callees.
    is_inclusive: bool,
}

impl Columns {
    /// Finds the column that `--event` names, else the self weights, else the first weights.
    fn find(heading: &[u8], document: &mut Document<'_>) -> Result<Self, Error> {
        let names: Vec<&[u8]> = heading.split_str("\t").map(<[u8]>::trim).collect();
        match names.iter().position(|name| name.starts_with(b"Self")) {
            Some(weight) => Ok(Self { weight, is_inclusive: false }),
            None => {
                let names: Vec<String> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                let known: Vec<&str> = names.iter().map(String::as_str).take_while(|name| !name.is_empty()).collect();
                Ok(Self { weight: document.select_value(&known, 0)?, is_inclusive: true })
            }
        }
    }

    /// Enters a node of the tree; returns false if it is too deep. Inclusive weights are rounded, so those of callees
    /// may add up to more than that of their caller.
    fn enter(
        self,
        tree: &mut CallTree,
        depth: usize,
        name: &[u8],
        weight: Weight,
        sink: &mut Sink,
    ) -> Result<bool, Error> {
        match self.is_inclusive {
            true => tree.enter_rounded(depth, name, weight, sink),
            false => tree.enter(depth, name, weight, sink),
        }
    }
}

/// Returns a symbol's depth, its name, its self weight and the unit of that.
fn parse_node(line: &[u8], self_column: usize) -> Option<(usize, &[u8], Weight, &'static str)> {
    let mut columns = line.split_str("\t").skip(self_column);
    let own = columns.next()?.trim();
    // A percentage may follow the weight.
    let own = own.find_byte(b'%').map_or(own, |_| own.rsplitn_str(2, " ").last().unwrap_or(own)).trim();
    let symbol = columns.last()?;
    let depth = indentation(symbol);
    let (weight, base) = parse_quantity(own)?;
    (depth < symbol.len()).then_some((depth, &symbol[depth..], weight, base))
}
