//! The columns of the table, which `perf report --sort` chooses.
//!
//! ```text
//! # Overhead  Command  Shared Object      Symbol
//! # ........  .......  .................  ......
//!     98.70%  app      app                [.] hash
//! ```

use std::ops::Range;

use bstr::ByteSlice as _;

use crate::collapse::line_helpers::split_once;
use crate::markers;
use crate::profile::Weight;

/// The mark of a function that was inlined into its caller.
pub(super) const INLINED_MARK: &[u8] = b" (inlined)";

/// The columns that are read.
#[derive(Default)]
pub(super) struct Columns {
    command: Option<Range<usize>>,
    /// Each thread's ID and name.
    thread: Option<Range<usize>>,
    module: Option<Range<usize>>,
    has_symbols: bool,
}

/// A row of the table.
pub(super) struct Row {
    /// Percentage of the event.
    pub(super) percent: Weight,
    /// The frame of the thread, with underscores for blanks; empty if no column names it.
    pub(super) root: Vec<u8>,
    /// The function; without a column of functions, the module in brackets or [`markers::UNKNOWN`].
    pub(super) leaf: Vec<u8>,
}

impl Columns {
    /// Returns the columns that a heading and the dots below it tell.
    pub(super) fn parse(heading: &[u8], dots: &[u8]) -> Self {
        let mut columns = Self { has_symbols: has_symbols(heading), ..Self::default() };
        let starts: Vec<usize> = dots.find_iter(" .").map(|blank| blank + 1).collect();
        for (index, start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(usize::MAX);
            let name = heading.get(*start..end.min(heading.len())).unwrap_or_default().trim();
            let column = Some(*start..end);
            match name {
                b"Command" => columns.command = column,
                b"Pid:Command" => columns.thread = column,
                b"Shared Object" => columns.module = column,
                _ => {}
            }
        }
        columns
    }

    /// Parses a row.
    pub(super) fn parse_row(&self, line: &[u8]) -> Option<Row> {
        let (percent, rest) = split_once(line, "%")?;
        let percent = Weight::parse(percent.trim()).filter(|_| line.starts_with(b" ") && rest.starts_with(b"  "))?;
        let leaf = match parse_symbol(rest) {
            Some(symbol) => symbol.to_vec(),
            None if self.has_symbols => return None,
            None => self.module.as_ref().map_or(markers::UNKNOWN.to_vec(), |module| module_frame(field(line, module))),
        };
        let thread = self.thread.as_ref().and_then(|thread| split_once(field(line, thread), ":"));
        let command = self.command.as_ref().map(|command| field(line, command)).or(thread.map(|(_, name)| name));
        Some(Row { percent, root: command.unwrap_or_default().replace(" ", "_"), leaf })
    }
}

/// Returns true for the heading of a table with functions.
pub(super) fn has_symbols(heading: &[u8]) -> bool {
    heading.contains_str("Symbol")
}

/// Returns the field of a row in a column.
fn field<'a>(line: &'a [u8], column: &Range<usize>) -> &'a [u8] {
    line.get(column.start..column.end.min(line.len())).unwrap_or_default().trim()
}

/// Returns the frame of a module whose function is not known.
fn module_frame(module: &[u8]) -> Vec<u8> {
    if module.starts_with(b"[") { module.to_vec() } else { [b"[", module, b"]"].concat() }
}

/// Returns the function of `  app      app   [.] hash`.
fn parse_symbol(row: &[u8]) -> Option<&[u8]> {
    // `[.]` is user space, `[k]` the kernel.
    let level = row.windows(6).position(|part| part.starts_with(b"  [") && part.ends_with(b"] "))?;
    let name = row[level + 6..].trim();
    Some(name.strip_suffix(INLINED_MARK).unwrap_or(name))
}
