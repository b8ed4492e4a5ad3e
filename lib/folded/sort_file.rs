//! Provides files as sorted stacks, whatever their order.
//!
//! A sorted file is read as it is. Any other file is read into memory on all cores, each of which sorts its part.

use super::distinct_names::DistinctNames;
use super::grammar::LineKind;
use super::other_input::check_is_folded;
use super::parallel_files::map_files;
use super::parallel_read::read_parallel;
use super::sorted_profile::SortedProfile;
use super::sorted_reader::SortedInput;
use super::sortedness::{SortedSummary, check_one};
use super::stack_parser::StackSink;
use crate::Error;
use crate::input::Source;
use crate::parallel;
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// A file of one weight per line, as sorted stacks.
pub struct SortedFile {
    /// The sum of its weights.
    pub total: Weights,
    /// True if all weights are whole numbers.
    pub is_whole: bool,
    /// True if it has no stacks.
    pub is_empty: bool,
    /// Names of its programs and source files.
    pub names: DistinctNames,
    /// Sorted stacks that together are those of the file.
    pub parts: Vec<SortedInput>,
}

/// Returns the sorted stacks of all files, which are read on all cores.
///
/// `None` if a source is not a regular file, has two weights per line, or if there is anything to report about one.
pub fn sort_files(sources: &[Source]) -> Option<Vec<SortedFile>> {
    map_files(sources, |source| {
        let mut names = DistinctNames::default();
        match check_one(
            source,
            |input| check_is_folded(input).is_ok(),
            |reader| names.add_sorted(reader.stack(), reader.shared_bytes()),
        )
        .ok()?
        {
            Some(SortedSummary { kind: Some(LineKind::Differential), .. }) => None,
            Some(SortedSummary { total, is_whole, kind, .. }) => {
                let is_empty = kind.is_none();
                let text = SortedInput::Text(source.open().ok()?);
                Some(SortedFile { total, is_whole, is_empty, names, parts: vec![text] })
            }
            None => sort_file(source),
        }
    })
}

/// Sorts a file in parts.
fn sort_file(source: &Source) -> Option<SortedFile> {
    let parts = read_parallel(source, Part::default)?;
    let (mut total, mut is_whole) = (Weights::default(), true);
    let mut names = DistinctNames::default();
    for part in &parts {
        names.add_profile(&part.profile);
        total.add(part.profile.total()).ok()?;
        is_whole &= !part.has_fractions;
    }
    let threads = parts.len();
    let parts = parallel::map(parts, threads, Part::into_sorted);
    Some(SortedFile { total, is_whole, is_empty: false, names, parts })
}

/// The stacks of a file that one thread read.
#[derive(Default)]
struct Part {
    profile: Profile,
    batch: Batch,
    has_fractions: bool,
    is_differential: bool,
}

impl Part {
    fn into_sorted(self) -> SortedInput {
        SortedInput::Profile(Box::new(SortedProfile::new(self.profile)))
    }
}

impl StackSink for Part {
    fn frames(&mut self) -> &mut Frames {
        &mut self.profile.frames
    }

    fn begin(&mut self, kind: LineKind) {
        self.is_differential = kind == LineKind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        if self.is_differential {
            // The error is dropped: the caller reports such a file when it reads it again.
            return Err(Error::AlreadyReported);
        }
        self.has_fractions |= !weights.are_whole();
        self.batch.push(stack, weights, &self.profile.frames);
        if self.batch.is_full() { self.profile.add_batch(&mut self.batch) } else { Ok(()) }
    }

    fn end(&mut self) -> Result<(), Error> {
        self.profile.add_batch(&mut self.batch)
    }
}
