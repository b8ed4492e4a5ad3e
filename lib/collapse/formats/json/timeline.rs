//! Functions that begin and end: the stack of those that run, and for how long it is the same.

use crate::Error;
use crate::collapse::sink::Sink;
use crate::collapse::whole;
use crate::profile::FrameId;

/// Beyond so many that run at once, what says itself when it ends is left out; and of the others, so many are asked which
/// of them ends. Else time would grow faster than the input does.
const MOST: usize = 4 * whole::DEEPEST;

/// The functions that run on a thread, the outermost first. Times are in millionths of the input's unit.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    thread: Option<FrameId>,
    open: Vec<Open>,
    frames: Vec<FrameId>,
    now: i128,
    /// When the first of those ends of which that is known.
    soonest: Option<i128>,
}

#[derive(Debug)]
struct Open {
    frame: FrameId,
    end: Option<i128>,
}

impl Timeline {
    /// Of a thread's frame, if its stacks are to stand below one.
    pub(super) fn new(thread: Option<FrameId>) -> Self {
        Self { thread, ..Self::default() }
    }

    /// Goes to a later time; an earlier one is taken for now.
    pub(super) fn advance(&mut self, time: i128, sink: &mut Sink) -> Result<(), Error> {
        while let Some(end) = self.soonest.filter(|end| *end <= time) {
            self.pass(end, sink)?;
            if let Some(ended) = self.open.iter().rposition(|open| open.end == Some(end)) {
                self.remove(ended);
            }
        }
        self.pass(time, sink)
    }

    fn pass(&mut self, time: i128, sink: &mut Sink) -> Result<(), Error> {
        if !self.frames.is_empty() {
            let lasted = whole::positive(time.saturating_sub(self.now)).unwrap_or_default();
            whole::add(self.thread, &self.frames, lasted, sink)?;
        }
        self.now = self.now.max(time);
        Ok(())
    }

    /// A function begins now; `end` says when it ends, if that is known. `false`, and it is left out, if it is and too many
    /// run; what is ended by an event of its own has to be there for that.
    pub(super) fn begin(&mut self, frame: FrameId, end: Option<i128>) -> bool {
        if self.open.len() >= MOST && end.is_some() {
            return false;
        }
        self.open.push(Open { frame, end });
        self.frames.push(frame);
        self.soonest = [self.soonest, end].into_iter().flatten().min();
        true
    }

    /// The innermost of the functions with this name that have no end yet ends now; of all, if none is named. `false` if
    /// there is none.
    pub(super) fn end(&mut self, frame: Option<FrameId>) -> bool {
        let fits = |open: &Open| open.end.is_none() && frame.is_none_or(|frame| frame == open.frame);
        let found = self.open.iter().rev().take(MOST).position(fits);
        found.inspect(|above| self.remove(self.open.len() - 1 - above)).is_some()
    }

    /// When the last of those ends that do.
    pub(super) fn last_end(&self) -> Option<i128> {
        self.open.iter().filter_map(|open| open.end).max()
    }

    /// Starts the clock, before anything has begun.
    pub(super) fn start(&mut self, time: i128) {
        self.now = time;
    }

    fn remove(&mut self, place: usize) {
        let removed = self.open.remove(place);
        self.frames.remove(place);
        if removed.end.is_some() && removed.end == self.soonest {
            self.soonest = self.open.iter().filter_map(|open| open.end).min();
        }
    }
}
