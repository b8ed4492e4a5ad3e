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
    let mut levels = Levels::default();
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
            (columns, has_begun, levels) = (None, false, Levels::default());
        }
        if blank || !has_begun && is_title(&line) {
            continue;
        }
        has_begun = true;
        match parse_node(&line, count, column) {
            None => document.report_malformed("expected a cost centre, its module and its values")?,
            Some(node) => {
                if !levels.add(&node) {
                    return Err(document.indentation_lost());
                }
                if !tree.enter(node.depth, &node.name, node.own, sink)? {
                    document.report_too_deep()?;
                }
            }
        }
    }
    tree.leave(0, sink)?;
    document.check_last_line()
}

/// A cost centre.
struct Node {
    depth: usize,
    /// With its module.
    name: Vec<u8>,
    own: Weight,
    /// Time and allocation with those of its callees, in tenths of a percent.
    inherited: [Weight; 2],
}

/// The levels of a tree near its root, by which lost blanks are noticed.
#[derive(Default)]
struct Levels {
    has_root: bool,
    /// Number of cost centres below the root.
    below_root: u64,
    /// The sum of their inherited time and allocation.
    sums: [Weight; 2],
}

impl Levels {
    /// Adds a cost centre. Returns false if it is a second root, or if those below the root have more than all, even if each
    /// was rounded up.
    fn add(&mut self, node: &Node) -> bool {
        if node.depth == 0 {
            return !std::mem::replace(&mut self.has_root, true);
        }
        if node.depth > 1 {
            return true;
        }
        self.below_root += 1;
        for (sum, inherited) in self.sums.iter_mut().zip(node.inherited) {
            *sum = sum.checked_add(inherited).unwrap_or(*sum);
        }
        self.sums.iter().all(|sum| *sum <= Weight::new(1000 + self.below_root))
    }
}

/// Parses a cost centre. The numbers are counted from the end of
/// the line, since a name may be wider than its column.
fn parse_node(line: &[u8], count: usize, column: usize) -> Option<Node> {
    let words: Vec<&[u8]> = split_words(line).collect();
    let numbers = words.get(words.len().checked_sub(count).filter(|first| *first >= 2)?..)?;
    if numbers.iter().any(|number| Weight::parse(number).is_none()) {
        return None;
    }
    let own = match column {
        0 | 1 => parse_scaled(numbers.get(2 + column)?, 1)?,
        _ => Weight::parse(numbers.get(4 + column)?)?,
    };
    let inherited = [parse_scaled(numbers.get(4)?, 1)?, parse_scaled(numbers.get(5)?, 1)?];
    Some(Node { depth: indentation(line), name: [words[1], words[0]].join(&b'.'), own, inherited })
}
