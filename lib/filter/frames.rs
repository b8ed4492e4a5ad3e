//! Which frames of a stack are kept.

use std::collections::HashSet;

use super::Judge;
use super::names::without_suffix;
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
    /// Takes frames out of a stack. Whether anything is left of it; if not, the stack is dropped.
    pub fn apply(&mut self, frames: &Frames, stack: &mut Vec<FrameId>) -> bool {
        if self.drop_unknown {
            stack.retain(|frame| without_suffix(frames.name(*frame)) != b"[unknown]");
        }
        if self.no_delimiters {
            stack.retain(|frame| !matches!(frames.name(*frame), b"-" | b"--"));
        }
        if let Some(hide) = &mut self.hide {
            stack.retain(|frame| !hide.matches(frames, *frame));
        }
        if let Some(show) = &mut self.show {
            stack.retain(|frame| show.matches(frames, *frame));
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
        !stack.is_empty()
    }
}
