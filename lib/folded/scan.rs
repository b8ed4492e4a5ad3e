//! A first look at sorted folded files: whether they are, and what they weigh.

use super::at_once::at_once;
use super::grammar::Kind;
use super::sorted::{Sorted, Step};
use crate::Error;
use crate::input::{Blocks, Source};
use crate::profile::Weights;

/// What a first look at a file finds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scanned {
    /// How many weights its lines have, if there are any.
    pub kind: Option<Kind>,
    /// What it weighs.
    pub total: Weights,
    /// Whether all weights are whole numbers.
    pub is_whole: bool,
}

/// Looks through all files, on all cores. Nothing if one is no file, which can be read only once, if `is_folded` says that
/// one is something else, or if one has a malformed line or stacks out of order.
pub fn scan(sources: &[Source], is_folded: impl Fn(&mut Blocks) -> bool + Sync) -> Option<Vec<Scanned>> {
    at_once(sources, |source| scan_one(source, &is_folded).ok().flatten())
}

/// Looks through one file.
pub(super) fn scan_one(source: &Source, is_folded: impl Fn(&mut Blocks) -> bool) -> Result<Option<Scanned>, Error> {
    let mut input = source.open()?;
    if !is_folded(&mut input) {
        return Ok(None);
    }
    let mut input = Sorted::new(input);
    let (mut total, mut is_whole) = (Weights::default(), true);
    loop {
        match input.step()? {
            Step::Stack => {
                let weights = input.weights();
                total.add(weights)?;
                is_whole &= weights.are_whole();
            }
            Step::End => return Ok(Some(Scanned { kind: input.kind(), total, is_whole })),
            Step::Malformed | Step::Disorder => return Ok(None),
        }
    }
}
