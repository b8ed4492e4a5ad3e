//! Stacks that begin in the middle of a program, as those of a profiler that follows frame pointers do where code keeps
//! none.
//!
//! Such a stack begins with code of no file, as a wrong return address is; or it lacks the start of its process or thread, and
//! other stacks of the same threads show which function calls its first one. A first function that none is seen to call may be
//! where a thread begins.

use rustc_hash::{FxHashMap, FxHashSet};

use super::own_code::{Origin, Origins};
use crate::Error;
use crate::markers;
use crate::profile::{FrameId, Profile, SortedStack, Weights};

/// A function below the root of a stack, the name of threads.
type InThread = (FrameId, FrameId);

/// The stacks of a profile whose callers may be missing.
#[derive(Default)]
pub(super) struct MissingCallers {
    /// The functions that others call in stacks that begin with the start of a process or thread.
    called: FxHashSet<InThread>,
    /// The weights of other stacks, by their first function.
    first: FxHashMap<InThread, Weights>,
    /// The weight of those that begin with code of no file.
    unknown: Weights,
}

impl MissingCallers {
    /// Adds a stack. The stacks of a profile come in order.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn add(
        &mut self,
        profile: &Profile,
        origins: &Origins<'_>,
        stack: &SortedStack<'_>,
    ) -> Result<(), Error> {
        let SortedStack { frames, shared, weights, .. } = *stack;
        let [root, first, ..] = *frames else { return Ok(()) };
        if origins.has_function_roots() {
            return Ok(());
        }
        if frames[1..].iter().take(2).any(|frame| origins.is_start(*frame)) {
            let calls = (shared.max(2)..frames.len()).filter(|index| !origins.is_start(frames[index - 1]));
            self.called.extend(calls.map(|index| (root, frames[index])));
            return Ok(());
        }
        if profile.frames.name(first) == markers::UNKNOWN {
            return self.unknown.add(weights);
        }
        // The stacks of the kernel have a beginning of their own.
        if origins.origin(first) == Origin::Marker || origins.is_kernel(first) {
            return Ok(());
        }
        self.first.entry((root, first)).or_default().add(weights)
    }

    /// Returns the weight of the stacks whose first function others show with its callers.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(super) fn weights(&self) -> Result<Weights, Error> {
        let mut sum = self.unknown;
        for (_, weights) in self.first.iter().filter(|(function, _)| self.called.contains(function)) {
            sum.add(*weights)?;
        }
        Ok(sum)
    }
}
