//! The start of the thread of a stack: the frames above the program's own functions.

use bstr::ByteSlice as _;

use super::context::Context;
use crate::profile::FrameId;

/// The start of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Start {
    /// That of a process.
    Process,
    /// That of the main thread of a run time, as Go's and Java's.
    RunTime,
    /// That of another thread.
    Thread {
        /// The outermost function.
        first: FrameId,
        /// The function of a library with which the thread begins, if it is none of the program.
        native: Option<FrameId>,
        is_goroutine: bool,
    },
}

/// The start that a stack shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundStart {
    pub(super) start: Start,
    /// True if no function of the start is missing.
    pub(super) is_whole: bool,
}

impl Start {
    /// Finds the start of a stack whose outermost own function has this index; `None` if the stack does not show it.
    pub(super) fn find(context: &Context<'_>, stack: &[FrameId], outermost: Option<usize>) -> Option<FoundStart> {
        let (origins, name) = (context.origins, |frame: FrameId| context.profile.frames.name(frame));
        let end = outermost.unwrap_or(stack.len());
        let Some(index) = (1..end).find(|index| origins.is_start(stack[*index])) else {
            outermost.filter(|index| name(stack[*index]) == b"main")?;
            return Some(FoundStart { start: Self::Process, is_whole: true });
        };
        if !origins.is_in_thread(stack) {
            return Some(FoundStart { start: Self::Process, is_whole: true });
        }
        let above = &stack[index..end];
        let starts = above.iter().take_while(|frame| origins.is_start(**frame)).count();
        let is_main = above.iter().any(|frame| matches!(name(*frame), b"runtime.main" | b"JavaMain"));
        let native = above.get(starts).copied().filter(|frame| origins.may_begin_thread(*frame));
        let is_goroutine = name(above[0]).starts_with(b"runtime.");
        // A thread of the C library begins with a function of C, which C++ and Rust have in their libraries.
        let begins_in_cpp =
            above.len() == starts && outermost.is_some_and(|index| name(stack[index]).contains_str("::"));
        let is_whole = index == 1 && origins.is_outermost(above[0]) && (is_goroutine || starts > 1 && !begins_in_cpp);
        let thread = Self::Thread { first: above[0], native, is_goroutine };
        Some(FoundStart { start: if is_main { Self::RunTime } else { thread }, is_whole })
    }

    /// Returns the function after the mark of a stack that was cut.
    pub(super) fn native_after_cut<'s>(context: &Context<'_>, stack: &'s [FrameId]) -> Option<&'s FrameId> {
        stack.get(1).filter(|mark| context.origins.is_marker(**mark))?;
        stack.get(2)
    }

    /// True if only one thread of a process has this start.
    pub(super) fn is_single(self) -> bool {
        matches!(self, Self::Process | Self::RunTime)
    }

    pub(super) fn is_goroutine(self) -> bool {
        matches!(self, Self::Thread { is_goroutine: true, .. })
    }

    /// Returns the function of a library with which the thread begins.
    pub(super) fn native(self) -> Option<FrameId> {
        match self {
            Self::Thread { native, .. } => native,
            Self::Process | Self::RunTime => None,
        }
    }
}
