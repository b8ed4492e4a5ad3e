//! Samples that wait until the earliest time of their input is known, to which a span of time refers.

use super::filter::args::TimeSpan;
use super::timeline::SampleTime;
use crate::profile::{FrameId, Stacks, Weight};

/// The samples of an input, and the earliest time of any of its samples. Few inputs are in the order of time.
pub(super) struct HeldSamples {
    span: TimeSpan,
    earliest: Option<u64>,
    stacks: Stacks,
    samples: Vec<HeldSample>,
}

/// A sample and the number of its stack.
struct HeldSample {
    stack: u32,
    weight: Weight,
    time: SampleTime,
}

impl HeldSamples {
    pub(super) fn new(span: TimeSpan) -> Self {
        Self { span, earliest: None, stacks: Stacks::default(), samples: Vec::new() }
    }

    /// Returns the span that selects samples.
    pub(super) fn span(&self) -> TimeSpan {
        self.span
    }

    /// Notes the time of a sample of the input, whether it counts or not.
    pub(super) fn note_time(&mut self, time: u64) {
        self.earliest = Some(self.earliest.map_or(time, |earliest| earliest.min(time)));
    }

    /// Returns the earliest time.
    pub(super) fn earliest(&self) -> Option<u64> {
        self.earliest
    }

    /// Keeps a sample, unless it is later than the span: then an earlier start makes it only later still.
    pub(super) fn add(&mut self, stack: &[FrameId], weight: Weight, time: SampleTime) {
        self.note_time(time.time);
        if self.earliest.is_some_and(|earliest| self.span.ends_before(time.time, earliest)) {
            return;
        }
        let ids: Vec<u32> = stack.iter().map(|frame| frame.index() as u32).collect();
        self.samples.push(HeldSample { stack: self.stacks.intern(&ids), weight, time });
    }

    /// Calls `add` with each sample in the span, which refers to the earliest time of all threads.
    pub(super) fn release<E>(
        self,
        earliest: u64,
        mut add: impl FnMut(&[FrameId], Weight, SampleTime) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stack = Vec::new();
        for sample in self.samples.iter().filter(|sample| self.span.contains(sample.time.time, earliest)) {
            stack.clear();
            stack.extend(self.stacks.get(sample.stack).iter().map(|id| FrameId::from_index(*id)));
            add(&stack, sample.weight, sample.time)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{FrameId, HeldSamples, SampleTime, Weight};

    #[test]
    fn a_span_begins_at_the_earliest_time_of_the_input() {
        let mut held = HeldSamples::new("+0,+0.00000001".parse().unwrap());
        let frame = FrameId::from_index;
        for (time, stack) in [(107, 1), (105, 2), (120, 3), (110, 4)] {
            held.add(&[frame(stack)], Weight::ONE, SampleTime { time, thread: frame(0), cpu: None });
        }
        held.note_time(100);
        let mut released = Vec::new();
        held.release::<()>(100, |stack, _, time| {
            released.push((stack.to_vec(), time.time));
            Ok(())
        })
        .unwrap();
        assert_eq!(released, [(vec![frame(1)], 107), (vec![frame(2)], 105)]);
    }
}
