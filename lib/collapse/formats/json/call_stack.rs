//! Converts begin and end events of functions to stacks, weighted by time.

use crate::Error;
use crate::collapse::document_helpers::{add_stack, weight_from_millionths};
use crate::collapse::sink::Sink;
use crate::collapse::stack::MAX_SHARED_DEPTH;
use crate::profile::FrameId;

/// Maximum number of open calls whose end is known, and of open calls that are searched for the one that ends. Without
/// these limits, the run time could grow with the square of the input's size.
const MAX_OPEN: usize = 4 * MAX_SHARED_DEPTH;

/// The open calls of a thread, the outermost first. Times are in millionths of the input's unit.
#[derive(Debug, Default)]
pub(in crate::collapse::formats) struct CallStack {
    thread: Option<FrameId>,
    calls: Vec<Call>,
    /// The frames of `calls`.
    frames: Vec<FrameId>,
    now: i128,
    /// The bounds of the span of time that counts, if not all does.
    window: Option<(i128, i128)>,
    /// The earliest known end of an open call.
    next_end: Option<i128>,
}

/// An open call.
#[derive(Debug)]
struct Call {
    frame: FrameId,
    /// Its end, if it is known. Else an end event must end it.
    end: Option<i128>,
}

impl CallStack {
    /// Creates the empty stack of a thread, whose frame, if there is one, is the root frame.
    pub(in crate::collapse::formats) fn new(thread: Option<FrameId>) -> Self {
        Self { thread, ..Self::default() }
    }

    /// Restricts the time that counts to a span.
    pub(in crate::collapse::formats) fn with_window(self, window: Option<(i128, i128)>) -> Self {
        Self { window, ..self }
    }

    /// Advances to a later time, and ends the calls whose known end has come. A time before the current one has no
    /// effect.
    pub(in crate::collapse::formats) fn advance(&mut self, time: i128, sink: &mut Sink) -> Result<(), Error> {
        while let Some(end) = self.next_end.filter(|end| *end <= time) {
            self.add_until(end, sink)?;
            if let Some(ended) = self.calls.iter().rposition(|call| call.end == Some(end)) {
                self.remove(ended);
            }
        }
        self.add_until(time, sink)
    }

    /// Adds the current stack with the time until `time`.
    fn add_until(&mut self, time: i128, sink: &mut Sink) -> Result<(), Error> {
        if !self.frames.is_empty() {
            let (from, to) = self.window.unwrap_or((i128::MIN, i128::MAX));
            let elapsed = time.min(to).saturating_sub(self.now.max(from)).max(0);
            if elapsed < time.saturating_sub(self.now) {
                sink.note_left_out();
            }
            add_stack(self.thread, &self.frames, weight_from_millionths(elapsed).unwrap_or_default(), sink)?;
        }
        self.now = self.now.max(time);
        Ok(())
    }

    /// Begins a call now. `end` is its end, if it is known. Returns false, and leaves the call out, if its end is known
    /// and too many calls are open; a call without an end is needed by the event that ends it.
    pub(in crate::collapse::formats) fn begin(&mut self, frame: FrameId, end: Option<i128>) -> bool {
        if self.calls.len() >= MAX_OPEN && end.is_some() {
            return false;
        }
        self.calls.push(Call { frame, end });
        self.frames.push(frame);
        self.next_end = [self.next_end, end].into_iter().flatten().min();
        true
    }

    /// Ends the innermost call without a known end, of this function or, if `frame` is `None`, of any. Returns false if
    /// there is none.
    pub(in crate::collapse::formats) fn end(&mut self, frame: Option<FrameId>) -> bool {
        let mut innermost = self.calls.iter().rev().take(MAX_OPEN);
        let found = innermost.position(|call| call.end.is_none() && frame.is_none_or(|frame| frame == call.frame));
        found.inspect(|distance| self.remove(self.calls.len() - 1 - distance)).is_some()
    }

    /// Returns the number of open calls.
    pub(in crate::collapse::formats) fn count_open(&self) -> usize {
        self.calls.len()
    }

    /// Returns the latest known end of an open call.
    pub(in crate::collapse::formats) fn last_end(&self) -> Option<i128> {
        self.calls.iter().filter_map(|call| call.end).max()
    }

    /// Sets the time before the first call.
    pub(in crate::collapse::formats) fn set_start(&mut self, time: i128) {
        self.now = time;
    }

    fn remove(&mut self, index: usize) {
        let removed = self.calls.remove(index);
        self.frames.remove(index);
        if removed.end.is_some() && removed.end == self.next_end {
            self.next_end = self.calls.iter().filter_map(|call| call.end).min();
        }
    }
}

/// Sorts events by time. Whole calls are often written when they end, so of those that begin at the same time, the
/// longest comes first: it contains the others. `duration` returns the length of a whole call.
pub(in crate::collapse::formats) fn sort_events<E, T: Ord, D: Ord>(
    events: &mut [E],
    time: impl Fn(&E) -> T,
    duration: impl Fn(&E) -> Option<D>,
) {
    events.sort_by_key(&time);
    let contain_each_other = |a: &E, b: &E| time(a) == time(b) && duration(a).is_some() && duration(b).is_some();
    for events in events.chunk_by_mut(contain_each_other) {
        events.sort_by_key(|event| std::cmp::Reverse(duration(event)));
    }
}
