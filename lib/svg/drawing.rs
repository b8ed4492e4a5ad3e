//! Stacks that are laid out and packed, ready to be written as SVG.

use super::layout::{Layout, LayoutBuilder};
use super::module_colours::ModuleColours;
use super::options::Options;
use super::packed_profile::{PackedProfile, ProfilePacker};
use crate::Error;
use crate::profile::{FrameId, Profile, Weights};

/// Stacks that are ready to be written as SVG.
#[derive(Debug, Default)]
pub struct Drawing {
    /// The frames that are wide enough to draw.
    pub layout: Layout,
    /// The colours by module.
    pub modules: ModuleColours,
    /// The whole profile, for the viewer; `None` in a plain image.
    pub packed: Option<PackedProfile>,
    /// True if each stack has a weight before and a weight after.
    pub differential: bool,
    /// True if the frames are laid out from the leaves of the stacks.
    pub is_reversed: bool,
    /// Number of stacks that were added; a stack that the input repeats can count more than once.
    pub stack_count: u64,
}

impl Drawing {
    /// Lays out and packs the stacks of a profile.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn from_profile(profile: &Profile, options: &Options) -> Result<Self, Error> {
        let mut builder = DrawingBuilder::new(options, profile.is_differential());
        builder.add_profile(profile)?;
        builder.finish(options)
    }

    /// Lays out the stacks of `reversed`, which are those of `profile` from their leaves. Everything else is that of
    /// `profile`: only there, callers tell what a frame is, and self weight is at the end of a stack.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn from_reversed(profile: &Profile, reversed: &Profile, options: &Options) -> Result<Self, Error> {
        let drawing = Self::from_profile(profile, options)?;
        let mut builder = DrawingBuilder { packer: None, ..DrawingBuilder::new(options, profile.is_differential()) };
        builder.add_profile(reversed)?;
        let layout = builder.layout.finish();
        let largest_own_delta =
            layout.first_weights().values().map(|weights| weights.difference()).max().unwrap_or_default();
        let Layout { marker_totals, marker_own, .. } = drawing.layout;
        let layout = Layout { marker_totals, marker_own, largest_own_delta, ..layout };
        Ok(Self { layout, is_reversed: true, ..drawing })
    }
}

/// Lays out and packs stacks that come in drawing order, from left to right.
pub(super) struct DrawingBuilder {
    layout: LayoutBuilder,
    packer: Option<ProfilePacker>,
    /// The packer's numbers for the new frames of the current stack.
    numbers: Vec<u32>,
    /// For each frame ID of the caller, the packer's number plus 1, or 0 if the frame has no number yet.
    number_by_id: Vec<u32>,
    differential: bool,
    stack_count: u64,
}

impl DrawingBuilder {
    pub(super) fn new(options: &Options, differential: bool) -> Self {
        let layout = LayoutBuilder::new(options.min_share(), options.total);
        let packer = (!options.plain).then(|| ProfilePacker::new(differential));
        Self { layout, packer, numbers: Vec::new(), number_by_id: Vec::new(), differential, stack_count: 0 }
    }

    /// Adds all stacks of a profile.
    fn add_profile(&mut self, profile: &Profile) -> Result<(), Error> {
        let mut new_ids = Vec::new();
        profile.for_each_sorted(|stack| {
            new_ids.clear();
            new_ids.extend(stack.frames[stack.shared..].iter().map(|frame| frame.index() as u32));
            self.add_ids(stack.shared, &new_ids, |id| profile.frames.name(FrameId::from_index(id)), stack.weights)
        })
    }

    /// Adds a stack. Its first `shared` frames are those of the previous stack, the others have the names `new`.
    pub(super) fn add_names<'a>(
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

    /// Like [`add_names`](Self::add_names), but with IDs for the new frames. Looking up an ID is cheaper than hashing a
    /// name for each frame. `name` returns the name of an ID.
    pub(super) fn add_ids<'a>(
        &mut self,
        shared: usize,
        new: &[u32],
        name: impl Fn(u32) -> &'a [u8],
        weights: Weights,
    ) -> Result<(), Error> {
        if let Some(packer) = &mut self.packer {
            self.numbers.clear();
            for id in new {
                let index = *id as usize;
                if self.number_by_id.len() <= index {
                    self.number_by_id.resize(index + 1, 0);
                }
                if self.number_by_id[index] == 0 {
                    self.number_by_id[index] = packer.number(name(*id)) + 1;
                }
                self.numbers.push(self.number_by_id[index] - 1);
            }
        }
        self.add_numbered(shared, new.iter().map(|id| name(*id)), weights)
    }

    /// Adds a stack whose new frames have their packer numbers in `self.numbers`.
    fn add_numbered<'a>(
        &mut self,
        shared: usize,
        new: impl Iterator<Item = &'a [u8]>,
        weights: Weights,
    ) -> Result<(), Error> {
        if let Some(packer) = &mut self.packer {
            packer.add(shared, &self.numbers, weights).map_err(|error| Error::write("memory", error))?;
        }
        self.stack_count += 1;
        self.layout.add(shared, new, weights)
    }

    /// Returns the number of stacks that were added.
    pub(super) fn stack_count(&self) -> u64 {
        self.stack_count
    }

    pub(super) fn finish(self, options: &Options) -> Result<Drawing, Error> {
        let layout = self.layout.finish();
        let mut modules = ModuleColours::assign(&layout);
        if let Some(packer) = &self.packer {
            packer.add_places(&layout, &mut modules);
        }
        let packed = self.packer.map(|packer| packer.finish(options, &modules)).transpose();
        let packed = packed.map_err(|error| Error::write("memory", error))?;
        let Self { differential, stack_count, .. } = self;
        Ok(Drawing { layout, modules, packed, differential, is_reversed: false, stack_count })
    }
}
