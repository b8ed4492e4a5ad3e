//! Reads sorted folded text as a stream, in memory that does not grow with the input.
//!
//! Equal prefixes are adjacent in sorted text, so each line is compared with the previous stack. This gives the number
//! of bytes that both share and proves the order. Only the rest of the line is searched for its end.

use std::cmp::Ordering;
use std::ops::Range;

use super::grammar::{Line, LineKind, ends_like_a_weight, is_comment, parse_line};
use super::line_kind::detect_kind;
use super::sorted_profile::SortedProfile;
use super::stack_order::{OffsetValueCode, common_prefix, compare_stacks};
use crate::Error;
use crate::bytes::BOM;
use crate::input::{Block, Blocks, ReadAhead, last_line_end};
use crate::profile::Weights;

/// A reader of sorted folded text, which checks the order.
pub struct SortedReader {
    name: String,
    source: LineSource,
    lines: Lines,
    /// Index of the next entry of `lines`.
    next: usize,
    current: Entry,
}

enum LineSource {
    SameThread(LineParser),
    ReadAhead(ReadAhead<Lines, Error>),
}

/// Largest number of inputs that are read ahead, each by its own thread.
const MAX_READ_AHEAD: usize = 16;

/// An input whose stacks come in sorted order.
pub enum SortedInput {
    /// Sorted folded text.
    Text(Blocks),
    /// The stacks of a profile.
    Profile(Box<SortedProfile>),
}

/// Reads several inputs, with read-ahead if they are few.
pub fn read_sorted(inputs: impl IntoIterator<Item = SortedInput>) -> Vec<SortedReader> {
    let inputs: Vec<_> = inputs.into_iter().collect();
    let has_read_ahead = inputs.len() <= MAX_READ_AHEAD;
    inputs.into_iter().map(|input| open_sorted(input, has_read_ahead)).collect()
}

fn open_sorted(input: SortedInput, has_read_ahead: bool) -> SortedReader {
    match input {
        SortedInput::Text(text) if has_read_ahead => SortedReader::with_read_ahead(text),
        SortedInput::Text(text) => SortedReader::new(text),
        SortedInput::Profile(mut profile) => {
            let fill = move |lines: &mut Lines| Ok(profile.fill(lines));
            let source = if has_read_ahead { ReadAhead::new(fill) } else { ReadAhead::SameThread(Box::new(fill)) };
            SortedReader::from_source(String::new(), LineSource::ReadAhead(source))
        }
    }
}

/// The result of reading a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineStatus {
    /// A stack: see [`SortedReader::stack`] and the other accessors.
    Stack,
    /// Not a folded line. Reading may continue after it.
    Malformed,
    /// A stack that comes before the previous one, or that sorted text would contain in another form. Reading ends.
    OutOfOrder,
    /// The end of the input.
    #[default]
    End,
}

impl SortedReader {
    /// Creates a reader. The first lines of the input determine whether lines have one weight or two.
    pub fn new(input: Blocks) -> Self {
        Self::from_source(input.name().to_owned(), LineSource::SameThread(LineParser::new(input)))
    }

    /// Creates a reader of an input that starts in the middle of a text, whose lines are of this kind.
    pub(crate) fn with_kind(input: Blocks, kind: LineKind) -> Self {
        Self::from_source(input.name().to_owned(), LineSource::SameThread(LineParser::with_kind(input, kind)))
    }

    /// Like [`new`](Self::new), but another thread reads ahead.
    pub fn with_read_ahead(input: Blocks) -> Self {
        let name = input.name().to_owned();
        let mut parser = LineParser::new(input);
        Self::from_source(name, LineSource::ReadAhead(ReadAhead::new(move |lines| parser.fill(lines))))
    }

    fn from_source(name: String, source: LineSource) -> Self {
        Self { name, source, lines: Lines::default(), next: 0, current: Entry::default() }
    }

    /// Returns the name of the input for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind of the lines, once a line has been read.
    pub fn kind(&self) -> Option<LineKind> {
        self.lines.kind
    }

    /// Returns the number of the current line, from 1.
    pub fn line_number(&self) -> u64 {
        self.current.line_number
    }

    /// Returns the current stack.
    #[inline]
    pub fn stack(&self) -> &[u8] {
        &self.lines.block[self.current.start as usize..][..self.current.length as usize]
    }

    /// Returns the weights of the current stack.
    pub fn weights(&self) -> Weights {
        self.current.weights
    }

