//! How long samples can wait for the rest of their stacks.
//!
//! To be woken for each sample is most of what a recorder costs. But the longer it waits, the more often a thread has
//! returned from what it was called from. Mostly that shows: another return address stands where the copy of its stack
//! ends (an anchor), or the thread was seen higher up. It need not: where the same function was called again, from
//! elsewhere, the same address stands there, and what follows is another call's. How far anchors can be trusted is
//! measured all the time: a thread's stack at the last look had one too, and if it still stands in the next stack, the
//! same callers must follow. By how often they do not, or the rest of a stack is gone, is waited longer or shorter:
//! programs that serve a request every few milliseconds are looked at for each sample, a compiler deep in its work
//! every few milliseconds.
//!
//! What is gone at this look may have been seen at the last one: the thread was there before the sample, and at it. What
//! is looked at later than is waited for is not believed. And where a quarter of the anchors have new callers a millisecond
//! later (as the next sample tells, or a second look), calls may be shorter than it takes to look: then nothing beyond the
//! copies is believed, and there is no hurry.

use std::time::Duration;

use rustc_hash::FxHashMap;

use super::frame::{Frame, Slot};
use super::snapshot::ProcessSnapshot;
use super::stack::{ANCHORAGE, Tail, has_returned_from};
use crate::perf::stop_reason::StopReason;

/// So soon after a sample a thread is believed to be where it was, if any is.
const FRESH: Duration = Duration::from_micros(500);
/// The longest wait, and the one below which none is worth while.
const LONGEST: Duration = Duration::from_millis(60);
const SHORTEST: Duration = Duration::from_millis(1);
/// What each stack does to the wait: one that is sound lengthens it by 1.4 %, so that one lost in 17 or one false in 100
/// keep it as it is.
const SOUND: (u32, u32) = (507, 500);
const LOST: (u32, u32) = (4, 5);
const FALSE: (u32, u32) = (1, 4);
/// How many anchors make up the share of false ones, of late, and the share from which on none is believed.
const TESTS: f32 = 64.0;
const MOST_FALSE: f32 = 0.25;
/// So close are samples of which different callers show that calls are short.
pub const CLOSE_NS: u64 = 2_000_000;
/// Of more threads nothing is kept.
const MOST_THREADS: usize = 4096;

/// What was on the stacks of threads at the last looks at them.
#[derive(Debug)]
pub struct Patience {
    threads: FxHashMap<u32, Looks>,
    /// The number of the look at hand, and its time.
    look: u64,
    pub time: u64,
    wait: Duration,
    pub trust: Trust,
    /// Whether the last stack showed that the anchor of the one before it was worth nothing.
    pub has_new_callers: bool,
}

/// How far anchors can be trusted.
#[derive(Debug)]
pub struct Trust {
    /// The share of those that had new callers within a millisecond or two, of so many.
    falsehood: f32,
    tests: f32,
    /// When one was last seen to have them or not.
    tested: u64,
}

impl Trust {
    /// An anchor had new callers, or the same.
    pub fn learn(&mut self, has_new_callers: bool, time: u64) {
        self.tests = (self.tests + 1.0).min(TESTS);
        self.falsehood += (f32::from(u8::from(has_new_callers)) - self.falsehood) / self.tests;
        self.tested = time;
    }

    /// Whether no anchor is believed.
    fn is_none(&self) -> bool {
        self.falsehood > MOST_FALSE
    }

    /// Whether it is long ago that something was learned.
    pub fn is_untested(&self, time: u64) -> bool {
        time.saturating_sub(self.tested) > 4 * CLOSE_NS
    }
}

/// The last two looks at a thread.
#[derive(Debug, Default)]
struct Looks {
    last: u64,
    now: Seen,
    before: Seen,
}

/// A stack.
#[derive(Debug, Default)]
struct Seen {
    steps: Vec<Frame>,
    /// How many of its frames stood in the copy.
    copied: usize,
    /// Whether it led to its root.
    is_whole: bool,
    /// When its sample was taken.
    time: u64,
}

impl Seen {
    fn is(&mut self, time: u64, steps: &[Frame], copied: usize, is_whole: bool) {
        self.steps.clear();
        self.steps.extend_from_slice(steps);
        (self.time, self.copied, self.is_whole) = (time, copied, is_whole);
    }

    /// What is above a frame, if that is on this stack too.
    fn above(&self, frame: Frame) -> Option<&[Frame]> {
        let at = self.steps.iter().rposition(|step| step.key() == frame.key())?;
        self.is_whole.then_some(&self.steps[at + 1..])
    }

    /// If its anchor still stands in the next stack of its thread: whether it has other callers there.
    fn lied(&self, next: &Self) -> Option<bool> {
        let (anchor, rest) = self.steps.get(self.copied.checked_sub(1)?).zip(self.steps.get(self.copied..))?;
        let callers = next.above(*anchor).filter(|_| self.is_whole && !rest.is_empty())?;
        Some(!callers.iter().map(Frame::key).eq(rest.iter().map(Frame::key)))
    }

