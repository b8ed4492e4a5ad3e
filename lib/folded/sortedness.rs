//! A first look at sorted folded files: whether they are, and what they weigh.

use super::grammar::Kind;
use super::parallel_files::map_files;
use super::sorted_reader::{LineStatus, SortedReader};
use crate::Error;
use crate::input::{Blocks, Source};
use crate::profile::Weights;

/// What a first look at a file finds.
#[derive(Clone, Copy, Debug, Default)]
pub struct SortedSummary {
    /// How many weights its lines have, if there are any.
    pub kind: Option<Kind>,
    /// What it weighs.
    pub total: Weights,
    /// Whether all weights are whole numbers.
    pub is_whole: bool,
}

/// Looks through all files, on all cores. Nothing if one is no file, which can be read only once, if `is_folded` says that
/// one is something else, or if one has a malformed line or stacks out of order.
pub fn check_sorted(sources: &[Source], is_folded: impl Fn(&mut Blocks) -> bool + Sync) -> Option<Vec<SortedSummary>> {
    map_files(sources, |source| check_one(source, &is_folded).ok().flatten())
}

/// Looks through one file.
pub(super) fn check_one(
    source: &Source,
    is_folded: impl Fn(&mut Blocks) -> bool,
) -> Result<Option<SortedSummary>, Error> {
    let mut input = source.open()?;
    if !is_folded(&mut input) {
        return Ok(None);
    }
    let mut input = SortedReader::new(input);
    let (mut total, mut is_whole) = (Weights::default(), true);
    loop {
        match input.next_line()? {
            LineStatus::Stack => {
                let weights = input.weights();
                total.add(weights)?;
                is_whole &= weights.are_whole();
            }
            LineStatus::End => return Ok(Some(SortedSummary { kind: input.kind(), total, is_whole })),
            LineStatus::Malformed | LineStatus::OutOfOrder => return Ok(None),
        }
    }
}