    /// Replaces the weights of the current stack.
    pub fn set_weights(&mut self, weights: Weights) {
        self.current.weights = weights;
    }

    /// Returns the number of bytes that the current stack shares with the previous one.
    pub fn shared_bytes(&self) -> usize {
        self.current.code.shared()
    }

    /// Returns the code of the current stack relative to the previous one.
    pub(super) fn code(&self) -> OffsetValueCode {
        self.current.code
    }

    /// Advances to the next line that is not blank.
    ///
    /// # Errors
    /// [`Error::Read`].
    #[inline]
    pub fn next_line(&mut self) -> Result<LineStatus, Error> {
        while self.next == self.lines.entries.len() {
            let filled = match &mut self.source {
                LineSource::SameThread(parser) => parser.fill(&mut self.lines)?,
                LineSource::ReadAhead(ahead) => ahead.next(&mut self.lines)?,
            };
            if !filled {
                self.current = Entry::default();
                return Ok(LineStatus::End);
            }
            self.next = 0;
        }
        self.current = self.lines.entries[self.next];
        self.next += 1;
        Ok(self.current.status)
    }

    /// Advances to the next stack of a file that was found to be sorted before; `false` at the end.
    ///
    /// # Errors
    /// [`Error::Read`], and [`Error::Unreadable`] if the file is no longer sorted.
    #[inline]
    pub fn next_stack(&mut self) -> Result<bool, Error> {
        match self.next_line()? {
            LineStatus::Stack => Ok(true),
            LineStatus::End => Ok(false),
            _ => Err(Error::Unreadable { name: self.name.clone(), what: "changed while it was read".to_owned() }),
        }
    }
}

/// A block of text and its parsed lines.
#[derive(Default)]
pub(super) struct Lines {
    block: Block,
    entries: Vec<Entry>,
    /// The kind of the lines, once a line has been read.
    kind: Option<LineKind>,
}

impl Lines {
    /// Removes all lines and takes the text, into whose end the stacks of the next ones are written.
    pub(super) fn take_text(&mut self) -> Vec<u8> {
        self.entries.clear();
        self.kind = Some(LineKind::Plain);
        self.block.take()
    }

    /// Adds a line whose stack is in this part of the text and shares its first bytes with the stack before.
    pub(super) fn push(&mut self, text: &[u8], stack: Range<usize>, shared: usize, weights: Weights) {
        let (start, length) = (stack.start as u32, stack.len() as u32);
        let code = OffsetValueCode::new(&text[stack], shared);
        self.entries.push(Entry { status: LineStatus::Stack, line_number: 0, start, length, code, weights });
    }

    /// Sets the text that contains the stacks.
    pub(super) fn set_text(&mut self, text: Vec<u8>) {
        self.block = text.into();
    }
}

/// A parsed line that is not blank.
#[derive(Clone, Copy, Default)]
struct Entry {
    status: LineStatus,
    /// The number of the line in the input, from 1; 0 if it is in no text.
    line_number: u64,
    /// Start of its stack in the block.
    start: u32,
    /// Length of its stack in bytes.
    length: u32,
    /// The code of its stack relative to the previous one.
    code: OffsetValueCode,
    weights: Weights,
}

/// Parses the lines of an input, up to one that is out of order.
struct LineParser {
    input: Blocks,
    line_number: u64,
    kind: Option<LineKind>,
    /// The last stack of the previous block.
    last: Vec<u8>,
    at_end: bool,
}

impl LineParser {
    fn new(input: Blocks) -> Self {
        Self { input, line_number: 0, kind: None, last: Vec::new(), at_end: false }
    }

    /// Creates a parser of an input that starts in the middle of a text.
    fn with_kind(input: Blocks, kind: LineKind) -> Self {
        Self { line_number: 1, kind: Some(kind), ..Self::new(input) }
    }

    /// Replaces the lines by those of the next block; `false` at the end.
    fn fill(&mut self, lines: &mut Lines) -> Result<bool, Error> {
        if self.line_number == 0 && self.kind.is_none() {
            self.input.drop_colours()?;
            self.kind = detect_kind(self.input.head()?).map(|detected| detected.kind);
        }
        if self.at_end || !self.input.read_block(&mut lines.block, last_line_end)? {
            return Ok(false);
        }
        lines.entries.clear();
        self.parse_block(&lines.block, &mut lines.entries);
        lines.kind = self.kind;
        Ok(true)
    }

