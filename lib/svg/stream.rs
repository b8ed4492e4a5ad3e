//! Drawing folded text line by line, in memory that does not grow with it: sorted, or in the order of time.

use super::drawing::{Drawing, Pen};
use super::options::Options;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::sorted::{Sorted, Step};
use crate::folded::{self, Kind, Target};
use crate::input::Source;
use crate::profile::{FrameId, Frames, Weights};

impl Drawing {
    /// Draws folded texts that are in the toolkit's order, one after the other. `None` if they are not, unless that is
    /// `promised`.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Overflow`], and if order is promised [`Error::Malformed`].
    pub fn of_sorted(
        sources: &[Source],
        promised: bool,
        options: &Options,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<Self>, Error> {
        let mut line = Line::default();
        for source in sources {
            match line.read(source, promised, options, diagnostics) {
                Ok(true) => {}
                Ok(false) | Err(Error::Read { .. } | Error::Unreadable { .. }) if !promised => return Ok(None),
                Err(error @ (Error::Read { .. } | Error::Unreadable { .. })) => diagnostics.fail(&error),
                other => _ = other?,
            }
        }
        line.pen.unwrap_or_else(|| Pen::new(options, false)).finish(options).map(Some)
    }

    /// Draws folded texts in the order of their lines, which is that of time.
    ///
    /// # Errors
    /// [`Error::Overflow`], and with strict diagnostics [`Error::Malformed`].
    pub fn of_time(sources: &[Source], options: &Options, diagnostics: &mut Diagnostics) -> Result<Self, Error> {
        let mut chart =
            Chart { frames: Frames::new(), last: Vec::new(), pen: Pen::new(options, false), options, is_by_name: true };
        folded::read_all(sources, &mut chart, diagnostics)?;
        if chart.is_by_name && chart.pen.stacks() > 1 {
            diagnostics.warn("the stacks are in order of name, not of time: fg-collapse --in-order keeps that of time");
        }
        chart.pen.finish(options)
    }
}

/// The present line of sorted texts.
#[derive(Default)]
struct Line {
    pen: Option<Pen>,
    kind: Option<Kind>,
    /// Where each frame of the stack ends.
    ends: Vec<usize>,
    /// The last stack of the text before.
    last: Vec<u8>,
}

impl Line {
    /// Takes a text; false if the texts must be read otherwise.
    fn read(
        &mut self,
        source: &Source,
        promised: bool,
        options: &Options,
        diagnostics: &mut Diagnostics,
    ) -> Result<bool, Error> {
        let mut input = Sorted::new(source.open()?);
        let mut is_first = true;
        loop {
            let step = match input.step()? {
                Step::Stack if is_first && folded::sorted::is_less(input.stack(), &self.last) => Step::Disorder,
                step => step,
            };
            match step {
                Step::Stack => {}
                Step::End => break,
                _ if !promised => return Ok(false),
                Step::Malformed => {
                    let what = "expected frame;frame;… and a weight, or two as in the first line";
                    diagnostics.malformed(input.name(), input.number(), what)?;
                    continue;
                }
                Step::Disorder => {
                    let what = "not in the order of fg-collapse, which --sorted promises".to_owned();
                    return Err(Error::Malformed { name: input.name().to_owned(), line: input.number(), what });
                }
            }
            if is_first {
                let kind = input.kind().unwrap_or(Kind::Plain);
                kind.agrees(self.kind, input.name())?;
                self.kind = Some(kind);
            }
            let pen = self.pen.get_or_insert_with(|| Pen::new(options, input.kind() == Some(Kind::Differential)));
            let same = if is_first { folded::shared_bytes(input.stack(), &self.last) } else { input.shared() };
            is_first = false;
            let shared = go_on(&mut self.ends, input.stack(), same);
            pen.add(shared, frames(input.stack(), &self.ends, shared), input.weights())?;
        }
        if !is_first {
            self.last.clear();
            self.last.extend_from_slice(input.stack());
        }
        Ok(true)
    }
}

/// Makes the ends of the last stack's frames those of this one, which has its first bytes in common with it. Returns how
/// many frames both share.
fn go_on(ends: &mut Vec<usize>, stack: &[u8], same: usize) -> usize {
    let is_shared = |end: usize| end < same || (end == same && stack.get(end).is_none_or(|byte| *byte == b';'));
    while ends.last().is_some_and(|end| !is_shared(*end)) {
        ends.pop();
    }
    let shared = ends.len();
    let start = ends.last().map_or(0, |end| end + 1);
    if let Some(rest) = stack.get(start..) {
        ends.extend(memchr::memchr_iter(b';', rest).map(|at| start + at).chain([stack.len()]));
    }
    shared
}

/// The frames behind the first so many.
fn frames<'a>(stack: &'a [u8], ends: &'a [usize], shared: usize) -> impl Iterator<Item = &'a [u8]> + Clone {
    let start = |frame: usize| if frame == 0 { 0 } else { ends[frame - 1] + 1 };
    (shared..ends.len()).map(move |frame| &stack[start(frame)..ends[frame]])
}

/// Draws as time goes.
struct Chart<'a> {
    frames: Frames,
    last: Vec<FrameId>,
    pen: Pen,
    options: &'a Options,
    is_by_name: bool,
}

impl Target for Chart<'_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn begin(&mut self, kind: Kind) {
        self.pen = Pen::new(self.options, kind == Kind::Differential);
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        let name = |stack: &[FrameId]| stack.get(shared).map(|frame| self.frames.name(*frame).to_vec());
        self.is_by_name &= name(&self.last) <= name(stack);
        self.last.clear();
        self.last.extend_from_slice(stack);
        self.pen.add(shared, stack[shared..].iter().map(|frame| self.frames.name(*frame)), weights)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{frames, go_on};
    use crate::folded::shared_bytes;

    proptest! {
        #[test]
        fn stacks_share_as_lists_of_frames(a in "[a;.]{1,12}", b in "[a;.]{1,12}") {
            let expected = |stack: &str| stack.split(';').map(str::to_owned).collect::<Vec<_>>();
            let mut ends = Vec::new();
            prop_assert_eq!(go_on(&mut ends, a.as_bytes(), 0), 0);
            let shared = go_on(&mut ends, b.as_bytes(), shared_bytes(a.as_bytes(), b.as_bytes()));
            prop_assert_eq!(shared, expected(&a).iter().zip(&expected(&b)).take_while(|(a, b)| a == b).count());
            let all: Vec<_> = frames(b.as_bytes(), &ends, 0).map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
            prop_assert_eq!(&all, &expected(&b));
            prop_assert_eq!(frames(b.as_bytes(), &ends, shared).count(), all.len() - shared);
        }
    }
}
