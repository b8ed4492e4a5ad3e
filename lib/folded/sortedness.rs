//! Checks whether folded files are sorted, and sums up their weights.

use super::grammar::LineKind;
use super::message::is_message;
use super::parallel_files::map_files;
use super::sorted_reader::{LineStatus, SortedReader};
use crate::Error;
use crate::input::{Blocks, Source};
use crate::profile::Weights;

/// Properties of a sorted folded file.
#[derive(Clone, Copy, Debug, Default)]
pub struct SortedSummary {
    /// The kind of its lines; `None` if it has no lines.
    pub kind: Option<LineKind>,
    /// The sum of its weights.
    pub total: Weights,
    /// True if all weights are whole numbers.
    pub is_whole: bool,
    /// True if a stack has several frames.
    pub has_callers: bool,
}

/// Reads all files, on all cores, and sums them up.
///
/// `None` if a source is not a regular file, if `is_folded` is false for one, if a stack of one frame may be a message
/// beside others with callers, or if one has a malformed line or is not sorted.
pub fn check_sorted(sources: &[Source], is_folded: impl Fn(&mut Blocks) -> bool + Sync) -> Option<Vec<SortedSummary>> {
    map_files(sources, |source| check_one(source, &is_folded, |_| {}).ok().flatten())
}

/// Reads one file and sums it up; `None` as in [`check_sorted`]. `see` is called with the reader at each stack.
pub(super) fn check_one(
    source: &Source,
    is_folded: impl Fn(&mut Blocks) -> bool,
    mut see: impl FnMut(&SortedReader),
) -> Result<Option<SortedSummary>, Error> {
    let mut input = source.open()?;
    if !is_folded(&mut input) {
        return Ok(None);
    }
    let mut reader = SortedReader::new(input);
    let (mut total, mut is_whole, mut has_callers) = (Weights::default(), true, false);
    let mut may_have_message = false;
    loop {
        match reader.next_line()? {
            LineStatus::Stack => {
                let weights = reader.weights();
                total.add(weights)?;
                is_whole &= weights.are_whole();
                let is_single = memchr::memchr(b';', reader.stack()).is_none();
                has_callers |= !is_single;
                may_have_message = may_have_message || is_single && is_message(reader.stack());
                see(&reader);
            }
            LineStatus::End if may_have_message && has_callers => return Ok(None),
            LineStatus::End => {
                return Ok(Some(SortedSummary { kind: reader.kind(), total, is_whole, has_callers }));
            }
            LineStatus::Malformed | LineStatus::OutOfOrder => return Ok(None),
        }
    }
}
