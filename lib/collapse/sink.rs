//! Receives the samples of a parser: as sums, in input order, or with their times.

use super::filter::args::TimeSpan;
use super::held_samples::HeldSamples;
use super::timeline::{SampleTime, Timeline};
use crate::Error;
use crate::markers;
use crate::markers::UNKNOWN;
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// Receiver of the samples of one parser thread.
pub(super) struct Sink {
    profile: Profile,
    batch: Batch,
    store: SampleStore,
    /// The samples of the input, if a span of time selects them that begins with the earliest one.
    held: Option<HeldSamples>,
    is_empty: bool,
    is_input_empty: bool,
    /// True if a stack of the current input has weight 0.
    has_weightless: bool,
    /// True if the options left out a sample of the current input, or of any one.
    has_left_out: bool,
    has_ever_left_out: bool,
    /// True if a stack of any input was left out because its weight is 0.
    has_ever_been_weightless: bool,
    /// Number of frames of all samples.
    frame_count: u64,
    /// Number of samples whose frames near the root were left out because there were too many.
    pub(super) cut_stacks: u64,
    /// Number of frames that the input refers to but does not describe.
    pub(super) missing_frames: u64,
}

/// The information that a sink keeps of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SinkMode {
    /// Only sums by stack.
    #[default]
    Sums,
    /// Each sample in input order.
    Order,
    /// Each sample with its time.
    Times,
}

enum SampleStore {
    Sums,
    Order(OrderedSamples),
    Times(Box<Timeline>),
}

impl Default for Sink {
    fn default() -> Self {
        Self::new(SinkMode::Sums)
    }
}

/// Samples in input order; equal neighbours are added up.
#[derive(Default)]
pub(super) struct OrderedSamples {
    last: Vec<FrameId>,
    text: Vec<u8>,
    runs: Vec<(usize, Weights)>,
}

impl Sink {
    pub(super) fn new(mode: SinkMode) -> Self {
        let store = match mode {
            SinkMode::Sums => SampleStore::Sums,
            SinkMode::Order => SampleStore::Order(OrderedSamples::default()),
            SinkMode::Times => SampleStore::Times(Box::default()),
        };
        Self {
            profile: Profile::default(),
            batch: Batch::default(),
            store,
            held: None,
            is_empty: true,
            is_input_empty: true,
            has_weightless: false,
            has_left_out: false,
            has_ever_left_out: false,
            has_ever_been_weightless: false,
            frame_count: 0,
            cut_stacks: 0,
            missing_frames: 0,
        }
    }

    pub(super) fn frames(&self) -> &Frames {
        match &self.store {
            SampleStore::Times(timeline) => &timeline.profile.frames,
            _ => &self.profile.frames,
        }
    }

    /// Returns the frame in the place of one that the input refers to but does not describe, and counts it.
    pub(super) fn missing_frame(&mut self) -> FrameId {
        self.missing_frames += 1;
        self.intern(markers::UNKNOWN)
    }

    pub(super) fn intern(&mut self, name: &[u8]) -> FrameId {
        match &mut self.store {
            SampleStore::Times(timeline) => timeline.profile.frames.intern(name),
            _ => self.profile.frames.intern(name),
        }
    }

    /// True if samples need their times: they are kept with them, or selected by them when all have been read.
    pub(super) fn needs_times(&self) -> bool {
        matches!(self.store, SampleStore::Times(_)) || self.held.is_some()
    }

    /// Holds all samples until [`release_samples`](Self::release_samples).
    pub(super) fn hold_samples(&mut self, span: TimeSpan) {
        self.held = Some(HeldSamples::new(span));
    }

    /// Notes the time of a sample of the input, whether it counts or not.
    pub(super) fn note_time(&mut self, time: Option<u64>) {
        if let (Some(held), Some(time)) = (&mut self.held, time) {
            held.note_time(time);
        }
    }

    /// Returns the earliest time of the input that was noted, if samples are held.
    pub(super) fn earliest_time(&self) -> Option<u64> {
        self.held.as_ref()?.earliest()
    }

    /// Adds the samples that were held and are in the span of time, which begins with the earliest one, and holds those
    /// of the next input.
    pub(super) fn release_samples(&mut self, earliest: u64) -> Result<(), Error> {
        let Some(held) = self.held.take() else { return Ok(()) };
        let span = held.span();
        self.note_left_out();
        held.release(earliest, |stack, weight, time| {
            self.add_timed(stack, Weights::plain(weight), Some(time))?;
            self.frame_count -= stack.len() as u64;
            Ok(())
        })?;
        self.flush()?;
        self.hold_samples(span);
        Ok(())
    }

    /// Interns the thread of a sample with a time.
    pub(super) fn intern_thread(&mut self, name: &[u8]) -> FrameId {
        match &mut self.store {
            SampleStore::Times(timeline) => timeline.threads.intern(name),
            _ => FrameId::from_index(0),
        }
    }

