//! Visual Studio's call tree as CSV: root first, the level as a number.
//!
//! ```text
//! Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,…,Module Name,
//! 1,"App.Main()",1,100.00,1.00,…,"App.exe",
//! 2,"App.Work(int32)","1,200",99.00,99.00,…,"App.exe",
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
    name: "vsprof",
    description: "Visual Studio call tree, CSV",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

const FIRST: &[u8] = b"Level,Function Name,";

/// The columns that hold what a function itself has, and how they are called here, the usual one first.
const OWN: [(&str, &str); 3] =
    [("Number of Calls", "calls"), ("Exclusive Samples", "samples"), ("Elapsed Exclusive Time %", "time")];

fn recognizes(head: &[u8]) -> bool {
    text::lines(head).next().is_some_and(|line| line.starts_with(FIRST))
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut column) = (Vec::new(), Tree::default(), None);
    while document.line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(column) = column else {
            column = Some(weight_column(&line, document)?);
            continue;
        };
        match node(&line, column) {
            None => document.malformed("expected a level, a function and its values")?,
            // The process; peers leave it out, and it has nothing of its own.
            Some((0, _, own)) if own.is_zero() => {}
            Some((level, name, own)) => {
                if !tree.enter(level, &name, own, sink)? {
                    document.malformed("too deep a stack")?;
                }
            }
        }
    }
    tree.leave(0, sink)?;
    document.ends_with_a_line()
}

/// Where the weight stands.
fn weight_column(heading: &[u8], document: &mut Document<'_>) -> Result<usize, Error> {
    let names: Vec<&[u8]> = heading.split_str(",").collect();
    let find = |wanted: &str| names.iter().position(|name| name.trim() == wanted.as_bytes());
    let known: Vec<(usize, &str)> = OWN.iter().filter_map(|(column, name)| Some((find(column)?, *name))).collect();
    if !heading.starts_with(FIRST) || known.is_empty() {
        return Err(document.unreadable("the first line does not name the columns of a call tree"));
    }
    let called: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
    let chosen = document.column(&called, 0)?;
    document.unit(if called[chosen] == "time" { "percent of the elapsed time" } else { called[chosen] });
    Ok(known[chosen].0)
}

fn node(line: &[u8], column: usize) -> Option<(usize, Vec<u8>, Weight)> {
    let mut fields = text::fields(line)?;
    let level = text::number(fields.first()?.trim_ascii())?;
    let own = weight(fields.get(column)?)?;
    let name = std::mem::take(fields.get_mut(1)?);
    (!name.is_empty()).then_some((usize::try_from(level).ok()?, name, own))
}

/// A number as some country writes it: `1,200`, `1.200`, `1 200`, or with a fraction `91.25`.
fn weight(text: &[u8]) -> Option<Weight> {
    if let Some(plain) = Weight::parse(text) {
        return Some(plain);
    }
    let text = text.to_str().ok()?;
    let separator = text.chars().find(|character| !character.is_ascii_digit())?;
    let groups: Vec<&str> = text.split(separator).collect();
    let whole = separator != '-' && !groups[0].is_empty() && groups[1..].iter().all(|group| group.len() == 3);
    whole.then(|| Weight::parse(groups.concat().as_bytes())).flatten()
}
