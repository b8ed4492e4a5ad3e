//! Stacks that begin in the middle of a program, as those of a profiler that follows frame pointers do where code keeps
//! none. Only those count that are certain: any function may be where a thread begins, but none that calls nothing of the
//! program, such as `memcpy`.

use super::own_code::{Origin, Origins};
use crate::markers;
use crate::profile::{FrameId, Profile};

/// Number of frames, from the first one with a name on, among which a stack has the start of its process or thread.
const START_FRAMES: usize = 4;

/// True if the outermost callers of a stack are certainly missing. Its root is the name of a thread, or may be.
///
/// A wrong return address is code of no file, `[unknown]`. A profile that names the file of no other code without a symbol
/// may call any such code so.
pub(super) fn lacks_callers(profile: &Profile, origins: &Origins<'_>, stack: &[FrameId]) -> bool {
    let is_unknown = |frame: &FrameId| profile.frames.name(*frame) == markers::UNKNOWN;
    if origins.has_function_roots() || stack.is_empty() {
        return false;
    }
    let unknown = stack[1..].iter().take_while(|frame| is_unknown(frame)).count();
    let known = &stack[1 + unknown..];
    let Some(first) = known.first().filter(|first| origins.origin(**first) != Origin::Marker) else { return false };
    let is_start = |frame: &FrameId| origins.is_start(*frame) || profile.frames.name(*frame) == b"main";
    if known.iter().take(START_FRAMES).any(is_start) {
        return false;
    }
    // The stacks of the kernel have a beginning of their own.
    let calls_nothing = origins.is_closed(*first) && !origins.is_kernel(*first);
    calls_nothing && (unknown > 0 || origins.has_thread_names()) || unknown > 0 && origins.names_files()
}
