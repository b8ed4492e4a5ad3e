//! Sorted folded text as a stream, read in memory that does not grow with it.

use super::grammar::Kind;
use super::lines::{Entry, Following, Lines, Reader};
use crate::Error;
use crate::input::{Ahead, Blocks};
use crate::profile::Weights;

/// The lines of one input, of which each stack is at least the one before.
pub struct Sorted {
    name: String,
    reading: Reading,
    lines: Lines,
    next: usize,
    present: Entry,
}

enum Reading {
    Here(Reader),
    Ahead(Ahead<Lines, Error>),
}

/// So many inputs are read ahead, each in a thread of its own.
const FEW: usize = 16;

/// Reads all inputs at once, ahead if they are few.
pub fn sorted(inputs: impl IntoIterator<Item = Blocks>) -> Vec<Sorted> {
    let inputs: Vec<_> = inputs.into_iter().collect();
    let sorted = if inputs.len() <= FEW { Sorted::ahead } else { Sorted::new };
    inputs.into_iter().map(sorted).collect()
}

/// What the next line of an input is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// A stack: see [`Sorted::stack`] and its like.
    Stack,
    /// Not a folded line; it can be passed over.
    Malformed,
    /// A stack that should stand before the last one, or one that is written differently in sorted text.
    Disorder,
    /// There is none.
    #[default]
    End,
}

impl Sorted {
    /// Reads an input; its first line says whether all have one weight or two.
    pub fn new(input: Blocks) -> Self {
        Self::reading(input.name().to_owned(), Reading::Here(Reader::new(input)))
    }

    /// Goes on in the midst of a text.
    pub(crate) fn amid(input: Blocks, kind: Kind) -> Self {
        Self::reading(input.name().to_owned(), Reading::Here(Reader::amid(input, kind)))
    }

    /// The same, read ahead in a thread of its own.
    pub fn ahead(input: Blocks) -> Self {
        let name = input.name().to_owned();
        let mut reader = Reader::new(input);
        Self::reading(name, Reading::Ahead(Ahead::new(move |lines| reader.fill(lines))))
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
    pub(super) fn following(&self) -> Following {
        self.present.following
    }

    /// Goes to the next line that is not blank.
    ///
    /// # Errors
    /// [`Error::Read`].
    #[inline]
    pub fn step(&mut self) -> Result<Step, Error> {
        while self.next == self.lines.entries.len() {
            let filled = match &mut self.reading {
                Reading::Here(reader) => reader.fill(&mut self.lines)?,
                Reading::Ahead(ahead) => ahead.next(&mut self.lines)?,
            };
            if !filled {
                self.present = Entry::default();
                return Ok(Step::End);
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
    pub fn step_on(&mut self) -> Result<bool, Error> {
        match self.step()? {
            Step::Stack => Ok(true),
            Step::End => Ok(false),
            _ => Err(Error::Unreadable { name: self.name.clone(), what: "changed while it was read".to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Sorted, Step};
    use crate::input::Blocks;

    fn sorted(text: &str) -> Sorted {
        let input = Blocks::new("t".to_owned(), Box::new(std::io::Cursor::new(text.as_bytes().to_vec()))).unwrap();
        Sorted::new(input)
    }

    #[test]
    fn disorder_is_seen() {
        for (text, last) in [
            ("a 1\na;b 2\nb 1\nb 2\n", Step::End),
            ("a;b 1\na 1\n", Step::Disorder),
            ("a;b.cold 1\na;b;c 1\n", Step::Disorder),
            ("a;b\n", Step::Malformed),
            ("a 7 1\n", Step::End),
            ("a;b 1\nx;line 7 1\n", Step::Disorder),
            ("a\rb 1\n", Step::Disorder),
        ] {
            let mut input = sorted(text);
            let mut step = Step::Stack;
            while step == Step::Stack {
                step = input.step().unwrap();
            }
            assert_eq!(step, last, "{text:?}");
        }
    }
}
