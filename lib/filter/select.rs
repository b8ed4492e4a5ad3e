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

impl Select {
    /// Whether a stack is kept.
    pub fn keeps(&mut self, frames: &Frames, stack: &[FrameId]) -> bool {
        let any = |judge: &mut Option<Judge>, stack: &[FrameId], without: bool| match judge {
            Some(judge) => stack.iter().any(|frame| judge.matches(frames, *frame)),
            None => without,
        };
        // All are asked, so that each knows whether it ever matches.
        let comm = any(&mut self.comm, &stack[..stack.len().min(1)], true);
        let in_focus = any(&mut self.focus, stack, true);
        let ignored = any(&mut self.ignore, stack, false);
        comm && in_focus && !ignored
    }
}
