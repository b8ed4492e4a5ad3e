//! What is to be drawn: stacks, laid out and packed as they come.
//!
//! They come from a profile, or straight from folded text: then nothing but what is drawn is kept, or of stacks in no order
//! their frames as numbers.

use super::layout::{Builder, Layout};
use super::options::Options;
use super::payload::{Packer, Payload};
use crate::Error;
use crate::profile::{Profile, Weights};

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
        profile.for_each_sorted(|stack| {
            let new = stack.frames[stack.shared..].iter().map(|frame| profile.frames.name(*frame));
            pen.add(stack.shared, new, stack.weights)
        })?;
        pen.finish(options)
    }
}

/// Lays out and packs stacks that come in the order in which they are drawn.
pub(super) struct Pen {
    builder: Builder,
    packer: Option<Packer>,
    differential: bool,
    stacks: u64,
}

impl Pen {
    pub(super) fn new(options: &Options, differential: bool) -> Self {
        let builder = Builder::new(options.narrowest_share(), options.total);
        Self { builder, packer: (!options.plain).then(|| Packer::new(differential)), differential, stacks: 0 }
    }

    /// Adds a stack: its first `shared` frames are those of the stack before, the others are `new`.
    pub(super) fn add<'a>(
        &mut self,
        shared: usize,
        new: impl Iterator<Item = &'a [u8]> + Clone,
        weights: Weights,
    ) -> Result<(), Error> {
        if let Some(packer) = &mut self.packer {
            packer.add(shared, new.clone(), weights).map_err(|error| Error::write("memory", error))?;
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