    fn parse_block(&mut self, block: &[u8], entries: &mut Vec<Entry>) {
        let last = std::mem::take(&mut self.last);
        // The text from the last stack on, and the stack's length: more bytes after it make comparing faster.
        let (mut last, mut length) = (last.as_slice(), last.len());
        let mut start = if self.line_number == 0 && block.starts_with(BOM) { 3 } else { 0 };
        while start < block.len() && !self.at_end {
            let rest = &block[start..];
            // The shared bytes contain no line end, since the last stack has none.
            let shared = common_prefix(last, rest).min(length);
            let end = memchr::memchr2(b'\n', b'\r', &rest[shared..]).map_or(rest.len(), |end| shared + end);
            let has_return = rest.get(end) == Some(&b'\r');
            let line = if has_return { first_line(rest) } else { &rest[..end] };
            self.line_number += 1;
            if let Some(parsed) = self.parse_line(line, &last[..length], shared, has_return) {
                let (status, Line { stack, weights }, shared) = parsed;
                let code = OffsetValueCode::new(stack, shared);
                let (start, stack_length) = (start as u32, stack.len() as u32);
                let line_number = self.line_number;
                entries.push(Entry { status, line_number, start, length: stack_length, code, weights });
                self.at_end = status == LineStatus::OutOfOrder;
                if status == LineStatus::Stack {
                    (last, length) = (rest, stack.len());
                }
            }
            start += (line.len() + 1).min(rest.len());
        }
        self.last = last[..length].to_vec();
    }

    /// Parses a line that shares its first `shared` bytes with the last stack.
    ///
    /// Returns its status, its content, and how many of the shared bytes belong to its stack; `None` if it is blank.
    #[inline]
    fn parse_line<'a>(
        &mut self,
        line: &'a [u8],
        last: &[u8],
        shared: usize,
        has_return: bool,
    ) -> Option<(LineStatus, Line<'a>, usize)> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii_end().is_empty() {
            return None;
        }
        let kind = self.kind.unwrap_or(LineKind::Plain);
        let text = line;
        let Some(line) = parse_line(text, kind) else {
            // A line of the other kind is an error, which only other readers report.
            let is_other = kind == LineKind::Differential && parse_line(text, LineKind::Plain).is_some();
            let status = if is_other { LineStatus::OutOfOrder } else { LineStatus::Malformed };
            return Some((status, Line { stack: b"", weights: Weights::default() }, 0));
        };
        self.kind = Some(kind);
        let shared = shared.min(line.stack.len());
        let is_before = compare_stacks(line.stack, last, shared) == Ordering::Less;
        let is_irregular = is_irregular(text, line.stack, has_return);
        let status = if is_before || is_irregular { LineStatus::OutOfOrder } else { LineStatus::Stack };
        Some((status, line, shared))
    }
}

/// Returns true for a line that the writer never writes: it renames the leaf, the line is a comment, or it replaces a
/// byte.
fn is_irregular(line: &[u8], stack: &[u8], has_return: bool) -> bool {
    ends_like_a_weight(stack) || stack.ends_with(b";") || is_comment(line) || (has_return && stack.contains(&b'\r'))
}

fn first_line(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::{LineStatus, SortedReader};
    use crate::input::Blocks;

    fn sorted(text: &str) -> SortedReader {
        let input = Blocks::new("t".to_owned(), Box::new(std::io::Cursor::new(text.as_bytes().to_vec()))).unwrap();
        SortedReader::new(input)
    }

    #[test]
    fn detects_lines_out_of_order() {
        for (text, last) in [
            ("a 1\na;b 2\nb 1\nb 2\n", LineStatus::End),
            ("a;b 1\na 1\n", LineStatus::OutOfOrder),
            ("a;b.cold 1\na;b;c 1\n", LineStatus::OutOfOrder),
            ("a;b\n", LineStatus::Malformed),
            ("a 7 1\n", LineStatus::End),
            ("a; 1\n", LineStatus::OutOfOrder),
            ("a 7 1\nb 2 3\nc 1\n", LineStatus::OutOfOrder),
            ("a;b 1\nx;line 7 1\n", LineStatus::OutOfOrder),
            ("a\rb 1\n", LineStatus::OutOfOrder),
        ] {
            let mut input = sorted(text);
            let mut step = LineStatus::Stack;
            while step == LineStatus::Stack {
                step = input.next_line().unwrap();
            }
            assert_eq!(step, last, "{text:?}");
        }
    }
}
