//! Drawing folded text line by line, in memory that does not grow with it: sorted, or in the order of time.

use super::drawing::{Drawing, Pen};
use super::options::Options;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::sorted_reader::{LineStatus, SortedReader};
use crate::folded::{self, Kind, StackSink};
use crate::input::Source;
use crate::profile::{FrameId, Frames, Weights};

impl Drawing {
    /// Draws a folded text that is in the toolkit's order. `None` if it is not, unless that is `promised`.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Overflow`], and if order is promised [`Error::Malformed`].
    pub fn of_sorted(
        source: &Source,
        promised: bool,
        options: &Options,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<Self>, Error> {
        let mut input = SortedReader::with_read_ahead(source.open()?);
        let (mut pen, mut ends) = (None, Vec::new());
        loop {
            match input.next_line()? {
                LineStatus::Stack => {
                    let pen = pen.get_or_insert_with(|| Pen::new(options, input.kind() == Some(Kind::Differential)));
                    let shared = go_on(&mut ends, input.stack(), input.shared());
                    pen.add(shared, frames(input.stack(), &ends, shared), input.weights())?;
                }
                LineStatus::End => break,
                _ if !promised => return Ok(None),
                LineStatus::Malformed => {
                    let what = "expected frame;frame;… and a weight, or two as in the first line";
                    diagnostics.malformed(input.name(), input.number(), what)?;
                }
                LineStatus::OutOfOrder => {
                    let what = "not in the order of fg-collapse, which --sorted promises".to_owned();
                    return Err(Error::Malformed { name: input.name().to_owned(), line: input.number(), what });
                }
            }
        }
        pen.unwrap_or_else(|| Pen::new(options, false)).finish(options).map(Some)
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

impl StackSink for Chart<'_> {
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

    proptest! {
        #[test]
        fn stacks_share_as_lists_of_frames(a in "[a;.]{1,12}", b in "[a;.]{1,12}") {
            let expected = |stack: &str| stack.split(';').map(str::to_owned).collect::<Vec<_>>();
            let mut ends = Vec::new();
            prop_assert_eq!(go_on(&mut ends, a.as_bytes(), 0), 0);
            let shared = go_on(&mut ends, b.as_bytes(), a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count());
            prop_assert_eq!(shared, expected(&a).iter().zip(&expected(&b)).take_while(|(a, b)| a == b).count());
            let all: Vec<_> = frames(b.as_bytes(), &ends, 0).map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
            prop_assert_eq!(&all, &expected(&b));
            prop_assert_eq!(frames(b.as_bytes(), &ends, shared).count(), all.len() - shared);
        }
    }
}
