//! Stacks that begin in the middle of a program, as those of a profiler that follows frame pointers do where code keeps
//! none. Only those count that are certain: any function may be where a thread begins, but none that calls nothing of the
//! program, such as `memcpy`.

use crate::markers;
use crate::own_code::{Origin, Origins};
use crate::profile::{FrameId, Profile};

/// Number of frames, from the first one with a name on, among which a stack has the start of its process or thread.
const START_FRAMES: usize = 4;

/// The outermost callers of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutermostCallers {
    /// None is known to be missing.
    Whole,
    /// They are certainly missing.
    Missing,
    /// Code without a symbol, or missing.
    Unknown,
}

/// Returns what is known of the outermost callers of a stack. Its root is the name of a thread, or may be.
///
/// A wrong return address is code of no file, `[unknown]`. A profile that names the file of no other code without a symbol
/// may call any such code so.
pub(super) fn find_outermost_callers(profile: &Profile, origins: &Origins<'_>, stack: &[FrameId]) -> OutermostCallers {
    let is_unknown = |frame: &FrameId| profile.frames.name(*frame) == markers::UNKNOWN;
    if origins.has_function_roots() || stack.is_empty() {
        return OutermostCallers::Whole;
    }
    let unknown = stack[1..].iter().take_while(|frame| is_unknown(frame)).count();
    let known = &stack[1 + unknown..];
    let Some(first) = known.first().filter(|first| origins.origin(**first) != Origin::Marker) else {
        return OutermostCallers::Whole;
    };
    let is_start = |frame: &FrameId| origins.is_start(*frame) || profile.frames.name(*frame) == b"main";
    if known.iter().take(START_FRAMES).any(is_start) {
        return OutermostCallers::Whole;
    }
    // The stacks of the kernel have a beginning of their own.
    let calls_nothing = origins.is_closed(*first) && !origins.is_kernel(*first);
    match (unknown > 0, calls_nothing) {
        (true, _) if calls_nothing || origins.names_files() => OutermostCallers::Missing,
        (true, _) => OutermostCallers::Unknown,
        (false, true) if origins.has_thread_names() => OutermostCallers::Missing,
        (false, _) => OutermostCallers::Whole,
    }
}
