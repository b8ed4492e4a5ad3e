//! Checks whether folded files are sorted, and sums up their weights.

use super::grammar::LineKind;
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
/// `None` if a source is not a regular file, if `is_folded` is false for one, if `may_be_message` is true for a stack of one
/// frame beside others with callers, or if one has a malformed line or is not sorted.
pub fn check_sorted(
    sources: &[Source],
    is_folded: impl Fn(&mut Blocks) -> bool + Sync,
    may_be_message: impl Fn(&[u8]) -> bool + Sync,
) -> Option<Vec<SortedSummary>> {
    map_files(sources, |source| {
        let mut has_messages = false;
        let see = |reader: &SortedReader| {
            let stack = reader.stack();
            has_messages = has_messages || memchr::memchr(b';', stack).is_none() && may_be_message(stack);
        };
        let summary = check_one(source, &is_folded, see).ok().flatten();
        summary.filter(|summary| !has_messages || !summary.has_callers)
    })
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
    loop {
        match reader.next_line()? {
            LineStatus::Stack => {
                let weights = reader.weights();
                total.add(weights)?;
                is_whole &= weights.are_whole();
                has_callers = has_callers || memchr::memchr(b';', reader.stack()).is_some();
                see(&reader);
            }
            LineStatus::End => {
                return Ok(Some(SortedSummary { kind: reader.kind(), total, is_whole, has_callers }));
            }
            LineStatus::Malformed | LineStatus::OutOfOrder => return Ok(None),
        }
    }
}
