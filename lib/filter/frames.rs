//! Which frames of a stack are kept.

use std::collections::HashSet;

use super::Judge;
use crate::markers;
use crate::profile::{FrameId, Frames};

/// Which recursion is collapsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Recursion {
    /// A frame right after itself: `a;a;b` becomes `a;b`.
    Adjacent,
    /// A frame anywhere after itself: `a;b;a;c` becomes `a;b;c`.
    All,
}

/// Which frames of a stack are kept; what a stack weighs is untouched. The default keeps all. The order is that of the
/// fields: each sees what those before it left.
#[derive(Debug, Default)]
pub struct Reshape {
    /// Take out frames without a name: `[unknown]`.
    pub drop_unknown: bool,
    /// Take out the frames `-` and `--`, which divide kernel from user frames and sleepers from wakers.
    pub no_delimiters: bool,
    /// Take out frames that match.
    pub hide: Option<Judge>,
    /// Take out all others.
    pub show: Option<Judge>,
    /// Cut what is above the match nearest to the root; drop stacks without one.
    pub show_from: Option<Judge>,
    /// Cut what is below the match nearest to the leaf.
    pub prune_from: Option<Judge>,
    /// Take out frames that stand in the stack already.
    pub recursion: Option<Recursion>,
}

impl Reshape {
    /// Whether a frame stays in every stack that it stands in, as far as the frame alone tells.
    pub fn keeps(&mut self, frames: &Frames, frame: FrameId) -> bool {
        let name = frames.name(frame);
        if (self.drop_unknown && markers::strip_suffix(name) == markers::UNKNOWN)
            || (self.no_delimiters && matches!(name, b"-" | b"--"))
        {
            return false;
        }
        let is_hidden = self.hide.as_mut().is_some_and(|hide| hide.matches(frames, frame));
        !is_hidden && self.show.as_mut().is_none_or(|show| show.matches(frames, frame))
    }

    /// Whether there is more to do to a stack than to leave out frames that do not stay.
    pub fn cuts(&self) -> bool {
        self.show_from.is_some() || self.prune_from.is_some() || self.recursion.is_some()
    }

    /// Cuts a stack of frames that stay.
    pub fn cut(&mut self, frames: &Frames, stack: &mut Vec<FrameId>) {
        if let Some(from) = &mut self.show_from {
            let first = stack.iter().position(|frame| from.matches(frames, *frame));
            stack.drain(..first.unwrap_or(stack.len()));
        }
        if let Some(from) = &mut self.prune_from
            && let Some(last) = stack.iter().rposition(|frame| from.matches(frames, *frame))
        {
            stack.truncate(last + 1);
        }
        match self.recursion {
            Some(Recursion::Adjacent) => stack.dedup(),
            Some(Recursion::All) => {
                let mut seen = HashSet::with_capacity(stack.len());
                stack.retain(|frame| seen.insert(*frame));
            }
            None => {}
        }
    }
}
