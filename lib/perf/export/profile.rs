//! A recording as a profile: its places named, its threads as roots, what was lost in its place.

use std::borrow::Cow;

use crate::Error;
use crate::markers;
use crate::markers::LOST;
use crate::markers::TRUNCATED;
use crate::perf::recording::{Recording, Tally};
use crate::perf::symbols::frame::NamedFrame;
use crate::perf::symbols::symbolize::LocationFrames;
use crate::perf::thread_state::ThreadState;
use crate::profile::{FrameId, Frames, Profile, SampleWeight, Weight, Weights};
use crate::symbol_name::inlined;

impl Recording {
    /// An event's samples as a profile, named; and how many of how many frames have no name.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn profile(&self, event: u32, names: &LocationFrames) -> Result<(Profile, Unknown), Error> {
        let mut profile = Profile::new(false);
        let mut unknown = Unknown::default();
        let mut frames = FrameNames::new(names);
        let comms: Vec<FrameId> = self.comms.iter().map(|(_, comm)| profile.frames.intern(&comm_frame(comm))).collect();
        let truncated = profile.frames.intern(TRUNCATED);
        let lost = profile.frames.intern(LOST);
        let mut stack = Vec::new();
        for (number, tally) in self.tallies.iter().enumerate().filter(|(_, tally)| tally.samples > 0) {
            let this = self.stack(number as u32);
            if this.event != event || tally.samples == 0 {
                continue;
            }
            let java = inlined::is_java_thread(self.comm(&this));
            stack.clear();
            stack.push(comms[this.comm as usize]);
            if this.is_cut {
                stack.push(truncated);
            }
            for location in this.places {
                let span = names.range(*location);
                unknown.frames += tally.samples * span.len() as u64;
                unknown.unknown +=
                    tally.samples * names.frames()[span.clone()].iter().filter(|f| !f.has_symbol).count() as u64;
                for frame in span {
                    stack.extend_from_slice(frames.named(frame, java, &mut profile.frames));
                }
            }
            if this.state == ThreadState::Lost {
                stack.clear();
                stack.push(lost);
            }
            stack.extend(this.state.leaves().iter().map(|leaf| profile.frames.intern(leaf)));
            let weight = match self.options.weight {
                // To the nearest one.
                SampleWeight::Microseconds => Weight::from_millionths((tally.period + 500) / 1000 * 1_000_000),
                SampleWeight::Samples => Weight::new(tally.samples),
                SampleWeight::Period => Weight::from_millionths(tally.period.saturating_mul(1_000_000)),
            };
            if weight > Weight::ZERO {
                profile.add(&stack, Weights::plain(weight))?;
            }
        }
        let count = self.lost.get(event as usize).copied().unwrap_or(0);
        if count > 0 && self.options.weight != SampleWeight::Microseconds {
            profile.add(&[lost], Weights::plain(self.lost_weight(event, count)))?;
        }
        Ok((profile, unknown))
    }

    /// What the lost samples would have weighed: with periods, each as much as the event's others in the mean.
    fn lost_weight(&self, event: u32, lost: u64) -> Weight {
        match self.options.weight {
            // Charged already: the time is known, and only its stack is not.
            SampleWeight::Microseconds => Weight::ZERO,
            SampleWeight::Samples => Weight::new(lost),
            SampleWeight::Period => {
                let of_event = |(number, _): &(usize, &Tally)| self.stack(*number as u32).event == event;
                let tallies = self.tallies.iter().enumerate().filter(of_event);
                let (samples, period) =
                    tallies.fold((0, 0), |sum, (_, tally)| (sum.0 + tally.samples, sum.1 + tally.period));
                let mean = period / u128::from(samples.max(1));
                Weight::from_millionths((u128::from(lost) * mean).saturating_mul(1_000_000))
            }
        }
    }
}

/// The frames as they stand in folded text: tidied as `fg-collapse` tidies names.
struct FrameNames<'a> {
    symbols: &'a LocationFrames,
    /// For each symbol its frames, in a thread that runs Java and in another.
    named: [Vec<Option<Vec<FrameId>>>; 2],
}

impl<'a> FrameNames<'a> {
    fn new(symbols: &'a LocationFrames) -> Self {
        Self { symbols, named: [vec![None; symbols.frames().len()], vec![None; symbols.frames().len()]] }
    }

    fn named(&mut self, frame: usize, java: bool, frames: &mut Frames) -> &[FrameId] {
        self.named[usize::from(java)][frame].get_or_insert_with(|| {
            let frame = &self.symbols.frames()[frame];
            if !frame.has_symbol {
                return vec![frames.intern(&frame.name)];
            }
            let mut names = Vec::new();
            for name in inlined::split_frames(&frame.name, java) {
                let name = located(name, frame);
                let name = if names.is_empty() { name } else { markers::with_suffix(name, markers::INLINED) };
                names.push(frames.intern(&name));
            }
            names
        })
    }
}

/// With `:FILE:LINE` if that is known.
fn located<'a>(name: Cow<'a, [u8]>, frame: &NamedFrame) -> Cow<'a, [u8]> {
    match &frame.source {
        Some(source) => [&name, &b":"[..], source].concat().into(),
        None => name,
    }
}

/// How many of all frames have no name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unknown {
    /// All frames of all samples.
    pub frames: u64,
    /// Those without a name.
    pub unknown: u64,
}

impl Unknown {
    /// Adds those of another profile.
    pub fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.unknown += other.unknown;
    }
}

/// A thread's name as a frame: blanks become `_`.
pub fn comm_frame(comm: &[u8]) -> Vec<u8> {
    comm.iter().map(|byte| if *byte == b' ' { b'_' } else { *byte }).collect()
}
