//! The frames of the input and their new names.

use std::ops::Range;

use super::names::Names;
use super::split::Split;
use crate::profile::{FrameId, Frames};

/// Frames as they are read, and the frames that replace them.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    /// The frames as they are read.
    pub(super) read: Frames,
    /// The renamed frames.
    pub(super) frames: Frames,
    /// Ids of the renamed frames, one after another: more than one for each frame if names are split.
    pub(super) ids: Vec<FrameId>,
    /// End of the ids of each frame that is read.
    ends: Vec<usize>,
}

impl FrameTable {
    /// Finds the new names of the frames that were read since the last call.
    pub(super) fn rename_new_frames(&mut self, names: &Names, split: Option<&Split>) {
        for index in self.ends.len()..self.read.len() {
            let name = names.rename(self.read.name(FrameId::from_index(index as u32)));
            match split {
                Some(split) => self.ids.extend(split.parts(&name).into_iter().map(|part| self.frames.intern(part))),
                None => self.ids.push(self.frames.intern(&name)),
            }
            self.ends.push(self.ids.len());
        }
    }

    /// Returns the indices in `ids` of the frames that replace a frame: at least one.
    pub(super) fn new_ids(&self, frame: FrameId) -> Range<usize> {
        let start = frame.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[frame.index()]
    }
}
