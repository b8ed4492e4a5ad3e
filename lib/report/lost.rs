//! The lost samples of a profile, which say nothing of the program.
//!
//! The page states them in its line about quality. Rows, paths, threads and call trees leave them out. So do the totals of a
//! comparison, which may be scaled while lost samples are not (fg-folded(5)). The total of one profile contains them.

use crate::Error;
use crate::profile::{FrameId, Profile, Weights};

/// The samples of a profile that were lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lost {
    /// The frame of their stack, if there are any.
    pub(super) frame: Option<FrameId>,
    pub(super) weights: Weights,
}

impl Lost {
    /// Removes the stack of lost samples from a profile, which keeps its frames.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn take_from(profile: &mut Profile) -> Result<Self, Error> {
        let mut lost = Self::default();
        if profile.measured_total() == profile.total() {
            return Ok(lost);
        }
        let mut measured = Profile::new(profile.is_differential());
        let ids = measured.frames.intern_all(&profile.frames);
        let mut stack = Vec::new();
        profile.for_each(|frames, weights| {
            stack.clear();
            stack.extend(frames.iter().map(|frame| ids[frame.index()]));
            if !profile.frames.is_lost(frames) {
                return measured.add(&stack, weights);
            }
            lost = Self { frame: stack.first().copied(), weights };
            Ok(())
        })?;
        *profile = measured;
        Ok(lost)
    }
}
