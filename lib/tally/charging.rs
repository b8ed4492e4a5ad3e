//! Finds the frame to which a stack's self weight is charged.

use crate::markers::{KERNEL, WAKER_SEPARATOR, is_thread_state};
use crate::profile::{FrameId, Frames};
use crate::symbol_name::kernel::is_kernel_entry;

/// The frames of a profile that are no functions of the sampled thread: thread states, and what separates its stack from
/// that of its waker.
#[derive(Clone, Debug, Default)]
pub struct Charging {
    is_state: Vec<bool>,
    /// True for functions that are the kernel's by their names. The kernel's part of a stack begins with one.
    is_kernel: Vec<bool>,
    separator: Option<FrameId>,
}

impl Charging {
    /// Classifies these frames.
    pub fn new(frames: &Frames) -> Self {
        let mut charging = Self::default();
        charging.update(frames);
        charging
    }

    /// Classifies the frames that are new.
    pub fn update(&mut self, frames: &Frames) {
        for index in self.is_state.len()..frames.len() {
            let frame = FrameId::from_index(index as u32);
            let name = frames.name(frame);
            self.is_state.push(is_thread_state(name));
            self.is_kernel.push(name.ends_with(KERNEL) || is_kernel_entry(name));
            if name == WAKER_SEPARATOR {
                self.separator = Some(frame);
            }
        }
    }

    /// Returns the leaf below thread states of the sampled thread, or its last frame if there is no other. If the thread
    /// did not run, that is the function that called the kernel: all waits end in the kernel's scheduler. What a
    /// waker ran is charged to nobody: the wait is that of the thread that waited. `sumFunctions` of the viewer in
    /// `lib/svg/viewer/functions.js` follows the same rule.
    pub fn charged(&self, stack: &[FrameId]) -> Option<FrameId> {
        let own = self.own_frames(stack);
        let leaf = own.last().copied();
        if self.state(stack).is_none() && self.waker_start(stack).is_none() {
            return leaf;
        }
        let kernel = own.iter().position(|frame| self.is_kernel[frame.index()]).unwrap_or(own.len());
        own[..kernel].iter().rev().copied().find(|frame| !self.is_state[frame.index()]).or(leaf)
    }

    /// Returns the frames of the sampled thread up to the last that is no thread state; all of its frames if there is none.
    pub fn own_frames<'a>(&self, stack: &'a [FrameId]) -> &'a [FrameId] {
        let own = &stack[..self.waker_start(stack).unwrap_or(stack.len())];
        let leaf = own.iter().rposition(|frame| !self.is_state[frame.index()]);
        leaf.map_or(own, |leaf| &own[..=leaf])
    }

    /// Returns where the stack of a waker is separated from that of the thread that waited: between frames of both.
    pub fn waker_start(&self, stack: &[FrameId]) -> Option<usize> {
        let separator = self.separator?;
        let start = stack.iter().position(|frame| *frame == separator)?;
        (start > 0 && start + 1 < stack.len()).then_some(start)
    }

    /// True for the frame between the stack of a thread and that of its waker.
    pub fn is_separator(&self, frame: FrameId) -> bool {
        self.separator == Some(frame)
    }

    /// Returns the thread state at the end of a stack.
    pub fn state(&self, stack: &[FrameId]) -> Option<FrameId> {
        stack.last().copied().filter(|frame| self.is_state[frame.index()])
    }
}

#[cfg(test)]
mod tests {
    use super::Charging;
    use crate::profile::{FrameId, Frames};

    #[test]
    fn self_weight_is_charged_to_the_leaf_of_the_sampled_thread() {
        for (stack, expected) in [
            ("app;main", "main"),
            ("app;main;[off-cpu]", "main"),
            ("app;main;[unsampled];[off-cpu]", "main"),
            ("[off-cpu]", "[off-cpu]"),
            ("app;wait;--;other_[w];send_[w];[off-cpu]", "wait"),
            ("app;wait;--;other_[w];--;disk_[w];[off-cpu]", "wait"),
            ("[off-cpu];--;other_[w];send_[w]", "[off-cpu]"),
            ("[runnable];--;other_[w];send_[w];[off-cpu]", "[runnable]"),
            ("--;other_[w]", "other_[w]"),
            ("--", "--"),
            ("app;--", "--"),
            ("app;main;read;vfs_read_[k];schedule_[k];[off-cpu]", "read"),
            ("app;main;read;vfs_read_[k];schedule_[k];--;other_[w];[off-cpu]", "read"),
            ("app;main;read;entry_SYSCALL_64_after_hwframe;do_syscall_64;vfs_read;schedule;[off-cpu]", "read"),
            ("app;main;read;vfs_read_[k]", "vfs_read_[k]"),
            ("kthread_[k];schedule_[k];[off-cpu]", "schedule_[k]"),
            ("kworker/0:1;kthread_[k];schedule_[k];[off-cpu]", "kworker/0:1"),
        ] {
            let mut frames = Frames::new();
            let ids: Vec<FrameId> = stack.split(';').map(|name| frames.intern(name.as_bytes())).collect();
            let charged = Charging::new(&frames).charged(&ids).unwrap();
            assert_eq!(frames.name(charged), expected.as_bytes(), "{stack}");
        }
    }
}
