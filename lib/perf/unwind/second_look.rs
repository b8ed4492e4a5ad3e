//! A second look at what was read of a thread, a millisecond later: where samples are far apart, nothing else tells how
//! short its calls are.

use std::time::Duration;

use super::frame::{Frame, Slot};
use super::patience::CLOSE_NS;

/// How much later.
pub const LATER: Duration = Duration::from_millis(1);

/// What to look for.
#[derive(Debug)]
pub struct SecondLook {
    /// The process.
    pub pid: u32,
    /// When it was first looked at.
    time: u64,
    /// The return addresses in the copy of the stack by which the rest was believed, if any, and those beyond it.
    anchors: Vec<Slot>,
    callers: Vec<Slot>,
}

impl SecondLook {
    /// At the frames that were found beyond the copy of a stack at a time: `read` tells what the rest is made of. `None` if
    /// there are none, or if return addresses stand elsewhere than calls leave them.
    pub fn at(
        (pid, time): (u32, u64),
        anchors: Vec<Slot>,
        steps: &[Frame],
        mut read: impl FnMut(u64) -> Option<u64>,
    ) -> Option<Self> {
        let callers = steps.iter().map(Frame::slot).filter(|(place, value)| read(*place) == Some(*value));
        let callers: Vec<Slot> = callers.collect();
        (!callers.is_empty()).then_some(Self { pid, time, anchors, callers })
    }

    /// Whether it is time.
    pub fn is_due(&self, time: u64) -> bool {
        u128::from(time.saturating_sub(self.time)) >= LATER.as_nanos()
    }

    /// Whether what is read now is something else above the same anchors; `None` if one is gone, or it is too late.
    pub fn lied(&self, time: u64, mut read: impl FnMut(u64) -> Option<u64>) -> Option<bool> {
        let mut stands = |(place, value): &Slot| read(*place) == Some(*value);
        let is_there = time.saturating_sub(self.time) < CLOSE_NS && self.anchors.iter().all(&mut stands);
        is_there.then(|| !self.callers.iter().all(stands))
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{Frame, Slot};
    use super::SecondLook;
    use crate::perf::event::Address;

    const MS: u64 = 1_000_000;

    /// A stack by its return addresses, each where its call left it.
    fn steps(stack: [u64; 4]) -> Vec<Frame> {
        let step = |(at, value): (usize, u64)| Frame {
            address: Address { value, in_kernel: false, exact: false },
            mapping: None,
            stack_pointer: 8 * (at as u64 + 1),
        };
        stack.into_iter().enumerate().map(step).collect()
    }

    /// Of which two stood in the copy.
    fn look(anchors: &[Slot]) -> SecondLook {
        SecondLook::at((1, MS), anchors.to_vec(), &steps([1, 2, 3, 4])[2..], |place| Some(place / 8 + 1)).unwrap()
    }

    #[test]
    fn other_callers_above_the_same_anchor_are_a_lie() {
        let look = look(&[(8, 2)]);
        assert!(!look.is_due(2 * MS - 1) && look.is_due(2 * MS));
        let lied = |stack: [u64; 4]| look.lied(2 * MS, |place| Some(stack[place as usize / 8]));
        assert_eq!(lied([9, 2, 3, 4]), Some(false));
        assert_eq!(lied([1, 2, 3, 9]), Some(true));
        assert_eq!(lied([1, 9, 3, 4]), None);
        assert_eq!(look.lied(2 * MS, |_| None), None);
        assert_eq!(look.lied(4 * MS, |place| Some(place / 8 + 1)), None);
    }

    #[test]
    fn one_anchor_that_is_gone_is_enough() {
        let look = look(&[(0, 1), (8, 2)]);
        let lied = |stack: [u64; 4]| look.lied(2 * MS, |place| Some(stack[place as usize / 8]));
        assert_eq!((lied([9, 2, 3, 4]), lied([9, 2, 3, 9])), (None, None));
        assert_eq!((lied([1, 2, 3, 4]), lied([1, 2, 3, 9])), (Some(false), Some(true)));
    }

    #[test]
    fn without_an_anchor_every_change_is_one() {
        let look = look(&[]);
        assert_eq!(look.lied(2 * MS, |place| Some([9, 9, 3, 4][place as usize / 8])), Some(false));
        assert_eq!(look.lied(2 * MS, |place| Some([1, 2, 9, 4][place as usize / 8])), Some(true));
    }

    #[test]
    fn there_is_nothing_to_look_for_where_calls_leave_no_addresses() {
        assert!(SecondLook::at((1, MS), Vec::new(), &steps([3, 4, 5, 6]), |_| Some(7)).is_none());
    }
}
