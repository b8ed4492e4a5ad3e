//! Turns a recording into a profile: stacks of names, with the thread's name as the root.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::Error;
use crate::markers::{self, LOST, TRUNCATED};
use crate::perf::recording::{ROOT_SEPARATOR, Recording, Stack, Tally};
use crate::perf::symbols::frame::NamedFrame;
use crate::perf::symbols::symbolize::LocationFrames;
use crate::perf::thread_state::ThreadState;
use crate::profile::{FrameId, Frames, Profile, SampleWeight, Weight, Weights};
use crate::symbol_name::inlined;

impl Recording {
    /// Returns the profile of an event, and how many of its frames have no name.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn to_profile(&self, event: u32, names: &LocationFrames) -> Result<(Profile, UnnamedFrames), Error> {
        let mut profile = Profile::new(false);
        let mut unnamed = UnnamedFrames::default();
        let mut builder = StackBuilder::new(self, names, &mut profile.frames);
        for (stack, tally) in self.event_tallies(event).filter(|(_, tally)| tally.samples > 0 || tally.period > 0) {
            unnamed.count(&stack, tally.samples, names);
            builder.build(&stack, &mut profile.frames);
            let weight = self.weigh(tally);
            if weight > Weight::ZERO {
                profile.add(&builder.stack, Weights::plain(weight))?;
            }
        }
        let count = self.lost.get(event as usize).copied().unwrap_or(0);
        if count > 0 && self.options.weight != SampleWeight::Microseconds {
            profile.add(&[builder.lost], Weights::plain(self.weigh_lost(event, count)))?;
        }
        Ok((profile, unnamed))
    }

    fn weigh(&self, tally: &Tally) -> Weight {
        match self.options.weight {
            // Rounded to whole microseconds.
            SampleWeight::Microseconds => Weight::from_millionths((tally.period + 500) / 1000 * 1_000_000),
            SampleWeight::Samples => Weight::new(tally.samples),
            SampleWeight::Period => Weight::from_millionths(tally.period.saturating_mul(1_000_000)),
        }
    }

    /// Returns the weight of lost samples. A lost sample's period is the mean of the event's other samples.
    fn weigh_lost(&self, event: u32, lost: u64) -> Weight {
        match self.options.weight {
            // The time of lost samples was charged to stacks in the state `Lost`.
            SampleWeight::Microseconds => Weight::ZERO,
            SampleWeight::Samples => Weight::new(lost),
            SampleWeight::Period => {
                let (mut samples, mut period) = (0, 0);
                for (_, tally) in self.event_tallies(event) {
                    samples += tally.samples;
                    period += tally.period;
                }
                let mean = period / u128::from(samples.max(1));
                Weight::from_millionths((u128::from(lost) * mean).saturating_mul(1_000_000))
            }
        }
    }
}

/// Builds stacks of names.
struct StackBuilder<'a> {
    recording: &'a Recording,
    names: &'a LocationFrames,
    /// The frames of each named frame: in threads of Java programs, and in others.
    frames: [Vec<Option<Vec<FrameId>>>; 2],
    /// The frames of each thread's name, with the labels before it.
    comms: Vec<Vec<FrameId>>,
    truncated: FrameId,
    lost: FrameId,
    waker_separator: FrameId,
    /// The frame of each frame on the stack of a waker.
    waker_frames: FxHashMap<FrameId, FrameId>,
    /// The stack that was built last.
    stack: Vec<FrameId>,
}

impl<'a> StackBuilder<'a> {
    fn new(recording: &'a Recording, names: &'a LocationFrames, frames: &mut Frames) -> Self {
        let comms = recording.comms.iter().map(|(_, comm)| {
            let mut root: Vec<&[u8]> = comm.split(|byte| *byte == ROOT_SEPARATOR).collect();
            let name = comm_frame(root.pop().unwrap_or_default());
            let root = root.into_iter().chain([&name[..]]);
            root.map(|frame| frames.intern(&markers::quote_separator(frame))).collect()
        });
        let comms = comms.collect();
        let none = vec![None; names.frames().len()];
        Self {
            recording,
            names,
            frames: [none.clone(), none],
            comms,
            truncated: frames.intern(TRUNCATED),
            lost: frames.intern(LOST),
            waker_separator: frames.intern(markers::WAKER_SEPARATOR),
            waker_frames: FxHashMap::default(),
            stack: Vec::new(),
        }
    }

