//! Texts that are cut short.

use super::header::{self, Line};
use super::{PerfScript, State, frame};
use crate::Error;
use crate::collapse::parser::BlockReport;
use crate::collapse::sink::Sink;
use crate::markers;

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
            !event.is_empty() && (event == self.stack_event || self.first_stack_event.as_deref() == Some(event))
        });
        let may_be_frame = has_callchains || cut_line.starts_with(b"\t") || frame::is_frame(cut_line);
        if !cut_line.is_empty() {
            report.lines += 1;
            report.is_cut = true;
            if !self.stack.is_empty() || lacks_stack && may_be_frame {
                self.stack.push(sink.intern(markers::TRUNCATED));
            }
        } else if lacks_stack && has_callchains {
            report.is_cut = true;
            *state = State::Outside;
        }
        self.finish_sample(state, sink)
    }
}
