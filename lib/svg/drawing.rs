//! What is to be drawn: stacks, laid out and packed as they come.
//!
//! They come from a profile, or straight from folded text that is in the toolkit's order, or in the order of time, and
//! then nothing but what is drawn is kept.

use super::layout::{Builder, Layout};
use super::options::Options;
use super::payload::{Packer, Payload};
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::{Kind, Line, parse_line, shared_bytes};
use crate::input::{Source, after_last_line};
use crate::profile::{Profile, Weight, Weights};

/// Stacks ready to be drawn.
pub struct Drawing {
    /// The frames that are wide enough.
    pub layout: Layout,
    /// All frames, for the viewer; none in a plain picture.
    pub payload: Option<Payload>,
    /// Whether the stacks have two weights.
    pub differential: bool,
    /// How many stacks there are.
    pub stacks: u64,
}

/// In which order the stacks of a text come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In the toolkit's, if they do.
    Perhaps,
    /// In the toolkit's; it is an error if they do not.
    Sorted,
    /// In that of time, which is kept.
    Time,
}

impl Drawing {
    /// Draws a profile.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn of(profile: &Profile, options: &Options) -> Result<Self, Error> {
        let mut pen = Pen::new(options, profile.is_differential());
        profile.for_each_sorted(|stack| {
            let new = stack.frames[stack.shared..].iter().map(|frame| profile.frames.name(*frame));
            pen.add(stack.shared, new, stack.weights)
        })?;
        pen.finish(options)
    }

    /// Draws folded texts as they are read. `None` if they are not in order where they only might be.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Overflow`], [`Error::Malformed`].
    pub fn read(
        sources: &[Source],
        order: Order,
        options: &Options,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<Self>, Error> {
        let mut reader = Reader {
            order,
            options,
            pen: None,
            kind: None,
            begun: false,
            stack: Vec::new(),
            ends: Vec::new(),
            disordered: false,
        };
        for source in sources {
            match reader.read(source, diagnostics) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(Error::Read { .. } | Error::Unreadable { .. }) if order == Order::Perhaps => return Ok(None),
                Err(error @ (Error::Read { .. } | Error::Unreadable { .. })) => diagnostics.fail(&error),
                Err(error) => return Err(error),
            }
        }
        if order == Order::Time && !reader.disordered && reader.pen.as_ref().is_some_and(|pen| pen.stacks > 1) {
            diagnostics.warn("the stacks are in order of name, not of time: fg-collapse --in-order keeps that of time");
        }
        reader.pen.unwrap_or_else(|| Pen::new(options, false)).finish(options).map(Some)
    }
}

/// Lays out and packs.
struct Pen {
    builder: Builder,
    packer: Option<Packer>,
    differential: bool,
    stacks: u64,
}

impl Pen {
    fn new(options: &Options, differential: bool) -> Self {
        let builder = Builder::new(options.narrowest_share(), options.total);
        Self { builder, packer: (!options.plain).then(|| Packer::new(differential)), differential, stacks: 0 }
    }

    fn add<'a>(
        &mut self,
        shared: usize,
        new: impl Iterator<Item = &'a [u8]> + Clone,
        weights: Weights,
    ) -> Result<(), Error> {
        if let Some(packer) = &mut self.packer {
            packer.add(shared, new.clone(), weights).map_err(|error| Error::write("memory", error))?;
        }
        self.stacks += 1;
        self.builder.add(shared, new, weights)
    }

    fn finish(self, options: &Options) -> Result<Drawing, Error> {
        let payload = self.packer.map(|packer| packer.finish(&options.scheme, &options.name_attributes)).transpose();
        let payload = payload.map_err(|error| Error::write("memory", error))?;
        Ok(Drawing { layout: self.builder.finish(), payload, differential: self.differential, stacks: self.stacks })
    }
}

/// Takes line after line.
struct Reader<'a> {
    order: Order,
    options: &'a Options,
    pen: Option<Pen>,
    kind: Option<Kind>,
    /// Whether the present text's first line was seen.
    begun: bool,
    /// The frames of the line before, with their `;`.
    stack: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    disordered: bool,
}

