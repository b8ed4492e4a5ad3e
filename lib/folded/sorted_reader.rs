//! SortedReader folded text as a stream, read in memory that does not grow with it.

use super::grammar::Kind;
use super::stack_order::{Entry, Lines, OffsetValueCode, Reader};
use crate::Error;
use crate::input::{Blocks, ReadAhead};
use crate::profile::Weights;

/// The lines of one input, of which each stack is at least the one before.
pub struct SortedReader {
    name: String,
    reading: Reading,
    lines: Lines,
    next: usize,
    present: Entry,
}

enum Reading {
    Here(Reader),
    Ahead(ReadAhead<Lines, Error>),
}

/// So many inputs are read ahead, each in a thread of its own.
const FEW: usize = 16;

/// Reads all inputs at once, ahead if they are few.
pub fn read_sorted(inputs: impl IntoIterator<Item = Blocks>) -> Vec<SortedReader> {
    let inputs: Vec<_> = inputs.into_iter().collect();
    let sorted = if inputs.len() <= FEW { SortedReader::with_read_ahead } else { SortedReader::new };
    inputs.into_iter().map(sorted).collect()
}

/// What the next line of an input is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineStatus {
    /// A stack: see [`SortedReader::stack`] and its like.
    Stack,
    /// Not a folded line; it can be passed over.
    Malformed,
    /// A stack that should stand before the last one, or one that is written differently in sorted text.
    OutOfOrder,
    /// There is none.
    #[default]
    End,
}

impl SortedReader {
    /// Reads an input; its first line says whether all have one weight or two.
    pub fn new(input: Blocks) -> Self {
        Self::reading(input.name().to_owned(), Reading::Here(Reader::new(input)))
    }

    /// Goes on in the midst of a text.
    pub(crate) fn amid(input: Blocks, kind: Kind) -> Self {
        Self::reading(input.name().to_owned(), Reading::Here(Reader::amid(input, kind)))
    }

    /// The same, read ahead in a thread of its own.
    pub fn with_read_ahead(input: Blocks) -> Self {
        let name = input.name().to_owned();
        let mut reader = Reader::new(input);
        Self::reading(name, Reading::Ahead(ReadAhead::new(move |lines| reader.fill(lines))))
    }

    fn reading(name: String, reading: Reading) -> Self {
        Self { name, reading, lines: Lines::default(), next: 0, present: Entry::default() }
    }

    /// The input's name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether lines have one weight or two, once the first was read.
    pub fn kind(&self) -> Option<Kind> {
        self.lines.kind
    }

    /// The present line's number, from 1.
    pub fn number(&self) -> u64 {
        self.present.number
    }

    /// The present stack.
    #[inline]
    pub fn stack(&self) -> &[u8] {
        &self.lines.block[self.present.start as usize..][..self.present.length as usize]
    }

    /// What it weighs.
    pub fn weights(&self) -> Weights {
        self.present.weights
    }

    /// Makes the present stack weigh something else.
    pub fn set_weights(&mut self, weights: Weights) {
        self.present.weights = weights;
    }

    /// How many bytes it has in common with the stack before it.
    pub fn shared(&self) -> usize {
        self.present.following.shared()
    }

    /// How it follows the stack before it.
    pub(super) fn following(&self) -> OffsetValueCode {
        self.present.following
    }

    /// Goes to the next line that is not blank.
    ///
    /// # Errors
    /// [`Error::Read`].
    #[inline]
    pub fn next_line(&mut self) -> Result<LineStatus, Error> {
        while self.next == self.lines.entries.len() {
            let filled = match &mut self.reading {
                Reading::Here(reader) => reader.fill(&mut self.lines)?,
                Reading::Ahead(ahead) => ahead.next(&mut self.lines)?,
            };
            if !filled {
                self.present = Entry::default();
                return Ok(LineStatus::End);
            }
            self.next = 0;
        }
        self.present = self.lines.entries[self.next];
        self.next += 1;
        Ok(self.present.step)
    }

    /// Goes to the next stack of a file that was found sorted; `false` at the end.
    ///
    /// # Errors
    /// [`Error::Read`], and [`Error::Unreadable`] where it is sorted no longer.
    #[inline]
    pub fn next_stack(&mut self) -> Result<bool, Error> {
        match self.next_line()? {
            LineStatus::Stack => Ok(true),
            LineStatus::End => Ok(false),
            _ => Err(Error::Unreadable { name: self.name.clone(), what: "changed while it was read".to_owned() }),
        }
    }
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
    fn disorder_is_seen() {
        for (text, last) in [
            ("a 1\na;b 2\nb 1\nb 2\n", LineStatus::End),
            ("a;b 1\na 1\n", LineStatus::OutOfOrder),
            ("a;b.cold 1\na;b;c 1\n", LineStatus::OutOfOrder),
            ("a;b\n", LineStatus::Malformed),
            ("a 7 1\n", LineStatus::End),
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