    /// Whether the stack before it of its thread ends with what was read beyond the copy.
    fn ends_as(&self, before: &Self) -> bool {
        let rest = self.steps[self.copied..].iter().map(Frame::key);
        let same = before.steps.len().checked_sub(rest.len()).map(|at| &before.steps[at..]);
        same.is_some_and(|same| same.iter().map(Frame::key).eq(rest))
    }
}

impl Patience {
    /// How long samples can wait; `None` if each is to be read at once. That is no use where nothing would be believed:
    /// second looks tell when that is over.
    pub fn wait(&self) -> Option<Duration> {
        if self.trust.is_none() { Some(LONGEST) } else { Some(self.wait).filter(|wait| *wait >= SHORTEST) }
    }

    /// What is read from now on is of this time.
    pub fn look_again(&mut self, time: u64) {
        self.look += 1;
        self.time = time;
    }

    /// All places have changed their meaning.
    pub fn forget(&mut self) {
        self.threads.clear();
    }

    /// The return addresses at the end of the copy of a thread's last stack, if its rest was found and the thread has
    /// returned from them shortly after: if they stand there still, they tell nothing.
    pub fn left(&self, sample: ProcessSnapshot<'_>, stack_pointer: u64) -> Option<Vec<Slot>> {
        let last = &self.threads.get(&sample.tid)?.now;
        let copied = last.steps.get(..last.copied).filter(|copied| last.is_whole && copied.len() < last.steps.len())?;
        let (highest, _) = copied.get(1..)?.last().map(Frame::slot)?;
        let is_close = sample.time.saturating_sub(last.time) < CLOSE_NS;
        let anchors =
            copied[1..].iter().map(Frame::slot).filter(|(place, _)| highest - place.min(&highest) < ANCHORAGE);
        (is_close && has_returned_from(highest, stack_pointer)).then(|| anchors.collect())
    }

