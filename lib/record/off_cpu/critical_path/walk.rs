//! The way back from the end of a thread to its start.

use std::ops::Range;

use super::ThreadLogs;
use super::thread_log::{Activity, BlockEnd, Step, ThreadLog};
use crate::record::off_cpu::waker_chains::Waking;

/// A part of the path: what a thread did at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPart {
    /// The thread that the path is in.
    pub tid: u32,
    /// The activity of the thread.
    pub activity: Activity,
    /// The time from its start to its end.
    pub time: Range<u64>,
}

/// A block that the path has left for the waker.
#[derive(Clone, Copy, Debug)]
struct LeftBlock {
    tid: u32,
    start: u64,
    stack: Option<u32>,
}

/// A walk back in time.
struct Walk<'a> {
    logs: &'a ThreadLogs,
    tid: u32,
    /// The thread is known from here on back.
    time: u64,
    /// True if the present thread began at the present time.
    is_at_begin: bool,
    /// The blocks that it left, the last one last.
    left: Vec<LeftBlock>,
    /// The time at which it went to another thread the last time.
    last_jump: u64,
}

/// Calls `add` with the parts of the path that ends in a thread at the end of a time, the last part first. They fill the time.
pub fn walk(logs: &ThreadLogs, tid: u32, time: Range<u64>, mut add: impl FnMut(&PathPart, Option<&ThreadLog>)) {
    let mut walk = Walk { logs, tid, time: time.end, is_at_begin: false, left: Vec::new(), last_jump: u64::MAX };
    while walk.time > time.start {
        let log = logs.get(walk.tid, walk.time).filter(|_| !walk.is_at_begin);
        let Some((log, (step, is_whole))) = log.and_then(|log| Some((log, log.step_before(walk.time)?))) else {
            if !walk.go_to_creator() {
                let part = walk.return_to_waiter(time.start);
                add(&part, None);
                walk.time = part.time.start;
            }
            continue;
        };
        if let Some(waker) = walk.find_waker(step, is_whole) {
            walk.jump(waker);
            continue;
        }
        let part = walk.part(step.start.max(time.start), step.activity);
        add(&part, Some(log));
        walk.time = part.time.start;
        walk.is_at_begin = log.begins_at(walk.time);
    }
}

impl Walk<'_> {
    /// Returns the part of the present thread from `start` to the present time.
    fn part(&self, start: u64, activity: Activity) -> PathPart {
        PathPart { tid: self.tid, activity, time: start..self.time }
    }

    /// Returns the thread that ended a step, if the step is a block that ends now and what that thread did is known. Notes the
    /// block.
    fn find_waker(&mut self, step: Step, is_whole: bool) -> Option<u32> {
        let Activity::Blocked(stack, BlockEnd::Woken(Waking { waker: Some(waker), .. })) = step.activity else {
            return None;
        };
        // Two threads that woke each other at the same instant would never end.
        let goes_on = is_whole && self.time < self.last_jump && self.knows(waker);
        goes_on.then(|| {
            self.left.push(LeftBlock { tid: self.tid, start: step.start, stack });
            waker
        })
    }

    fn jump(&mut self, tid: u32) {
        (self.tid, self.last_jump, self.is_at_begin) = (tid, self.time, false);
    }

    /// Goes to the thread that created the present one, if the present time is that of its creation.
    fn go_to_creator(&mut self) -> bool {
        let creator = self.logs.creator(self.tid, self.time).filter(|_| self.is_at_begin);
        let known = creator.filter(|creator| self.knows(*creator));
        known.map(|creator| self.jump(creator)).is_some()
    }

    /// True if it is known what a thread did before the present time.
    fn knows(&self, tid: u32) -> bool {
        self.logs.get(tid, self.time).is_some_and(|log| log.step_before(self.time).is_some())
    }

    /// Returns to the last thread that was blocked at the present time, and still is at an earlier time. What it waited for is not
    /// known.
    fn return_to_waiter(&mut self, start: u64) -> PathPart {
        while let Some(left) = self.left.pop() {
            if left.start < self.time {
                (self.tid, self.is_at_begin) = (left.tid, false);
                return self.part(left.start.max(start), Activity::Blocked(left.stack, BlockEnd::Unseen));
            }
        }
        self.part(start, Activity::Blocked(None, BlockEnd::Unseen))
    }
}
