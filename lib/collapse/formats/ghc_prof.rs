//! GHC's time and allocation profile (`+RTS -p`, `-P`): a tree of cost centres, root first, a blank a level.
//!
//! ```text
//! COST CENTRE MODULE SRC          no. entries  %time %alloc   %time %alloc  ticks     bytes
//!
//! MAIN        MAIN   <built-in>   337       0    0.0    0.0   100.0  100.0      0       728
//!  main       Main   app.hs:9:1   338       1   40.0   90.0   100.0  100.0      8    535000
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
    name: "ghc-prof",
    description: "GHC .prof of time and allocation",
    has_times: false,
    recognizes,
    reader: FormatReader::Lines(read),
};

/// Columns of the tree from `entries` on: the function's own time and allocation, the inherited ones, and with `-P` more.
const NAMES: [&str; 4] = ["time", "alloc", "ticks", "bytes"];

fn recognizes(head: &[u8]) -> bool {
    text::lines(head).any(|line| columns(line).is_some()) || text::lines(head).next().is_some_and(is_title)
}

fn is_title(line: &[u8]) -> bool {
    line.contains_str("Time and Allocation Profiling Report")
}

/// How many columns of numbers the tree has, if this is the line that names them.
fn columns(line: &[u8]) -> Option<usize> {
    let words: Vec<&[u8]> = text::words(line).collect();
    let is_tree = words.starts_with(&[b"COST", b"CENTRE", b"MODULE"]) && words.contains(&&b"entries"[..]);
    let first = words.iter().position(|word| *word == b"no.")?;
    is_tree.then(|| words.len() - first)
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut form, mut begun) = (Vec::new(), Tree::default(), None, false);
    while document.line(&mut line)? {
        let blank = line.trim_ascii().is_empty();
        let Some((count, column)) = form else {
            if let Some(count) = columns(&line) {
                let known = if count >= 8 { &NAMES[..] } else { &NAMES[..2] };
                let chosen = document.column(known, 0)?;
                document.unit(if chosen < 2 { "thousandths" } else { known[chosen] });
                form = Some((count, chosen));
            }
            continue;
        };
        if begun && (blank || is_title(&line)) {
            // Another report may follow.
            tree.leave(0, sink)?;
            (form, begun) = (None, false);
        }
        if blank || !begun && is_title(&line) {
            continue;
        }
        begun = true;
        match node(&line, count, column) {
            None => document.malformed("expected a cost centre, its module and its values")?,
            Some((depth, name, own)) => {
                if !tree.enter(depth, &name, own, sink)? {
                    document.malformed("too deep a stack")?;
                }
            }
        }
    }
    tree.leave(0, sink)?;
    document.ends_with_a_line()
}

/// Numbers are taken from the end of the line, since a name may be wider than its column.
fn node(line: &[u8], count: usize, column: usize) -> Option<(usize, Vec<u8>, Weight)> {
    let words: Vec<&[u8]> = text::words(line).collect();
    let numbers = words.get(words.len().checked_sub(count).filter(|first| *first >= 2)?..)?;
    let own = match column {
        0 | 1 => text::scaled(numbers.get(2 + column)?, 1)?,
        _ => Weight::parse(numbers.get(4 + column)?)?,
    };
    Some((text::indentation(line), [words[1], words[0]].join(&b'.'), own))
}
