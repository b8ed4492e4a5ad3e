//! Time and allocation profiles of GHC (`PROGRAM +RTS -p` or `-P`, file `PROGRAM.prof`): a tree of cost centres, root
//! first, indented by one space per level.
//!
//! ```text
//! COST CENTRE MODULE SRC          no. entries  %time %alloc   %time %alloc  ticks     bytes
//!
//! MAIN        MAIN   <built-in>   337       0    0.0    0.0   100.0  100.0      0       728
//!  main       Main   app.hs:9:1   338       1   40.0   90.0   100.0  100.0      8    535000
//! ```
//! The weight is a cost centre's individual `%time` in tenths of a percent. `--event` can name `alloc`, or with `-P`
//! the exact `ticks` and `bytes`. Frames are named `MODULE.COST-CENTRE`. Inherited values, entries and source positions
//! are left out.

use bstr::ByteSlice as _;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::line_helpers::{first_lines, indentation, parse_scaled, split_words};
use crate::collapse::sink::Sink;
use crate::collapse::stack::CallTree;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "ghc-prof",
    description: "GHC time and allocation profile (.prof, +RTS -p)",
    tested_with: "GHC 9.0, published files",
    has_times: false,
    has_labels: false,
    counts_samples: true,
    recognizer: Recognizer::Head(recognizes),
    reader: FormatReader::Lines(read),
};

/// The values that can be the weight: individual time and allocation, and with `-P` ticks and bytes.
const VALUES: [&str; 4] = ["time", "alloc", "ticks", "bytes"];

fn recognizes(head: &[u8]) -> bool {
    first_lines(head).any(|line| count_columns(line).is_some()) || first_lines(head).next().is_some_and(is_title)
}

/// Returns true for `Sat Nov 21 10:00 2026 Time and Allocation Profiling Report  (Final)`, with at most the date before it.
fn is_title(line: &[u8]) -> bool {
    let date = line.split_once_str("Time and Allocation Profiling Report").map(|(date, _)| date);
    date.is_some_and(|date| split_words(date).count() <= MAX_DATE_WORDS)
}

/// Most words of a date.
const MAX_DATE_WORDS: usize = 6;

/// Returns the number of numeric columns, if this is the line that names the columns of the tree.
fn count_columns(line: &[u8]) -> Option<usize> {
    let words: Vec<&[u8]> = split_words(line).collect();
    let is_tree = words.starts_with(&[b"COST", b"CENTRE", b"MODULE"]) && words.contains(&&b"entries"[..]);
    let first = words.iter().position(|word| *word == b"no.")?;
    is_tree.then(|| words.len() - first)
}

fn is_number(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_digit() || b".,".contains(byte))
}

/// Returns true for the command, the totals, and the table of cost centres before the tree.
fn is_heading(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = split_words(line).collect();
    let numbers = words.iter().rev().take_while(|word| is_number(word)).count();
    let is_above_columns = split_words(line).eq([&b"individual"[..], b"inherited"]);
    line.starts_with(b"\t") || line.starts_with(b"COST CENTRE ") || is_above_columns || numbers >= 2
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut tree, mut columns, mut has_begun) = (Vec::new(), CallTree::default(), None, false);
    while document.read_line(&mut line)? {
        let blank = line.trim_ascii().is_empty();
        let Some((count, column)) = columns else {
            if let Some(count) = count_columns(&line) {
                let known = if count >= 8 { &VALUES[..] } else { &VALUES[..2] };
                let chosen = document.select_value(known, 0)?;
                document.set_unit(if chosen < 2 { "thousandths" } else { known[chosen] });
                columns = Some((count, chosen));
            } else if is_heading(&line) {
                document.skip_own_line();
            } else if !blank && !is_title(&line) {
                document.skip_line();
            }
            continue;
        };
        if has_begun && (blank || is_title(&line)) {
            // Another report may follow.
            tree.leave(0, sink)?;
            (columns, has_begun) = (None, false);
        }
        if blank || !has_begun && is_title(&line) {
            continue;
        }
        has_begun = true;
        match parse_node(&line, count, column) {
            None => document.report_malformed("expected a cost centre, its module and its values")?,
            Some((depth, name, own)) => {
                if !tree.enter(depth, &name, own, sink)? {
                    document.report_too_deep()?;
                }
            }
        }
    }
    tree.leave(0, sink)?;
    document.check_last_line()
}

/// Returns a cost centre's depth, its name with its module, and its own weight. The numbers are counted from the end of
/// the line, since a name may be wider than its column.
fn parse_node(line: &[u8], count: usize, column: usize) -> Option<(usize, Vec<u8>, Weight)> {
    let words: Vec<&[u8]> = split_words(line).collect();
    let numbers = words.get(words.len().checked_sub(count).filter(|first| *first >= 2)?..)?;
    if numbers.iter().any(|number| Weight::parse(number).is_none()) {
        return None;
    }
    let own = match column {
        0 | 1 => parse_scaled(numbers.get(2 + column)?, 1)?,
        _ => Weight::parse(numbers.get(4 + column)?)?,
    };
    Some((indentation(line), [words[1], words[0]].join(&b'.'), own))
}
