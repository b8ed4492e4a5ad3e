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
    /// The number of threads that waited for it, one for the other, beside the one whose wait it is.
    pub between: usize,
}

/// Returns the waker to which the wait in a stack is charged: the last thread of the chain, which those before it waited for. If
/// there is no thread, it is the interrupt that ended the wait. `None` if the stack has no waker.
pub fn charged_waker<'a>(frames: &Frames, stack: &'a [FrameId]) -> Option<ChargedWaker<'a>> {
    let parts =
        || stack.split(move |frame| frames.name(*frame) == WAKER_SEPARATOR).skip(1).filter(|part| !part.is_empty());
    let is_thread = |part: &[FrameId]| !markers::is_no_thread(frames.name(part[0]));
    let first = parts().next()?;
    let threads = parts().filter(|part| is_thread(part)).count();
    let last = parts().filter(|part| is_thread(part)).last().unwrap_or(first);
    let waited_for = parts().last().filter(|part| threads > 0 && !is_thread(part)).map(|part| part[0]);
    Some(ChargedWaker { stack: last, waited_for, between: threads.saturating_sub(1) })
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
