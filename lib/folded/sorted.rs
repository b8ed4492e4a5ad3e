//! Sorted folded text as a stream: read, and merged, in memory that does not grow with it.
//!
//! Equal prefixes are adjacent in sorted text, so each line is compared with the one before it, which says how many
//! bytes both share and proves the order; and where several inputs are merged, mostly these numbers are compared and not
//! the lines.

use std::cmp::Ordering;
use std::io::{self, Write};

use super::read::{Kind, Line, parse_line};
use crate::Error;
use crate::input::{Block, Blocks, after_last_line};
use crate::profile::{Weight, Weights};

/// The lines of one input, of which each stack is at least the one before.
pub struct Sorted {
    input: Blocks,
    block: Block,
    taken: usize,
    /// Whether the block holds a carriage return.
    returns: bool,
    number: u64,
    kind: Option<Kind>,
    stack: Vec<u8>,
    weights: Weights,
    shared: usize,
}

/// What the next line of an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A stack: see [`Sorted::stack`] and its like.
    Stack,
    /// Not a folded line; it can be passed over.
    Malformed,
    /// A stack that should stand before the last one, or one that is written differently in sorted text.
    Disorder,
    /// There is none.
    End,
}

impl Sorted {
    /// Reads an input; its first line says whether all have one weight or two.
    pub fn new(input: Blocks) -> Self {
        let weights = Weights::plain(Weight::ZERO);
        Self {
            input,
            block: Block::default(),
            taken: 0,
            returns: false,
            number: 0,
            kind: None,
            stack: Vec::new(),
            weights,
            shared: 0,
        }
    }

    /// The input's name for messages.
    pub fn name(&self) -> &str {
        self.input.name()
    }

    /// The present line's number, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether lines have one weight or two, once the first was read.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The present stack.
    pub fn stack(&self) -> &[u8] {
        &self.stack
    }

    /// What it weighs.
    pub fn weights(&self) -> Weights {
        self.weights
    }

    /// Makes the present stack weigh something else.
    pub fn set_weights(&mut self, weights: Weights) {
        self.weights = weights;
    }

    /// How many bytes it has in common with the stack before it.
    pub fn shared(&self) -> usize {
        self.shared
    }

    /// Goes to the next line that is not blank.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn step(&mut self) -> Result<Step, Error> {
        loop {
            if self.taken == self.block.len() {
                if !self.input.next_into(&mut self.block, after_last_line)? {
                    return Ok(Step::End);
                }
                self.returns = memchr::memchr(b'\r', &self.block).is_some();
                let bom = self.number == 0 && self.block.starts_with(b"\xef\xbb\xbf");
                self.taken = if bom { 3 } else { 0 };
            }
            let rest = &self.block[self.taken..];
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            self.taken += (end + 1).min(rest.len());
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let kind = self.kind.unwrap_or_else(|| Kind::of_first_line(line));
                let Some(line) = parse_line(line, kind) else { return Ok(Step::Malformed) };
                self.kind = Some(kind);
                let (shared, order) = compare(line.stack, &self.stack, 0);
                let returns = self.returns && line.stack.contains(&b'\r');
                if order == Ordering::Less || returns || ends_like_a_weight(line.stack) {
                    return Ok(Step::Disorder);
                }
                let Line { stack, weights } = line;
                self.stack.truncate(shared);
                self.stack.extend_from_slice(&stack[shared..]);
                (self.weights, self.shared) = (weights, shared);
                return Ok(Step::Stack);
            }
        }
    }
}

/// Whether what follows the stack's last blank reads as a weight: our writer does not leave it so.
fn ends_like_a_weight(stack: &[u8]) -> bool {
    let blank = || memchr::memrchr2(b' ', b'\t', stack).map(|blank| &stack[blank + 1..]);
    stack.last().is_some_and(u8::is_ascii_digit) && blank().and_then(Weight::parse).is_some()
}

/// Whether one stack stands before another.
pub(crate) fn is_less(a: &[u8], b: &[u8]) -> bool {
    compare(a, b, 0).1 == Ordering::Less
}

/// How many bytes two stacks share, which are known to share some, and their order: by frames, a stack before its
/// extensions.
fn compare(a: &[u8], b: &[u8], known: usize) -> (usize, Ordering) {
    let shared = known + shared_bytes(&a[known..], &b[known..]);
    let rank = |stack: &[u8]| stack.get(shared).map(|byte| if *byte == b';' { 0 } else { u16::from(*byte) + 1 });
    (shared, rank(a).cmp(&rank(b)))
}

