//! The rule by which a wait is charged to a waker.

use crate::markers::{self, WAKER_SEPARATOR};
use crate::profile::{FrameId, Frames};

/// The waker to which a wait is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargedWaker<'a> {
    /// Its stack, the name of its thread first.
    pub stack: &'a [FrameId],
    /// The interrupt that it waited for itself, or a marker if that is not known.
    pub waited_for: Option<FrameId>,
    /// The number of threads in the chain between it and the thread whose wait it is.
    pub between: usize,
}

/// Returns the waker to which the wait in a stack is charged: the last thread of the chain, which those before it waited for. If
/// there is no thread, it is the interrupt that ended the wait. `None` if the stack has no waker.
pub fn charged_waker<'a>(frames: &Frames, stack: &'a [FrameId]) -> Option<ChargedWaker<'a>> {
    let wakers = stack.split(|frame| frames.name(*frame) == WAKER_SEPARATOR).skip(1).filter(|waker| !waker.is_empty());
    let first = wakers.clone().next()?;
    let threads = wakers.clone().filter(|waker| is_thread(frames, waker));
    let last_thread = threads.clone().last();
    let waited_for = wakers.last().filter(|last| last_thread.is_some() && !is_thread(frames, last));
    Some(ChargedWaker {
        stack: last_thread.unwrap_or(first),
        waited_for: waited_for.map(|interrupt| interrupt[0]),
        between: threads.count().saturating_sub(1),
    })
}

fn is_thread(frames: &Frames, waker: &[FrameId]) -> bool {
    !markers::is_no_thread(frames.name(waker[0]))
}

#[cfg(test)]
mod tests {
    use super::{ChargedWaker, charged_waker};
    use crate::profile::{FrameId, Frames};

    #[test]
    fn the_last_thread_of_a_chain_is_charged() {
        for (stack, expected) in [
            ("sh;read;--;cat_[w];write_[w];[off-cpu]", Some(("cat_[w]", None, 0))),
            (
                "sh;read;--;cat_[w];x_[w];--;tee_[w];y_[w];--;[disk]_[w];[off-cpu]",
                Some(("tee_[w]", Some("[disk]_[w]"), 1)),
            ),
            ("sh;read;--;cat_[w];--;[more-wakers]_[w];[off-cpu]", Some(("cat_[w]", Some("[more-wakers]_[w]"), 0))),
            ("sh;nap;--;[timer]_[w];[off-cpu]", Some(("[timer]_[w]", None, 0))),
            ("sh;nap;[off-cpu]", None),
        ] {
            let mut frames = Frames::new();
            let ids: Vec<FrameId> = stack.split(';').map(|name| frames.intern(name.as_bytes())).collect();
            let name = |frame: FrameId| std::str::from_utf8(frames.name(frame)).unwrap();
            let charged = charged_waker(&frames, &ids)
                .map(|ChargedWaker { stack, waited_for, between }| (name(stack[0]), waited_for.map(name), between));
            assert_eq!(charged, expected, "{stack}");
        }
    }
}