    /// Judges a sample's stack, of which so many frames stood in the copy: leaves what can be believed of it, and says how
    /// it ends.
    pub fn judge(
        &mut self,
        sample: ProcessSnapshot<'_>,
        steps: &mut Vec<Frame>,
        (copied, tail): (usize, Tail),
        end: StopReason,
    ) -> StopReason {
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&sample.tid) {
            self.threads.clear();
        }
        let looks = self.threads.entry(sample.tid).or_default();
        if looks.last != self.look {
            looks.last = self.look;
            std::mem::swap(&mut looks.now, &mut looks.before);
        }
        looks.now.is(sample.time, steps, copied, end == StopReason::Root);
        let lied = match tail {
            Tail::Adrift if looks.now.is_whole => Some(!looks.now.ends_as(&looks.before)),
            _ => looks.before.lied(&looks.now),
        };
        // Of samples that are far apart, different callers tell nothing of so short a time.
        if let Some(lied) = lied.filter(|_| sample.time.saturating_sub(looks.before.time) < CLOSE_NS) {
            self.trust.learn(lied, sample.time);
        }
        let is_false = lied == Some(true);
        let age = Duration::from_nanos(self.time.saturating_sub(sample.time));
        let is_cut = matches!(end, StopReason::StaleTail | StopReason::DumpTooSmall);
        let is_untrue = self.trust.is_none() || age > FRESH.max(2 * self.wait);
        let is_doubtful = copied < steps.len() && (is_untrue || (is_false && age > FRESH));
        let above = match steps[..copied].last() {
            Some(anchor) if is_cut && !is_untrue => looks.before.above(*anchor),
            _ => None,
        };
        let (by, of) = match (is_false, is_cut && above.is_none()) {
            (true, _) => FALSE,
            (false, true) => LOST,
            (false, false) => SOUND,
        };
        self.has_new_callers = is_false;
        self.wait = (self.wait * by / of).clamp(SHORTEST / 2, LONGEST);
        if is_doubtful || above.is_some() {
            steps.truncate(copied);
            steps.extend_from_slice(above.unwrap_or_default());
        }
        match above {
            Some(_) => StopReason::Root,
            None if is_doubtful => StopReason::StaleTail,
            None => end,
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            threads: FxHashMap::default(),
            look: 0,
            time: 0,
            wait: SHORTEST / 2,
            // As good as four tests, of which one was false: the next leads either way.
            trust: Trust { falsehood: MOST_FALSE, tests: 1.0 / MOST_FALSE, tested: 0 },
            has_new_callers: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Frame;
    use super::super::snapshot::ProcessSnapshot;
    use super::super::stack::Tail;
    use super::{LONGEST, Patience};
    use crate::perf::event::Address;
    use crate::perf::objects::registry::Objects;
    use crate::perf::process::Processes;
    use crate::perf::stop_reason::StopReason;

    const MS: u64 = 1_000_000;

    /// Looks at a thread: a stack by its return addresses, innermost first, of which two stood in the copy, and how the way
    /// up it ended. What is left of it, and how it ends then.
    struct Looking(Patience, Processes, Objects);

    impl Looking {
        fn new() -> Self {
            Self(Patience::default(), Processes::default(), Objects::default())
        }

        /// The same stack for long.
        fn calm(&mut self, stack: &[u64]) {
            for at in 0..400 {
                self.at(at * MS, at * MS, stack, StopReason::Root);
            }
        }

        fn at(&mut self, time: u64, sampled: u64, stack: &[u64], end: StopReason) -> (Vec<u64>, StopReason) {
            let step = |(at, value): (usize, &u64)| Frame {
                address: Address { value: *value, in_kernel: false, exact: false },
                mapping: None,
                stack_pointer: 0x1000 + at as u64,
            };
            let mut steps: Vec<Frame> = stack.iter().enumerate().map(step).collect();
            let sample = ProcessSnapshot { pid: 1, tid: 1, time: sampled, processes: &self.1, objects: &self.2 };
            self.0.look_again(time);
            let tail = if end == StopReason::StaleTail { Tail::Gone } else { Tail::Anchored };
            let end = self.0.judge(sample, &mut steps, (2, tail), end);
            (steps.iter().map(|step| step.address.value).collect(), end)
        }
    }

    #[test]
    fn a_thread_that_stays_where_it_was_is_waited_for() {
        let mut looking = Looking::new();
        assert_eq!(looking.0.wait(), None);
        looking.calm(&[1, 2, 3]);
        assert_eq!(looking.0.wait(), Some(LONGEST));
        looking.at(400 * MS, 400 * MS, &[7, 8], StopReason::StaleTail);
        assert_eq!(looking.0.wait(), Some(LONGEST * 4 / 5));
    }

    #[test]
    fn an_anchor_that_has_new_callers_proves_nothing_of_what_is_old() {
        let mut looking = Looking::new();
        looking.calm(&[1, 2, 3, 4]);
        assert_eq!(looking.at(9 * MS, 5 * MS, &[1, 2, 5, 4], StopReason::Root), (vec![1, 2], StopReason::StaleTail));
        // Of now it is, but such a program is to be looked at more often.
        let wait = looking.0.wait;
        assert_eq!(looking.at(20 * MS, 20 * MS, &[1, 2, 3, 4], StopReason::Root), (vec![1, 2, 3, 4], StopReason::Root));
        assert_eq!(looking.0.wait, wait / 4);
        // And if that goes on, not even what is read at once.
        for at in 0..40 {
            looking.at((100 + at) * MS, (100 + at) * MS, &[1, 2, 5 + at, 4], StopReason::Root);
        }
        assert_eq!(
            looking.at(150 * MS, 150 * MS, &[1, 2, 3, 4], StopReason::Root),
            (vec![1, 2], StopReason::StaleTail)
        );
        assert_eq!(looking.0.wait(), Some(LONGEST));
    }

    #[test]
    fn return_addresses_that_were_returned_from_are_looked_at_again() {
        let mut looking = Looking::new();
        looking.at(5 * MS, 5 * MS, &[1, 2, 3], StopReason::Root);
        let left = |looking: &Looking, time, stack_pointer| {
            let sample = ProcessSnapshot { pid: 1, tid: 1, time, processes: &looking.1, objects: &looking.2 };
            looking.0.left(sample, stack_pointer)
        };
        // The second frame's stack begins at 0x1001.
        assert_eq!(left(&looking, 6 * MS, 0x2000), Some(vec![(0x1001 - 8, 2)]));
        assert_eq!([left(&looking, 6 * MS, 0x1000 - 8), left(&looking, 8 * MS, 0x2000)], [None, None]);
        looking.at(7 * MS, 7 * MS, &[1, 2], StopReason::Root);
        assert_eq!(left(&looking, 8 * MS, 0x2000), None);
    }

    #[test]
    fn what_is_read_later_than_is_waited_for_is_not_believed() {
        let mut looking = Looking::new();
        assert_eq!(looking.at(5 * MS, 4 * MS, &[1, 2, 3], StopReason::Root), (vec![1, 2, 3], StopReason::Root));
        assert_eq!(looking.at(15 * MS, 10 * MS, &[1, 2, 3], StopReason::Root), (vec![1, 2], StopReason::StaleTail));
        looking.calm(&[1, 2, 3]);
        assert_eq!(looking.at(15 * MS, 10 * MS, &[1, 2, 3], StopReason::Root), (vec![1, 2, 3], StopReason::Root));
    }

    #[test]
    fn callers_that_were_there_before_stand_for_those_that_are_gone() {
        let mut looking = Looking::new();
        looking.calm(&[1, 2, 3, 4]);
        assert_eq!(looking.at(9 * MS, 5 * MS, &[9, 2], StopReason::StaleTail), (vec![9, 2, 3, 4], StopReason::Root));
        assert_eq!(looking.at(19 * MS, 15 * MS, &[9, 2], StopReason::StaleTail), (vec![9, 2], StopReason::StaleTail));
    }
}
