//! Merging sorted folded text, in memory that does not grow with it.
//!
//! Of each input is known how its stack follows the last one written: how many bytes both share, and what comes then. The
//! one that shares most comes next, so that mostly numbers are compared and not the stacks; and one that shares all is the
//! same stack.

use std::io::{self, Write};

use super::grammar::Kind;
use super::sorted_reader::SortedReader;
use super::stack_order::{OffsetValueCode, shared_bytes};
use crate::Error;
use crate::profile::Weights;

/// How much is written at once.
const BLOCK: usize = 256 * 1024;

/// Merges sorted inputs and writes the result. All have one weight or two, as the first line of each says, and as many are
/// written, unless `written` says otherwise. `step` goes to the next stack of an input, `false` at its end; `each` gets
/// what a stack weighs in all inputs, and says what is written.
///
/// # Errors
/// Those of `step` and of `out`, which are named `name`, [`Error::Overflow`], and [`Error::Unreadable`] if one input has
/// not as many weights as another.
pub fn merge_sorted(
    inputs: Vec<SortedReader>,
    mut step: impl FnMut(usize, &mut SortedReader) -> Result<bool, Error>,
    mut each: impl FnMut(Weights) -> Result<Weights, Error>,
    written: Option<Kind>,
    name: &str,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut kind = None;
    let mut tournament = Tournament::new(inputs.len());
    let mut heads = Vec::with_capacity(inputs.len());
    for (number, mut input) in inputs.into_iter().enumerate() {
        let is_stack = step(number, &mut input)?;
        let following = if is_stack { OffsetValueCode::new(input.stack(), 0) } else { OffsetValueCode::END };
        if let Some(found) = input.kind() {
            found.agrees(kind, input.name())?;
            kind = Some(found);
        }
        heads.push(input);
        tournament.play(Head { number, following }, &heads);
    }
    let mut lines = Lines { kind: written.or(kind), text: Vec::with_capacity(BLOCK + BLOCK / 8), name, out };
    // The stack that is being added up: its length in the text, and what it weighs so far.
    let mut present: Option<(usize, Weights)> = None;
    while tournament.winner.following != OffsetValueCode::END {
        let Head { number, following } = tournament.winner;
        let input = &mut heads[number];
        let (length, shared) = (input.stack().len(), following.shared());
        match &mut present {
            Some((same, sum)) if shared == *same && length == *same => sum.add(input.weights())?,
            _ => {
                if let Some((_, sum)) = present {
                    lines.end(each(sum)?)?;
                }
                lines.text.extend_from_slice(input.stack());
                present = Some((length, input.weights()));
            }
        }
        let following = if step(number, input)? { input.following() } else { OffsetValueCode::END };
        tournament.play(Head { number, following }, &heads);
    }
    if let Some((_, sum)) = present {
        lines.end(each(sum)?)?;
    }
    lines.write()
}

/// An input, and how its stack follows the last winner's.
#[derive(Clone, Copy)]
struct Head {
    number: usize,
    following: OffsetValueCode,
}

/// A tree of matches, in which each match keeps its loser, so that after a win only those on the winner's way are played
/// again. All of them were lost, directly or not, to that winner, so they know how they follow it.
struct Tournament {
    losers: Vec<Option<Head>>,
    winner: Head,
}

impl Tournament {
    fn new(inputs: usize) -> Self {
        Self { losers: vec![None; inputs], winner: Head { number: 0, following: OffsetValueCode::END } }
    }

    /// Plays one input's matches from its first on; while some have not come yet, up to the one where it waits for them.
    fn play(&mut self, mut head: Head, inputs: &[SortedReader]) {
        let mut place = (head.number + self.losers.len()) / 2;
        while place > 0 {
            let Some(other) = &mut self.losers[place] else {
                self.losers[place] = Some(head);
                return;
            };
            if other.following == head.following && head.following != OffsetValueCode::END {
                // What they share with the last winner, and the byte behind it.
                let known = head.following.shared();
                let (a, b) = (inputs[other.number].stack(), inputs[head.number].stack());
                let shared = known + shared_bytes(&a[known..], &b[known..]);
                let [theirs, ours] = [a, b].map(|stack| OffsetValueCode::new(stack, shared));
                if theirs < ours {
                    std::mem::swap(other, &mut head);
                }
                other.following = theirs.max(ours);
            } else if other.following < head.following {
                std::mem::swap(other, &mut head);
            }
            place /= 2;
        }
        self.winner = head;
    }
}

/// Lines on their way out.
struct Lines<'a> {
    kind: Option<Kind>,
    text: Vec<u8>,
    name: &'a str,
    out: &'a mut dyn Write,
}

impl Lines<'_> {
    /// Ends a line.
    fn end(&mut self, weights: Weights) -> Result<(), Error> {
        self.text.push(b' ');
        if self.kind == Some(Kind::Differential) {
            weights.before.write_to(&mut self.text);
            self.text.push(b' ');
        }
        weights.after.write_to(&mut self.text);
        self.text.push(b'\n');
        if self.text.len() >= BLOCK { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Error> {
        let written: io::Result<()> = self.out.write_all(&self.text);
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
        let input = |text: &String| {
            let input = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
            Blocks::new("t".to_owned(), input).unwrap()
        };
        let inputs = texts.iter().map(|text| SortedReader::new(input(text))).collect();
        let mut out = Vec::new();
        super::merge_sorted(inputs, |_, input| input.next_stack(), Ok, None, "out", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn inputs_are_merged() {
        let texts = ["a 1\na;b 2\na;b 3\nc 1\n", "a;b 1\na;b;c 1\nd 0.5", "", "a;b.cold 1\n"].map(str::to_owned);
        assert_eq!(merged(&texts), "a 1\na;b 6\na;b;c 1\na;b.cold 1\nc 1\nd 0.5\n");
        assert_eq!(merged(&[]), "");
    }

    proptest! {
        #[test]
        fn every_stack_stands_once_and_in_order(
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
