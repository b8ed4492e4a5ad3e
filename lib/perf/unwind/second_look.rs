//! A second look at what was read of a thread, a millisecond later: where samples are far apart, nothing else tells how
//! short its calls are.

use std::time::Duration;

use super::Step;
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
    /// Where return addresses stood: the highest one in the copy of the stack, if it had one, and those beyond it.
    anchor: Option<Slot>,
    callers: Vec<Slot>,
}

/// A return address, and where on the stack it stands.
type Slot = (u64, u64);

impl SecondLook {
    /// At a stack that was found at a time, of which so many frames stood in the copy: `read` tells what the rest is made
    /// of. `None` if nothing was read beyond the copy, or if return addresses stand elsewhere than calls leave them.
    pub fn at(
        (pid, time): (u32, u64),
        steps: &[Step],
        (copied, is_anchored): (usize, bool),
        mut read: impl FnMut(u64) -> Option<u64>,
    ) -> Option<Self> {
        let slot = |step: &Step| (step.stack_pointer.wrapping_sub(8), step.address.value);
        let anchor = is_anchored.then(|| steps[..copied].last().map(slot)).flatten();
        let callers = steps[copied..].iter().map(slot).filter(|(place, value)| read(*place) == Some(*value));
        let callers: Vec<Slot> = callers.collect();
        (!callers.is_empty()).then_some(Self { pid, time, anchor, callers })
    }

    /// Whether it is time.
    pub fn is_due(&self, time: u64) -> bool {
        u128::from(time.saturating_sub(self.time)) >= LATER.as_nanos()
    }

    /// Whether what is read now is something else above the same anchor; `None` if that is gone, or it is too late.
    pub fn lied(&self, time: u64, mut read: impl FnMut(u64) -> Option<u64>) -> Option<bool> {
        let mut stands = |(place, value): &Slot| read(*place) == Some(*value);
        let is_there = time.saturating_sub(self.time) < CLOSE_NS && self.anchor.as_ref().is_none_or(&mut stands);
        is_there.then(|| !self.callers.iter().all(stands))
    }
}
