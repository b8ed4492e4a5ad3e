//! Selects stacks by their frames.

use super::frame_matcher::FrameMatcher;
use crate::profile::{FrameId, Frames};

/// Rules that select stacks by their frames. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// Keep only stacks whose root frame matches; in most profiles it is the command name.
    pub root: Option<FrameMatcher>,
    /// Keep only stacks with a frame that matches.
    pub focus: Option<FrameMatcher>,
    /// Drop stacks with a frame that matches, even if another frame matches `focus`.
    pub ignore: Option<FrameMatcher>,
}

/// The state of `root` and `focus` after the first frames of a stack, from the root on.
///
/// Stacks with the same first frames share it. A rule about the leaf must therefore be decided anew by each frame.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    root_matches: bool,
    is_focused: bool,
}

impl Selection {
    /// True if `root` and `focus` select a stack of these frames.
    pub fn is_selected(self) -> bool {
        self.root_matches && self.is_focused
    }
}

impl Select {
    /// Returns the state after one more frame; `before` is `None` for the root.
    pub fn advance(&mut self, frames: &Frames, before: Option<Selection>, frame: FrameId) -> Selection {
        // The pattern is matched against each frame, so that patterns without a match can be reported.
        let focus = self.focus.as_mut().map(|focus| focus.matches(frames, frame));
        match before {
            None => Selection {
                root_matches: self.root.as_mut().is_none_or(|root| root.matches(frames, frame)),
                is_focused: focus.unwrap_or(true),
            },
            Some(before) => Selection { is_focused: before.is_focused || focus.unwrap_or(true), ..before },
        }
    }

    /// True if a stack with this frame is dropped.
    pub fn ignores(&mut self, frames: &Frames, frame: FrameId) -> bool {
        self.ignore.as_mut().is_some_and(|ignore| ignore.matches(frames, frame))
    }
}