    fn build(&mut self, stack: &Stack<'_>, frames: &mut Frames) {
        self.stack.clear();
        if stack.state == ThreadState::Lost {
            self.stack.push(self.lost);
        } else {
            self.push_thread(stack.comm, stack.is_truncated, stack.locations, frames);
            for waker in stack.wakers() {
                self.stack.push(self.waker_separator);
                let start = self.stack.len();
                self.push_thread(waker.comm, waker.is_truncated, waker.locations, frames);
                self.mark_waker(start, frames);
            }
        }
        self.stack.extend(stack.state.markers().iter().map(|marker| frames.intern(marker)));
    }

    /// Appends a thread's name, and the frames of its stack.
    fn push_thread(&mut self, comm: u32, is_truncated: bool, locations: &[u32], frames: &mut Frames) {
        self.stack.extend_from_slice(&self.comms[comm as usize]);
        if is_truncated {
            self.stack.push(self.truncated);
        }
        let name = self.recording.comms.name(FrameId::from_index(comm));
        let name = name.rsplit(|byte| *byte == ROOT_SEPARATOR).next().unwrap_or(name);
        let is_java = inlined::is_java_thread(name);
        for location in locations {
            for frame in self.names.range(*location) {
                self.push_frame(frame, is_java, frames);
            }
        }
    }

    /// Marks the frames from `start` on as those of a waker, instead of by their kind of code.
    fn mark_waker(&mut self, start: usize, frames: &mut Frames) {
        for frame in &mut self.stack[start..] {
            *frame = *self.waker_frames.entry(*frame).or_insert_with(|| {
                let name = [markers::strip_suffix(frames.name(*frame)), markers::WAKER].concat();
                frames.intern(&name)
            });
        }
    }

    /// Appends the frames of a named frame. Its name is simplified as `fg-collapse` does, which may split it.
    fn push_frame(&mut self, index: usize, is_java: bool, frames: &mut Frames) {
        let known = self.frames[usize::from(is_java)][index].get_or_insert_with(|| {
            let frame = &self.names.frames()[index];
            if !frame.has_symbol || frame.is_script {
                return vec![frames.intern(&frame.name)];
            }
            let mut ids = Vec::new();
            for name in inlined::split_frames(&frame.name, is_java) {
                let name = with_source(name, frame);
                let name = if ids.is_empty() { name } else { markers::with_suffix(name, markers::INLINED) };
                ids.push(frames.intern(&name));
            }
            ids
        });
        self.stack.extend_from_slice(known);
    }
}

/// Appends `:FILE:LINE` to a name, if it is known.
fn with_source<'a>(name: Cow<'a, [u8]>, frame: &NamedFrame) -> Cow<'a, [u8]> {
    match &frame.source {
        Some(source) => [&name, &b":"[..], source].concat().into(),
        None => name,
    }
}

/// Number of frames in all samples, and how many of them have no name.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnnamedFrames {
    /// Number of frames in all samples.
    pub frames: u64,
    /// Number of frames without a name.
    pub unnamed: u64,
}

impl UnnamedFrames {
    /// Adds the counts of another profile.
    pub fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.unnamed += other.unnamed;
    }

    /// Adds the frames of a stack with `samples` samples.
    fn count(&mut self, stack: &Stack<'_>, samples: u64, names: &LocationFrames) {
        let wakers = stack.wakers().flat_map(|waker| waker.locations);
        for location in stack.locations.iter().chain(wakers) {
            let frames = &names.frames()[names.range(*location)];
            self.frames += samples * frames.len() as u64;
            self.unnamed += samples * frames.iter().filter(|frame| !frame.has_symbol).count() as u64;
        }
    }
}

/// Returns the frame of a thread's name, with `_` for blanks.
pub fn comm_frame(comm: &[u8]) -> Vec<u8> {
    comm.iter().map(|byte| if *byte == b' ' { b'_' } else { *byte }).collect()
}