/// How many bytes two texts have in common at their beginning.
pub(crate) fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    let mut shared = 0;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let differs = word(a) ^ word(b);
        if differs != 0 {
            return shared + differs.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    shared + a[shared..].iter().zip(&b[shared..]).take_while(|(a, b)| a == b).count()
}

/// Merges sorted inputs and writes the result. All have one weight or two, as the first line of each says, and as many are
/// written, unless `written` says otherwise. `step` goes to the next stack of an input, `false` at its end; `each` gets what a
/// stack weighs in all inputs, and says what is written.
///
/// # Errors
/// Those of `step` and of `out`, which are named `name`, [`Error::Overflow`], and [`Error::Unreadable`] if one input has
/// not as many weights as another.
pub fn merge(
    inputs: &mut [Sorted],
    mut step: impl FnMut(usize, &mut Sorted) -> Result<bool, Error>,
    mut each: impl FnMut(Weights) -> Result<Weights, Error>,
    written: Option<Kind>,
    name: &str,
    out: &mut dyn Write,
) -> Result<(), Error> {
    // Of each input that has not ended: its number, and how many bytes its stack shares with the last one written.
    let mut heads: Vec<(usize, usize)> = Vec::new();
    let mut kind = None;
    for (number, input) in inputs.iter_mut().enumerate() {
        if step(number, input)? {
            let found = input.kind.unwrap_or(Kind::Plain);
            found.agrees(kind, input.name())?;
            kind = Some(found);
            heads.push((number, 0));
        }
    }
    let mut line = Vec::new();
    while let Some(longest) = heads.iter().map(|(_, shared)| *shared).max() {
        let nearest = |(_, shared): &&(usize, usize)| *shared == longest;
        let first = heads.iter().filter(nearest).map(|(number, _)| *number).reduce(|first, other| {
            let (_, order) = compare(inputs[other].stack(), inputs[first].stack(), longest);
            if order == Ordering::Less { other } else { first }
        });
        let Some(first) = first else { break };
        line.truncate(longest);
        line.extend_from_slice(&inputs[first].stack()[longest..]);
        let mut sum = Weights::plain(Weight::ZERO);
        let mut ended = false;
        for (number, shared) in heads.iter_mut().filter(|head| head.1 == longest) {
            let (common, order) = compare(inputs[*number].stack(), &line, longest);
            *shared = common;
            if order == Ordering::Equal {
                while {
                    sum.add(inputs[*number].weights())?;
                    let more = step(*number, &mut inputs[*number])?;
                    *shared = if more { inputs[*number].shared() } else { usize::MAX };
                    more && inputs[*number].stack().len() == line.len() && *shared == line.len()
                } {}
                ended |= *shared == usize::MAX;
            }
        }
        if ended {
            heads.retain(|(_, shared)| *shared != usize::MAX);
        }
        write_line(&mut line, each(sum)?, written.or(kind), out).map_err(|error| Error::write(name, error))?;
    }
    Ok(())
}

fn write_line(line: &mut Vec<u8>, weights: Weights, kind: Option<Kind>, out: &mut dyn Write) -> io::Result<()> {
    let length = line.len();
    line.push(b' ');
    if kind == Some(Kind::Differential) {
        weights.before.write_to(line);
        line.push(b' ');
    }
    weights.after.write_to(line);
    line.push(b'\n');
    out.write_all(line)?;
    line.truncate(length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::{Sorted, Step, compare};
    use crate::input::Blocks;

    fn sorted(text: &str) -> Sorted {
        let input = Blocks::new("t".to_owned(), Box::new(std::io::Cursor::new(text.as_bytes().to_vec()))).unwrap();
        Sorted::new(input)
    }

    #[test]
    fn the_order_is_by_frames() {
        for pair in [
            "a",
            "a;b",
            "a;b;c",
            "a;b.cold",
            "a;bb",
            "a;c",
            "a b;c",
            "aa",
            "long enough for words;x",
            "long enough for words;y",
        ]
        .windows(2)
        {
            let order = compare(pair[0].as_bytes(), pair[1].as_bytes(), 0).1;
            assert_eq!(order, Ordering::Less, "{pair:?}");
        }
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

    #[test]
    fn inputs_are_merged() {
        let mut inputs = ["a 1\na;b 2\na;b 3\nc 1\n", "a;b 1\na;b;c 1\nd 0.5", "", "a;b.cold 1\n"].map(sorted);
        let mut out = Vec::new();
        super::merge(&mut inputs, |_, input| Ok(input.step()? == Step::Stack), Ok, None, "out", &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a 1\na;b 6\na;b;c 1\na;b.cold 1\nc 1\nd 0.5\n");
    }
}
