//! Selects the frames of a stack.

use std::collections::HashSet;

use super::frame_matcher::FrameMatcher;
use crate::markers;
use crate::profile::{FrameId, Frames};

/// Kind of recursion that is collapsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Recursion {
    /// A frame directly below itself: `a;a;b` becomes `a;b`.
    Adjacent,
    /// A frame anywhere below itself: `a;b;a;c` becomes `a;b;c`.
    All,
}

/// Rules that remove frames from stacks, without changing weights. The default removes none.
///
/// The rules apply in the order of the fields, each to the frames that the ones before it kept.
#[derive(Clone, Debug, Default)]
pub struct Reshape {
    /// Remove frames without a symbol, `[unknown]`.
    pub drop_unknown: bool,
    /// Remove the delimiters `-` (between user and kernel frames) and `--` (between sleeper and waker).
    pub no_delimiters: bool,
    /// Remove frames that match.
    pub hide: Option<FrameMatcher>,
    /// Remove frames that do not match. Thread states remain if another frame does.
    pub show: Option<FrameMatcher>,
    /// Start stacks at the match nearest to the root; drop stacks without a match.
    pub show_from: Option<FrameMatcher>,
    /// End stacks at the match nearest to the leaf.
    pub prune_from: Option<FrameMatcher>,
    /// Remove recursive frames.
    pub recursion: Option<Recursion>,
}

impl Reshape {
    /// True if the rules that look at single frames keep this one.
    pub fn keeps_frame(&mut self, frames: &Frames, frame: FrameId) -> bool {
        let name = frames.name(frame);
        if (self.drop_unknown && markers::strip_suffix(name) == markers::UNKNOWN)
            || (self.no_delimiters && matches!(name, b"-" | b"--"))
        {
            return false;
        }
        let is_hidden = self.hide.as_mut().is_some_and(|hide| hide.matches(frames, frame));
        let is_state = markers::is_thread_state(name);
        !is_hidden && self.show.as_mut().is_none_or(|show| show.matches(frames, frame) || is_state)
    }

    /// True if stacks are left as they are.
    pub fn is_empty(&self) -> bool {
        let Self { drop_unknown, no_delimiters, hide, show, show_from, prune_from, recursion } = self;
        let is_matched = [hide, show, show_from, prune_from].iter().any(|matcher| matcher.is_some());
        !(*drop_unknown || *no_delimiters || is_matched || recursion.is_some())
    }

    /// Applies the rules that look at whole stacks to the kept frames of one.
    pub fn cut_stack(&mut self, frames: &Frames, stack: &mut Vec<FrameId>) {
        if let Some(show) = &mut self.show
            && !stack.iter().any(|frame| show.matches(frames, *frame))
        {
            // Thread states alone say of no function what it did.
            stack.clear();
        }
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
