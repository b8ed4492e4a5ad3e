//! Call trees of Instruments (macOS), copied with "Deep Copy": tab-separated, root first, indented by one space per
//! level.
//!
//! ```text
//! Weight          Self Weight             Symbol Name
//! 10.00 s  100.0% 0 s                     main (42)
//! 7.00 s   70.0%  7.00 s                   work
//! ```
//! The weight is the self weight, in the base unit of its kind: times in milliseconds, sizes in bytes, and cycles.
//! Inclusive weights are left out.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader};
use crate::collapse::line_helpers::{first_lines, function_name, indentation};
use crate::collapse::sink::Sink;
use crate::collapse::stack::{CallTree, too_deep};
use crate::collapse::units::parse_quantity;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "instruments",
    description: "Instruments call tree, copied with Deep Copy",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).next().is_some_and(is_heading)
}

fn is_heading(line: &[u8]) -> bool {
    line.contains(&b'\t') && line.contains_str("Self") && line.trim_end().ends_with(b"Symbol Name")
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut unit, mut self_column) = (Vec::new(), CallTree::default(), None, 1);
    while document.read_line(&mut line)? {
        if is_heading(&line) {
            self_column = line.split_str("\t").position(|name| name.starts_with(b"Self")).unwrap_or(1);
        } else if !line.trim_ascii().is_empty() {
            match parse_node(&line, self_column) {
                None => document.report_malformed("expected a weight, a self weight and a symbol between tabs")?,
                Some((depth, name, own, base)) => {
                    if unit.is_none() && !own.is_zero() {
                        document.set_unit(base);
                        unit = Some(base);
                    }
                    if unit.is_some_and(|unit| unit != base && !own.is_zero()) {
                        document.report_malformed("the weight is in another unit than those before it")?;
                    } else if !tree.enter(depth, &function_name(name, document.options), own, sink)? {
                        document.report_malformed(&too_deep())?;
                    }
                }
            }
        }
    }
    tree.leave(0, sink)
}

/// Returns a symbol's depth, its name, its self weight and the unit of that.
fn parse_node(line: &[u8], self_column: usize) -> Option<(usize, &[u8], Weight, &'static str)> {
    let mut columns = line.splitn_str(self_column + 3, "\t").skip(self_column);
    let own = columns.next()?.trim();
    let symbol = columns.last()?;
    let depth = indentation(symbol);
    let (weight, base) = parse_quantity(own)?;
    (depth < symbol.len()).then_some((depth, &symbol[depth..], weight, base))
}
