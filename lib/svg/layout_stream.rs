//! Draws folded text line by line, sorted or in time order. Memory does not grow with the input.

use super::drawing::{Drawing, DrawingBuilder};
use super::options::Options;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::folded::sorted_reader::{LineStatus, SortedReader};
use crate::folded::{self, LineKind, StackSink, shares_frame};
use crate::input::Source;
use crate::profile::{FrameId, Frames, Weights};

/// Draws sorted folded text. If `is_promised` is false, returns `None` at the first line that is malformed or out of
/// order.
///
/// # Errors
/// [`Error::Read`], [`Error::Overflow`], and if `is_promised` is true [`Error::Malformed`] for a line out of order.
pub(super) fn draw_sorted(
    source: &Source,
    is_promised: bool,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Result<Option<Drawing>, Error> {
    let mut input = SortedReader::with_read_ahead(source.open()?);
    let (mut builder, mut ends) = (None, Vec::new());
    loop {
        match input.next_line()? {
            LineStatus::Stack => {
                let is_differential = input.kind() == Some(LineKind::Differential);
                let builder = builder.get_or_insert_with(|| DrawingBuilder::new(options, is_differential));
                let shared = update_frame_ends(&mut ends, input.stack(), input.shared_bytes());
                builder.add_names(shared, frames_from(shared, input.stack(), &ends), input.weights())?;
            }
            LineStatus::End => break,
            _ if !is_promised => return Ok(None),
            LineStatus::Malformed => {
                let what = "expected frame;frame;… and a weight, or two as in the first line";
                diagnostics.malformed(input.name(), input.line_number(), what)?;
            }
            LineStatus::OutOfOrder => {
                let what = "out of order: --sorted needs input in the order of fg-collapse; omit --sorted";
                let (name, line) = (input.name().to_owned(), input.line_number());
                return Err(Error::Malformed { name, line, what: what.to_owned() });
            }
        }
    }
    builder.unwrap_or_else(|| DrawingBuilder::new(options, false)).finish(options).map(Some)
}

/// Draws a flame chart: folded text in the order of its lines, which is time order.
///
/// Warns if the stacks are sorted by name, because their order in time is then lost.
///
/// # Errors
/// [`Error::Overflow`], and with strict diagnostics [`Error::Malformed`].
pub(super) fn draw_in_time_order(
    sources: &[Source],
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Result<Drawing, Error> {
    let mut chart = FlameChart::new(options);
    folded::read_all(sources, &mut chart, diagnostics)?;
    if chart.is_sorted_by_name && chart.builder.stack_count() > 1 {
        diagnostics.warn(
            "--flamechart: the stacks are sorted by name, not by time; fg-collapse --in-order keeps the time order",
        );
    }
    chart.builder.finish(options)
}

/// Updates the ends of the previous stack's frames to those of `stack`. The first `same` bytes of both stacks are
/// equal. Returns the number of frames that both share.
fn update_frame_ends(ends: &mut Vec<usize>, stack: &[u8], same: usize) -> usize {
    while ends.last().is_some_and(|end| !shares_frame(*end, stack, same)) {
        ends.pop();
    }
    let shared = ends.len();
    let start = ends.last().map_or(0, |end| end + 1);
    if let Some(rest) = stack.get(start..) {
        ends.extend(memchr::memchr_iter(b';', rest).map(|offset| start + offset).chain([stack.len()]));
    }
    shared
}

/// Returns the frames of a stack from index `first` on.
fn frames_from<'a>(first: usize, stack: &'a [u8], ends: &'a [usize]) -> impl Iterator<Item = &'a [u8]> + Clone {
    (first..ends.len()).map(move |frame| {
        let start = if frame == 0 { 0 } else { ends[frame - 1] + 1 };
        &stack[start..ends[frame]]
    })
}

/// A flame chart as it is read.
struct FlameChart<'a> {
    frames: Frames,
    last: Vec<FrameId>,
    builder: DrawingBuilder,
    options: &'a Options,
    /// True as long as no stack is out of order by name.
    is_sorted_by_name: bool,
}

impl<'a> FlameChart<'a> {
    fn new(options: &'a Options) -> Self {
        let builder = DrawingBuilder::new(options, false);
        Self { frames: Frames::new(), last: Vec::new(), builder, options, is_sorted_by_name: true }
    }
}

impl StackSink for FlameChart<'_> {
    fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    fn begin(&mut self, kind: LineKind) {
        self.builder = DrawingBuilder::new(self.options, kind == LineKind::Differential);
    }

    fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
        let names = &self.frames;
        // The first frames in which the stacks differ. `None`, the end of a stack, is less than any name.
        let (last, next) = (self.last.get(shared), stack.get(shared));
        self.is_sorted_by_name &= last.map(|frame| names.name(*frame)) <= next.map(|frame| names.name(*frame));
        self.last.clear();
        self.last.extend_from_slice(stack);
        self.builder.add_names(shared, stack[shared..].iter().map(|frame| names.name(*frame)), weights)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{frames_from, update_frame_ends};

    fn split(stack: &str) -> Vec<String> {
        stack.split(';').map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn counts_shared_frames_not_bytes(a in "[a;.]{1,12}", b in "[a;.]{1,12}") {
            let mut ends = Vec::new();
            prop_assert_eq!(update_frame_ends(&mut ends, a.as_bytes(), 0), 0);
            let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            let shared = update_frame_ends(&mut ends, b.as_bytes(), same);
            prop_assert_eq!(shared, split(&a).iter().zip(&split(&b)).take_while(|(a, b)| a == b).count());
            let all = frames_from(0, b.as_bytes(), &ends);
            let all: Vec<_> = all.map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
            prop_assert_eq!(&all, &split(&b));
            prop_assert_eq!(frames_from(shared, b.as_bytes(), &ends).count(), all.len() - shared);
        }
    }
}
