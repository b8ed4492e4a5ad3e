//! A k-way merge of sorted folded text, in memory that does not grow with the input.
//!
//! It is a loser tree with offset-value codes: for each input the code of its stack relative to the last written stack
//! is known. The input with the lowest code is next, so that mostly numbers are compared and not stacks. A stack that
//! shares all its bytes with the last written one is equal to it.

use std::io::Write;

use super::grammar::LineKind;
use super::sorted_reader::SortedReader;
use super::stack_order::{OffsetValueCode, common_prefix};
use crate::Error;
use crate::profile::Weights;

/// Number of bytes written at once.
const WRITE_SIZE: usize = 256 * 1024;

/// Merges sorted inputs and writes the result to `out`.
///
/// The first line of each input determines whether its lines have one weight or two; all inputs must agree. Lines of
/// `output_kind` are written, or of the kind of the inputs if it is `None`. `advance` moves an input, given with its
/// number, to the next stack and returns `false` at the end. `map` receives the sum of a stack's weights and returns
/// the weights to write.
///
/// # Errors
/// Those of `advance` and `map`, those of `out` as [`Error::Write`] on `name`, [`Error::Overflow`], and
/// [`Error::Unreadable`] if the inputs do not agree on the number of weights.
pub fn merge_sorted(
    inputs: Vec<SortedReader>,
    mut advance: impl FnMut(usize, &mut SortedReader) -> Result<bool, Error>,
    mut map: impl FnMut(Weights) -> Result<Weights, Error>,
    output_kind: Option<LineKind>,
    name: &str,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut kind = None;
    let mut tree = LoserTree::new(inputs.len());
    let mut readers = Vec::with_capacity(inputs.len());
    for (number, mut input) in inputs.into_iter().enumerate() {
        let is_stack = advance(number, &mut input)?;
        let code = if is_stack { OffsetValueCode::new(input.stack(), 0) } else { OffsetValueCode::END };
        if let Some(found) = input.kind() {
            found.check_same(kind, input.name())?;
            kind = Some(found);
        }
        readers.push(input);
        tree.insert(Head { number, code }, &readers);
    }
    let mut writer =
        LineWriter { kind: output_kind.or(kind), text: Vec::with_capacity(WRITE_SIZE + WRITE_SIZE / 8), name, out };
    // The stack whose weights are being added: its length in bytes, and their sum.
    let mut current: Option<(usize, Weights)> = None;
    while tree.winner.code != OffsetValueCode::END {
        let Head { number, code } = tree.winner;
        let input = &mut readers[number];
        let (length, shared) = (input.stack().len(), code.shared());
        match &mut current {
            Some((current_length, sum)) if shared == *current_length && length == *current_length => {
                sum.add(input.weights())?
            }
            _ => {
                if let Some((_, sum)) = current {
                    writer.end_line(map(sum)?)?;
                }
                writer.text.extend_from_slice(input.stack());
                current = Some((length, input.weights()));
            }
        }
        let code = if advance(number, input)? { input.code() } else { OffsetValueCode::END };
        tree.insert(Head { number, code }, &readers);
    }
    if let Some((_, sum)) = current {
        writer.end_line(map(sum)?)?;
    }
    writer.flush()
}

/// An input, with the code of its stack relative to the last winner.
#[derive(Clone, Copy)]
struct Head {
    number: usize,
    code: OffsetValueCode,
}

/// A tournament tree in which each match stores its loser.
///
/// After a win only the matches on the winner's path are played again. Their losers lost to that winner, directly or
/// not, so their codes are relative to it.
struct LoserTree {
    losers: Vec<Option<Head>>,
    winner: Head,
}

impl LoserTree {
    fn new(inputs: usize) -> Self {
        Self { losers: vec![None; inputs], winner: Head { number: 0, code: OffsetValueCode::END } }
    }

