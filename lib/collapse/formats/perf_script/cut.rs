//! Texts that are cut short.

use rustc_hash::FxHashSet;

use super::header::{self, Line};
use super::{PerfScript, State, frame};
use crate::Error;
use crate::collapse::parser::{BlockReport, CutEnd};
use crate::collapse::sink::Sink;
use crate::markers;
use crate::profile::FrameId;

/// The stacks of a block that are below the first lines of their samples.
#[derive(Debug, Default)]
pub(super) struct BlockStacks {
    /// The event of the last one, empty if there is none.
    event: Vec<u8>,
    /// True if a blank line follows one.
    pub(super) end_with_blanks: bool,
    /// The outermost frames.
    outermost: FxHashSet<FrameId>,
}

/// The stacks of the first block, for parsers whose frames have other IDs.
#[derive(Debug)]
pub(super) struct FirstStacks {
    event: Vec<u8>,
    end_with_blanks: bool,
    outermost: FxHashSet<Vec<u8>>,
}

impl BlockStacks {
    pub(super) fn clear(&mut self) {
        self.event.clear();
        self.end_with_blanks = false;
        self.outermost.clear();
    }

    /// Adds the stack of a sample.
    pub(super) fn add(&mut self, outermost: FrameId, event: &[u8]) {
        if self.event != event {
            self.event = event.to_vec();
        }
        self.outermost.insert(outermost);
    }

    pub(super) fn named(&self, sink: &Sink) -> FirstStacks {
        FirstStacks {
            event: self.event.clone(),
            end_with_blanks: self.end_with_blanks,
            outermost: self.outermost.iter().map(|frame| sink.frames().name(*frame).to_vec()).collect(),
        }
    }
}

/// Splits off the last line if a text ends within it: it has no line end, and does not end with the module of a frame. A part
/// of a symbol would look like another function, and a part of a number like another weight.
pub(super) fn split_cut_line(text: &[u8]) -> (&[u8], &[u8]) {
    let (before, last) = text.split_at(memchr::memrchr(b'\n', text).map_or(0, |end| end + 1));
    if ends_with_frame(last) { (text, b"") } else { (before, last) }
}

/// Returns true for a whole frame, or the first line of a sample with one.
fn ends_with_frame(line: &[u8]) -> bool {
    let frame = match header::parse(line) {
        Some(Line::Sample(header)) => header.frame(),
        _ => frame::parse(line),
    };
    let Some(module) = frame.and_then(|frame| frame.module) else { return false };
    // `(anonymous namespace)` is the beginning of a symbol.
    frame.is_some_and(|frame| !frame.symbol.is_empty()) || matches!(module.first(), Some(b'/' | b'['))
}

impl PerfScript {
    /// Ends the last sample of an input. It is marked if a part of its stack is missing, and left out if all of it is.
    pub(super) fn finish_input(
        &mut self,
        cut_line: &[u8],
        state: &mut State<'_>,
        sink: &mut Sink,
        report: &mut BlockReport,
    ) -> Result<(), Error> {
        let lacking = match state {
            State::Sample(sample) if self.stack.is_empty() && sample.frame.is_none() => Some(sample.event),
            _ => None,
        };
        let lacks_stack = lacking.is_some();
        // Other events may be recorded without callchains.
        let has_callchains = lacking.is_some_and(|event| {
            let first = self.first_stacks.as_ref().map(|stacks| stacks.event.as_slice());
            !event.is_empty() && (event == self.stacks.event || first == Some(event))
        });
        let may_be_frame = has_callchains || cut_line.starts_with(b"\t") || frame::is_frame(cut_line);
        if !cut_line.is_empty() {
            report.lines += 1;
            report.cut_end = Some(CutEnd::Certain);
            if !self.stack.is_empty() || lacks_stack && may_be_frame {
                self.stack.push(sink.intern(markers::TRUNCATED));
            }
        } else if lacks_stack && has_callchains {
            report.cut_end = Some(CutEnd::Certain);
            *state = State::Outside;
        } else if self.lacks_callers(sink) {
            report.cut_end = Some(CutEnd::Possible("no blank line follows its last stack"));
        }
        self.finish_sample(state, sink)
    }

    /// Returns true if callers of the last stack may be missing: no blank line ended it, other than stacks before it, of which
    /// none has its outermost frame.
    fn lacks_callers(&self, sink: &Sink) -> bool {
        let Some(last) = self.stack.last() else { return false };
        let first = self.first_stacks.as_deref();
        let end_with_blanks = self.stacks.end_with_blanks || first.is_some_and(|stacks| stacks.end_with_blanks);
        let is_outermost = self.stacks.outermost.contains(last)
            || first.is_some_and(|stacks| stacks.outermost.contains(sink.frames().name(*last)));
        end_with_blanks && !is_outermost
    }
}
