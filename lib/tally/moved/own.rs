//! The functions that may move: those of the program.

use crate::Error;
use crate::categories::Categories;
use crate::own_code::Origins;
use crate::profile::{Frames, Profile};
use crate::tally::Row;

/// Returns for each frame true if it is the program's own function in all stacks in which it is.
///
/// # Errors
/// [`Error::Overflow`] if a sum of weights does not fit.
pub fn find_own(frames: &Frames, stacks: &[Row]) -> Result<Vec<bool>, Error> {
    let mut profile = Profile::new(true);
    profile.frames = frames.clone();
    for Row { frames, weights } in stacks {
        profile.add(frames, weights[0])?;
    }
    Ok(Origins::find(&profile, Categories::of_default(), None).own_frames(&profile))
}