    /// Plays the matches of an input from its leaf to the root. While inputs are still missing, it stops and waits at
    /// the first match without an opponent.
    fn insert(&mut self, mut head: Head, readers: &[SortedReader]) {
        let mut node = (head.number + self.losers.len()) / 2;
        while node > 0 {
            let Some(other) = &mut self.losers[node] else {
                self.losers[node] = Some(head);
                return;
            };
            if other.code == head.code && head.code != OffsetValueCode::END {
                // Both share these bytes with the last winner, and so with each other.
                let known = head.code.shared();
                let (a, b) = (readers[other.number].stack(), readers[head.number].stack());
                let shared = known + common_prefix(&a[known..], &b[known..]);
                let [theirs, ours] = [a, b].map(|stack| OffsetValueCode::new(stack, shared));
                if theirs < ours {
                    std::mem::swap(other, &mut head);
                }
                other.code = theirs.max(ours);
            } else if other.code < head.code {
                std::mem::swap(other, &mut head);
            }
            node /= 2;
        }
        self.winner = head;
    }
}

/// A buffer of lines to write.
struct LineWriter<'a> {
    kind: Option<LineKind>,
    text: Vec<u8>,
    name: &'a str,
    out: &'a mut dyn Write,
}

impl LineWriter<'_> {
    /// Appends the weights of the line whose stack is in the buffer.
    fn end_line(&mut self, weights: Weights) -> Result<(), Error> {
        self.text.push(b' ');
        if self.kind == Some(LineKind::Differential) {
            weights.before.write_to(&mut self.text);
            self.text.push(b' ');
        }
        weights.after.write_to(&mut self.text);
        self.text.push(b'\n');
        if self.text.len() >= WRITE_SIZE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let written = self.out.write_all(&self.text);
        self.text.clear();
        written.map_err(|error| Error::write(self.name, error))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::folded::sorted_reader::SortedReader;
    use crate::input::Blocks;

    fn merged(texts: &[String]) -> String {
        let inputs = texts.iter().map(|text| {
            let reader = std::io::Cursor::new(text.as_bytes().to_vec());
            SortedReader::new(Blocks::new("t".to_owned(), Box::new(reader)).unwrap())
        });
        let inputs = inputs.collect();
        let mut out = Vec::new();
        super::merge_sorted(inputs, |_, input| input.next_stack(), Ok, None, "out", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn adds_the_weights_of_equal_stacks() {
        let texts = ["a 1\na;b 2\na;b 3\nc 1\n", "a;b 1\na;b;c 1\nd 0.5", "", "a;b.cold 1\n"].map(str::to_owned);
        assert_eq!(merged(&texts), "a 1\na;b 6\na;b;c 1\na;b.cold 1\nc 1\nd 0.5\n");
        assert_eq!(merged(&[]), "");
    }

    proptest! {
        #[test]
        fn writes_every_stack_once_in_order(
            inputs in prop::collection::vec(prop::collection::vec((prop::collection::vec(0..4usize, 1..5), 1..9u64), 0..30), 0..9),
        ) {
            let names = ["a", "a.b", "long enough for a word or two", "long enough for a word or so"];
            let mut sums = std::collections::BTreeMap::<Vec<&str>, u64>::new();
            let mut texts = Vec::new();
            for input in &inputs {
                let mut lines: Vec<(Vec<&str>, u64)> = input.iter()
                    .map(|(frames, weight)| (frames.iter().map(|frame| names[*frame]).collect(), *weight))
                    .collect();
                lines.sort();
                for (frames, weight) in &lines {
                    *sums.entry(frames.clone()).or_default() += weight;
                }
                texts.push(lines.iter().map(|(frames, weight)| format!("{} {weight}\n", frames.join(";"))).collect());
            }
            let expected: String = sums.iter().map(|(frames, sum)| format!("{} {sum}\n", frames.join(";"))).collect();
            prop_assert_eq!(merged(&texts), expected);
        }
    }
}
