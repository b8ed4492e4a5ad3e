//! Selects stacks by their frames.

use super::frame_matcher::FrameMatcher;
use crate::profile::{FrameId, Frames};

/// Rules that select stacks by their frames. The default selects all.
#[derive(Debug, Default)]
pub struct Select {
    /// Keep only stacks whose root frame matches; in most profiles it is the command name.
    pub root: Option<FrameMatcher>,
    /// Keep only stacks with a frame that matches.
    pub focus: Option<FrameMatcher>,
    /// Drop stacks with a frame that matches, even if another frame matches `focus`.
    pub ignore: Option<FrameMatcher>,
}

/// The state of the rules after the first frames of a stack, from the root on.
///
/// Stacks with the same first frames share it. A rule about the leaf must therefore be decided anew by each frame.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    root_matches: bool,
    is_focused: bool,
    is_ignored: bool,
}

impl Selection {
    /// True if a stack of these frames is selected.
    pub fn is_selected(self) -> bool {
        self.root_matches && self.is_focused && !self.is_ignored
    }
}

impl Select {
    /// Returns the state after one more frame; `before` is `None` for the root.
    pub fn advance(&mut self, frames: &Frames, before: Option<Selection>, frame: FrameId) -> Selection {
        // Each pattern is matched against each frame, so that patterns without a match can be reported.
        let matches =
            |matcher: &mut Option<FrameMatcher>| matcher.as_mut().map(|matcher| matcher.matches(frames, frame));
        let (focus, ignore) = (matches(&mut self.focus), matches(&mut self.ignore));
        match before {
            None => Selection {
                root_matches: matches(&mut self.root).unwrap_or(true),
                is_focused: focus.unwrap_or(true),
                is_ignored: ignore.unwrap_or(false),
            },
            Some(before) => Selection {
                is_focused: before.is_focused || focus.unwrap_or(true),
                is_ignored: before.is_ignored || ignore.unwrap_or(false),
                ..before
            },
        }
    }
}
