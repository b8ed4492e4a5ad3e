//! `perf report --stdio --no-children -g folded`: shares of functions, each with shares of its stacks.
//!
//! ```text
//! # Overhead  Command  Shared Object  Symbol
//! # ........  .......  .............  ......
//!     98.70%  app      app            [.] hash
//! 74.87% hash;main;_start
//! 23.83% hash;_start
//! ```

use bstr::ByteSlice as _;

use super::{Format, Reading};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::text;
use crate::profile::Weight;

pub(super) static FORMAT: Format = Format {
    name: "perf-report",
    about: "perf report --stdio --no-children -g folded",
    recognises,
    reading: Reading::Lines(read),
};

fn recognises(head: &[u8]) -> bool {
    text::lines(head).any(is_heading)
}

fn is_heading(line: &[u8]) -> bool {
    line.starts_with(b"#")
        && (line.contains_str("Overhead") || line.contains_str("Children"))
        && line.contains_str("Symbol")
}

/// A line of the table, and its stacks.
#[derive(Default)]
struct Entry {
    share: Weight,
    root: Vec<u8>,
    symbol: Vec<u8>,
    stacks: Vec<(Weight, Vec<u8>)>,
}

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let (mut line, mut entry, mut command) = (Vec::new(), Entry::default(), None);
    document.unit("percent");
    while document.line(&mut line)? {
        if is_heading(&line) {
            if line.contains_str("Children") {
                let what = "perf report has counted stacks once for each of their functions: give it --no-children";
                return Err(document.unreadable(what));
            }
            command = line.find("Command");
        } else if line.is_empty() || line.starts_with(b"#") {
            continue;
        } else if let Some((share, symbol)) = row(&line) {
            std::mem::take(&mut entry).add(document, sink)?;
            let root = command.and_then(|at| text::split_once(line.get(at..)?, "  ")).map(|(name, _)| name.to_vec());
            entry = Entry { share, root: root.unwrap_or_default(), symbol: symbol.to_vec(), stacks: Vec::new() };
        } else if let Some(stack) = stack(&line).filter(|_| !entry.share.is_zero()) {
            entry.stacks.push(stack);
        } else if line.contains_str("---") || line.trim() == b"|" {
            return Err(document.unreadable("a drawn call graph: give perf report --stdio --no-children -g folded"));
        } else {
            document.malformed("neither a share of a function nor one of a stack")?;
        }
    }
    entry.add(document, sink)
}

/// The share and the function of `    98.70%  app      app   [.] hash`.
fn row(line: &[u8]) -> Option<(Weight, &[u8])> {
    let (share, rest) = text::split_once(line, "%")?;
    // `[.]` and `[k]` say where the function runs.
    let place = rest.windows(6).position(|part| part.starts_with(b"  [") && part.ends_with(b"] "))?;
    let weight = Weight::parse(share.trim()).filter(|_| line.starts_with(b" "))?;
    Some((weight, rest[place + 6..].trim()))
}

/// The share, or count, and the frames of `74.87% hash;main;_start`.
fn stack(line: &[u8]) -> Option<(Weight, Vec<u8>)> {
    let (share, frames) = text::split_word(line);
    let weight = Weight::parse(share.strip_suffix(b"%").unwrap_or(share))?;
    (!frames.is_empty() && !weight.is_zero()).then(|| (weight, frames.to_vec()))
}

impl Entry {
    /// Shares the function's share out among its stacks.
    fn add(self, document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        let mut stacks = self.stacks;
        if stacks.is_empty() {
            stacks.push((Weight::ONE, self.symbol.clone()));
        }
        let mut whole = stacks.iter().map(|(weight, _)| weight.millionths()).fold(0, u128::saturating_add);
        let mut rest = self.share.millionths();
        for (weight, frames) in stacks {
            let part = rest.checked_mul(weight.millionths()).ok_or(Error::Overflow)? / whole.max(1);
            (whole, rest) = (whole.saturating_sub(weight.millionths()), rest - part.min(rest));
            let mut names: Vec<&[u8]> = frames.split(|byte| *byte == b';').collect();
            // Callers come last, or first: the end at which the function stands is the leaf.
            if names[0] == self.symbol && names.len() > 1 || names.last().is_some_and(|last| *last != self.symbol) {
                names.reverse();
            }
            let mut stack = Stack::default();
            if !self.root.is_empty() {
                stack.push(&self.root, sink);
            }
            for name in names {
                stack.push(&text::function(name, document.options), sink);
            }
            stack.add(Weight::from_millionths(part), sink)?;
        }
        Ok(())
    }
}
