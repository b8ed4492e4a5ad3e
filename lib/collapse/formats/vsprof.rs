//! The call tree of the Visual Studio profiler, exported as CSV: the root first, each function with its level.
//!
//! ```text
//! Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,…,Module Name,
//! 1,"App.Main()",1,100.00,1.00,…,"App.exe",
//! 2,"App.Work(int32)","1,200",99.00,99.00,…,"App.exe",
//! ```
//! The weight is a function's own value in the column that `--event` names, by default the number of calls. Numbers may
//! have any country's digit grouping. Inclusive values and modules are left out.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, parse_number, split_csv};
use crate::collapse::sink::Sink;
use crate::collapse::stack::CallTree;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "vsprof",
    description: "Visual Studio call tree, CSV",
    tested_with: "published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

const HEADING: &[u8] = b"Level,Function Name,";

/// The columns of self values and their names for `--event`, the default first.
const SELF_COLUMNS: [(&str, &str); 3] =
    [("Number of Calls", "calls"), ("Exclusive Samples", "samples"), ("Elapsed Exclusive Time %", "time")];

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).next().is_some_and(|line| line.starts_with(HEADING))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut column) = (Vec::new(), CallTree::default(), None);
    while document.read_line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(column) = column else {
            column = Some(find_weight_column(&line, document)?);
            continue;
        };
        match parse_node(&line, column) {
            None => document.report_malformed("expected a level, a function and its values")?,
            // Level 0 is the process. It has no value of its own, and other converters leave it out.
            Some((0, _, own)) if own.is_zero() => {}
            Some((level, name, own)) => {
                if !tree.enter(level, &name, own, sink)? {
                    document.report_too_deep()?;
                }
            }
        }
    }
    tree.leave(0, sink)?;
    document.check_last_line()
}

/// Returns the index of the column that contains the weight.
fn find_weight_column(heading: &[u8], document: &mut Document<'_>) -> Result<usize, Error> {
    let names: Vec<&[u8]> = heading.split_str(",").collect();
    let known = SELF_COLUMNS.iter().filter_map(|(column, event)| {
        let index = names.iter().position(|name| name.trim() == column.as_bytes())?;
        Some((index, *event))
    });
    let known: Vec<(usize, &str)> = known.collect();
    if !heading.starts_with(HEADING) || known.is_empty() {
        return Err(document.unreadable("the first line does not name the columns of a call tree"));
    }
    let events: Vec<&str> = known.iter().map(|(_, event)| *event).collect();
    let chosen = document.select_value(&events, 0)?;
    document.set_unit(if events[chosen] == "time" { "percent of the elapsed time" } else { events[chosen] });
    Ok(known[chosen].0)
}

/// Returns a function's level, its name, and its own weight.
fn parse_node(line: &[u8], column: usize) -> Option<(usize, Vec<u8>, Weight)> {
    let mut fields = split_csv(line)?;
    let level = parse_number(fields.first()?.trim_ascii())?;
    let own = parse_weight(fields.get(column)?)?;
    let name = std::mem::take(fields.get_mut(1)?);
    (!name.is_empty()).then_some((usize::try_from(level).ok()?, name, own))
}

/// Parses a number with any country's digit grouping (`1,200`, `1.200`, `1 200`), or with a fraction (`91.25`).
fn parse_weight(text: &[u8]) -> Option<Weight> {
    if let Some(plain) = Weight::parse(text) {
        return Some(plain);
    }
    let text = text.to_str().ok()?;
    let separator = text.chars().find(|character| !character.is_ascii_digit())?;
    let groups: Vec<&str> = text.split(separator).collect();
    let is_grouped = separator != '-' && !groups[0].is_empty() && groups[1..].iter().all(|group| group.len() == 3);
    is_grouped.then(|| Weight::parse(groups.concat().as_bytes())).flatten()
}
