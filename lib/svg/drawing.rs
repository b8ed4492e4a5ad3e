//! What is to be drawn: stacks, laid out and packed as they come.
//!
//! They come from a profile, or straight from folded text: then nothing but what is drawn is kept, or of stacks in no order
//! their frames as numbers.

use super::layout::{Builder, Layout};
use super::options::Options;
use super::payload::{Packer, Payload};
use crate::Error;
use crate::profile::{FrameId, Profile, Weights};

/// Stacks ready to be drawn.
#[derive(Debug, Default)]
pub struct Drawing {
    /// The frames that are wide enough.
    pub layout: Layout,
    /// All frames, for the viewer; none in a plain picture.
    pub payload: Option<Payload>,
    /// Whether the stacks have two weights.
    pub differential: bool,
    /// How many stacks there are.
    pub stacks: u64,
}

impl Drawing {
    /// Draws a profile.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn of(profile: &Profile, options: &Options) -> Result<Self, Error> {
        let mut pen = Pen::new(options, profile.is_differential());
        let name = |frame| profile.frames.name(FrameId::from_index(frame));
        let mut new = Vec::new();
        profile.for_each_sorted(|stack| {
            new.clear();
            new.extend(stack.frames[stack.shared..].iter().map(|frame| frame.index() as u32));
            pen.add_known(stack.shared, &new, name, stack.weights)
        })?;
        pen.finish(options)
    }
}

/// Lays out and packs stacks that come in the order in which they are drawn.
pub(super) struct Pen {
    builder: Builder,
    packer: Option<Packer>,
    /// The new frames of the present stack, as the packer numbers them.
    numbers: Vec<u32>,
    /// Of each known frame the packer's number and one more; 0 if it has none yet.
    known: Vec<u32>,
    differential: bool,
    stacks: u64,
}

impl Pen {
    pub(super) fn new(options: &Options, differential: bool) -> Self {
        let builder = Builder::new(options.narrowest_share(), options.total);
        let packer = (!options.plain).then(|| Packer::new(differential));
        Self { builder, packer, numbers: Vec::new(), known: Vec::new(), differential, stacks: 0 }
    }

    /// Adds a stack: its first `shared` frames are those of the stack before, the others are `new`.
    pub(super) fn add<'a>(
        &mut self,
        shared: usize,
        new: impl Iterator<Item = &'a [u8]> + Clone,
        weights: Weights,
    ) -> Result<(), Error> {
        if let Some(packer) = &mut self.packer {
            self.numbers.clear();
            self.numbers.extend(new.clone().map(|name| packer.number(name)));
        }
        self.add_numbered(shared, new, weights)
    }

    /// The same, where the `new` frames have numbers, each a name.
    pub(super) fn add_known<'a>(
        &mut self,
        shared: usize,
        new: &[u32],
        name: impl Fn(u32) -> &'a [u8],
        weights: Weights,
    ) -> Result<(), Error> {
        if let Some(packer) = &mut self.packer {
            self.numbers.clear();
            for frame in new {
                let place = *frame as usize;
                if self.known.len() <= place {
                    self.known.resize(place + 1, 0);
                }
                if self.known[place] == 0 {
                    self.known[place] = packer.number(name(*frame)) + 1;
                }
                self.numbers.push(self.known[place] - 1);
            }
        }
        self.add_numbered(shared, new.iter().map(|frame| name(*frame)), weights)
    }

    fn add_numbered<'a>(
        &mut self,
        shared: usize,
        new: impl Iterator<Item = &'a [u8]>,
        weights: Weights,
    ) -> Result<(), Error> {
        if let Some(packer) = &mut self.packer {
            packer.add(shared, &self.numbers, weights).map_err(|error| Error::write("memory", error))?;
        }
        self.stacks += 1;
        self.builder.add(shared, new, weights)
    }

    /// How many stacks came.
    pub(super) fn stacks(&self) -> u64 {
        self.stacks
    }

    pub(super) fn finish(self, options: &Options) -> Result<Drawing, Error> {
        let payload = self.packer.map(|packer| packer.finish(&options.scheme, &options.name_attributes)).transpose();
        let payload = payload.map_err(|error| Error::write("memory", error))?;
        Ok(Drawing { layout: self.builder.finish(), payload, differential: self.differential, stacks: self.stacks })
    }
}
