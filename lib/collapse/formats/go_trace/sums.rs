//! The values of a trace by stack and, if they are needed, by time.

use rustc_hash::FxHashMap;

use super::{VALUES, Value};
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::Stack;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::profile::{FrameId, Weight};

/// The sums of the values of each stack, whose frames are leaf first.
pub(super) struct Sums {
    numbers: FxHashMap<Box<[FrameId]>, usize>,
    values: Vec<[Weight; VALUES.len()]>,
    /// All samples, if the options or the sink need their times.
    samples: Option<Vec<Sample>>,
}

/// A sample of CPU time, or the block of a goroutine.
struct Sample {
    /// Nanoseconds on the clock of the trace.
    time: u64,
    stack: usize,
    value: Value,
    weight: Weight,
}

impl Sums {
    pub(super) fn new(options: &Options, sink: &Sink) -> Self {
        let needs_times = sink.needs_times() || sink.is_in_order() || !TimedSamples::new(options).ignores_times();
        Self { numbers: FxHashMap::default(), values: Vec::new(), samples: needs_times.then(Vec::new) }
    }

    pub(super) fn add(&mut self, stack: &[FrameId], value: Value, time: u64, weight: Weight) -> Result<(), Error> {
        let number = match self.numbers.get(stack) {
            Some(number) => *number,
            None => {
                self.numbers.insert(stack.into(), self.values.len());
                self.values.push(Default::default());
                self.values.len() - 1
            }
        };
        let sum = &mut self.values[number][value as usize];
        *sum = sum.checked_add(weight).ok_or(Error::Overflow)?;
        if let Some(samples) = &mut self.samples {
            samples.push(Sample { time, stack: number, value, weight });
        }
        Ok(())
    }

    /// Returns the index of the value that counts.
    pub(super) fn select(&self, document: &mut Document<'_>) -> Result<usize, Error> {
        let default = (0..VALUES.len()).find(|value| self.values.iter().any(|weights| !weights[*value].is_zero()));
        document.select_value(&VALUES, default.unwrap_or_default())
    }

    /// Adds the stacks with a value to the sink.
    pub(super) fn add_to(mut self, value: usize, document: &Document<'_>, sink: &mut Sink) -> Result<(), Error> {
        let mut stacks: Vec<_> = self.numbers.iter().collect();
        stacks.sort_unstable_by_key(|(_, number)| **number);
        if let Some(mut samples) = self.samples.take() {
            sink.note_time(samples.iter().map(|sample| sample.time).min());
            samples.retain(|sample| sample.value as usize == value);
            samples.sort_by_key(|sample| sample.time);
            let stacks: Vec<_> = stacks.into_iter().map(|(frames, _)| &**frames).collect();
            return add_samples(&samples, &stacks, document, sink);
        }
        for (frames, number) in stacks {
            let mut stack = Stack::default();
            stack.extend(frames);
            stack.add_leaf_first(self.values[*number][value], sink)?;
        }
        Ok(())
    }
}

/// Adds the samples that the options select. `stacks` are leaf first.
fn add_samples(
    samples: &[Sample],
    stacks: &[&[FrameId]],
    document: &Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let mut selection = TimedSamples::new(document.options);
    for sample in samples {
        let info = SampleInfo { time: Some(sample.time), ..SampleInfo::default() };
        if selection.accept(&info, sink)? {
            let frames: Vec<FrameId> = stacks[sample.stack].iter().rev().copied().collect();
            let weight = sample.weight;
            selection.add(&TimedSample { info, roots: &[], is_truncated: false, frames: &frames, weight }, sink)?;
        }
    }
    Ok(())
}
