//! Which stacks are kept.

use super::Judge;
use crate::profile::{FrameId, Frames};

/// Which stacks are kept, by the frames that they have. The default keeps all.
#[derive(Debug, Default)]
pub struct Select {
    /// Keep only stacks whose first frame matches, which in most profiles is the command's name.
    pub comm: Option<Judge>,
    /// Keep only stacks with a frame that matches.
    pub focus: Option<Judge>,
    /// Drop stacks with a frame that matches, also where another one is in focus.
    pub ignore: Option<Judge>,
}

/// What the frames of a stack up to one of them say.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    of_comm: bool,
    in_focus: bool,
    ignored: bool,
}

impl Verdict {
    /// Whether a stack of these frames is kept.
    pub fn keeps(self) -> bool {
        self.of_comm && self.in_focus && !self.ignored
    }
}

impl Select {
    /// The verdict on a stack, of whose frames but the last it is known already; `None` if that is the first.
    pub fn judge(&mut self, frames: &Frames, before: Option<Verdict>, frame: FrameId) -> Verdict {
        // All are asked, so that each knows whether it ever matches.
        let matches = |judge: &mut Option<Judge>| judge.as_mut().map(|judge| judge.matches(frames, frame));
        let (focus, ignore) = (matches(&mut self.focus), matches(&mut self.ignore));
        match before {
            None => Verdict {
                of_comm: matches(&mut self.comm).unwrap_or(true),
                in_focus: focus.unwrap_or(true),
                ignored: ignore.unwrap_or(false),
            },
            Some(before) => Verdict {
                in_focus: before.in_focus || focus.unwrap_or(true),
                ignored: before.ignored || ignore.unwrap_or(false),
                ..before
            },
        }
    }
}