    pub(super) fn is_differential(&self) -> bool {
        self.profile.is_differential()
    }

    /// Makes the profile differential. It must be empty.
    pub(super) fn make_differential(&mut self) {
        self.profile = Profile::new(true);
    }

    /// Adds a sample, root first.
    #[inline]
    pub(super) fn add(&mut self, stack: &[FrameId], weights: Weights) -> Result<(), Error> {
        self.add_timed(stack, weights, None)
    }

    /// Adds a sample with its time, root first.
    #[inline]
    pub(super) fn add_timed(
        &mut self,
        stack: &[FrameId],
        weights: Weights,
        time: Option<SampleTime>,
    ) -> Result<(), Error> {
        self.is_input_empty = false;
        self.frame_count += stack.len() as u64;
        if let (Some(held), Some(time)) = (&mut self.held, time) {
            held.add(stack, weights.after, time);
            return Ok(());
        }
        self.is_empty = false;
        // A single unnamed frame would not be a valid stack.
        let nameless = matches!(stack, [only] if self.frames().name(*only).trim_ascii().is_empty());
        let unknown = if nameless { Some([self.intern(UNKNOWN)]) } else { None };
        let stack = unknown.as_ref().map_or(stack, |unknown| unknown);
        match &mut self.store {
            SampleStore::Sums => {
                self.batch.push(stack, weights, &self.profile.frames);
                if self.batch.is_full() { self.flush() } else { Ok(()) }
            }
            SampleStore::Order(runs) => runs.add(stack, weights, &self.profile.frames),
            SampleStore::Times(timeline) => timeline.add_sample(stack, weights.after, time),
        }
    }

    /// Adds buffered samples to the profile.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.profile.add_batch(&mut self.batch)
    }

    /// True if samples are kept in input order.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self.store, SampleStore::Order(_))
    }

    /// Starts a new input.
    pub(super) fn begin_input(&mut self) {
        self.is_input_empty = true;
        self.has_weightless = false;
        self.has_left_out = false;
    }

    /// Notes that a stack was left out because its weight is 0.
    pub(super) fn note_weightless(&mut self) {
        (self.has_weightless, self.has_ever_been_weightless) = (true, true);
    }

    /// Returns true if a stack of any input was left out because its weight is 0.
    pub(super) fn has_ever_been_weightless(&self) -> bool {
        self.has_ever_been_weightless
    }

    /// Returns true if a stack of the current input was left out because its weight is 0.
    pub(super) fn has_weightless(&self) -> bool {
        self.has_weightless
    }

    /// Notes that the options left out a sample.
    pub(super) fn note_left_out(&mut self) {
        (self.has_left_out, self.has_ever_left_out) = (true, true);
    }

    /// Returns true if the options left out a sample of the current input.
    pub(super) fn has_left_out(&self) -> bool {
        self.has_left_out
    }

    /// Returns true if the options left out a sample at all.
    pub(super) fn has_ever_left_out(&self) -> bool {
        self.has_ever_left_out
    }

    /// True if no sample of the current input was added.
    pub(super) fn is_input_empty(&self) -> bool {
        self.is_input_empty
    }

    /// Returns the number of frames of all samples that were added.
    pub(super) fn count_frames(&self) -> u64 {
        self.frame_count
    }

    /// True if no sample was added at all.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns the sums of all flushed samples.
    pub(super) fn into_profile(self) -> Profile {
        self.profile
    }

    /// Returns the samples since the last call, if they are kept in order.
    pub(super) fn take_ordered_samples(&mut self) -> Option<OrderedSamples> {
        match &mut self.store {
            SampleStore::Order(runs) => Some(std::mem::take(runs)),
            _ => None,
        }
    }

    /// Returns all samples with times, if they are kept.
    pub(super) fn into_timeline(self) -> Option<Timeline> {
        match self.store {
            SampleStore::Times(timeline) => Some(*timeline),
            _ => None,
        }
    }
}

impl OrderedSamples {
    fn add(&mut self, stack: &[FrameId], weights: Weights, frames: &Frames) -> Result<(), Error> {
        if self.last == stack
            && let Some((_, sum)) = self.runs.last_mut()
        {
            return sum.add(weights);
        }
        self.last.clear();
        self.last.extend_from_slice(stack);
        let Some((leaf, callers)) = stack.split_last() else { return Ok(()) };
        for frame in callers {
            self.text.extend_from_slice(frames.name(*frame));
            self.text.push(b';');
        }
        self.text.extend_from_slice(frames.name(frames.as_leaf(*leaf)));
        self.runs.push((self.text.len(), weights));
        Ok(())
    }

    /// Iterates over stacks as text, with their weights.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Weights)> {
        let starts = std::iter::once(0).chain(self.runs.iter().map(|(end, _)| *end));
        starts.zip(&self.runs).map(|(start, (end, weights))| (&self.text[start..*end], *weights))
    }
}