impl Reader<'_> {
    /// Takes a text; false if the texts must be read otherwise.
    fn read(&mut self, source: &Source, diagnostics: &mut Diagnostics) -> Result<bool, Error> {
        let mut input = source.open()?;
        let name = input.name().to_owned();
        let mut number = 0;
        self.begun = false;
        while let Some(block) = input.next(after_last_line)? {
            let mut rest = block;
            while !rest.is_empty() {
                let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                let line = &rest[..end];
                rest = rest.get(end + 1..).unwrap_or(b"");
                number += 1;
                if !self.line(line.strip_suffix(b"\r").unwrap_or(line), &name, number, diagnostics)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Takes a line; false if the texts must be read otherwise.
    fn line(&mut self, line: &[u8], name: &str, number: u64, diagnostics: &mut Diagnostics) -> Result<bool, Error> {
        let line = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            return Ok(true);
        }
        let kind = self.kind.filter(|_| self.begun).unwrap_or_else(|| Kind::of_first_line(line));
        let Some(Line { stack, weights }) = parse_line(line, kind) else {
            if self.order == Order::Perhaps {
                return Ok(false);
            }
            diagnostics.malformed(name, number, "expected frame;frame;… and a weight, or two as in the first line")?;
            return Ok(true);
        };
        if !std::mem::replace(&mut self.begun, true) {
            kind.agrees(self.kind, name)?;
            self.kind = Some(kind);
        }
        let same = shared_bytes(&self.stack, stack);
        let disordered = self.pen.is_some() && precedes(&stack[same..], &self.stack[same..]);
        self.disordered |= disordered;
        match self.order {
            Order::Perhaps if disordered || would_change(stack) => return Ok(false),
            Order::Sorted if disordered => {
                let what = "not in the order of fg-collapse, which --sorted promises".to_owned();
                return Err(Error::Malformed { name: name.to_owned(), line: number, what });
            }
            _ => {}
        }
        let pen = self.pen.get_or_insert_with(|| Pen::new(self.options, kind == Kind::Differential));
        keep_shared(&mut self.ends, stack, same);
        let (shared, new) = (self.ends.len(), frames_behind(stack, self.ends.last().copied()));
        pen.add(shared, new.clone(), weights)?;
        let mut end = self.ends.last().map_or(0, |end| end + 1);
        for frame in new {
            self.ends.push(end + frame.len());
            end += frame.len() + 1;
        }
        self.stack.truncate(same);
        self.stack.extend_from_slice(&stack[same..]);
        Ok(true)
    }
}

/// Drops the ends of the frames that a stack does not have in common with the one before, by their common bytes.
fn keep_shared(ends: &mut Vec<usize>, stack: &[u8], same: usize) {
    let is_shared = |end: usize| end < same || (end == same && stack.get(end).is_none_or(|byte| *byte == b';'));
    while ends.last().is_some_and(|end| !is_shared(*end)) {
        ends.pop();
    }
}

/// The frames behind the first `end` bytes.
fn frames_behind(stack: &[u8], end: Option<usize>) -> impl Iterator<Item = &[u8]> + Clone {
    let start = end.map_or(0, |end| end + 1);
    stack.get(start..).into_iter().flat_map(|rest| rest.split(|byte| *byte == b';'))
}

/// Whether one stack stands before another, of both what follows their common bytes: `;` is less than any other byte, and
/// a stack's end less than that.
fn precedes(a: &[u8], b: &[u8]) -> bool {
    let rank = |rest: &[u8]| rest.first().map_or(0, |byte| if *byte == b';' { 1 } else { u16::from(*byte) + 2 });
    rank(a) < rank(b)
}

/// Whether a profile would change a name: a leaf that ends in a space and a number, a carriage return.
fn would_change(stack: &[u8]) -> bool {
    let leaf = memchr::memrchr(b';', stack).map_or(0, |last| last + 1);
    let blank = memchr::memrchr2(b' ', b'\t', &stack[leaf..]);
    let like_weight = blank.is_some_and(|blank| Weight::parse(&stack[leaf + blank + 1..]).is_some());
    like_weight || memchr::memchr(b'\r', stack).is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{frames_behind, keep_shared, precedes};
    use crate::folded::shared_bytes;

    proptest! {
        #[test]
        fn stacks_compare_and_share_as_lists_of_frames(a in "[a;.]{1,12}", b in "[a;.]{1,12}") {
            let frames = |stack: &str| stack.split(';').map(str::to_owned).collect::<Vec<_>>();
            let same = shared_bytes(a.as_bytes(), b.as_bytes());
            let mut ends: Vec<usize> = a.match_indices(';').map(|(at, _)| at).chain([a.len()]).collect();
            keep_shared(&mut ends, b.as_bytes(), same);
            let expected = frames(&a).iter().zip(&frames(&b)).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(ends.len(), expected);
            let new = frames_behind(b.as_bytes(), ends.last().copied());
            let new: Vec<_> = new.map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
            prop_assert_eq!(&new, &frames(&b)[expected..]);
            prop_assert_eq!(precedes(&b.as_bytes()[same..], &a.as_bytes()[same..]), frames(&b) < frames(&a));
        }
    }
}
