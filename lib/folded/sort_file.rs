//! Files as sorted text, whatever their order.
//!
//! A file that is sorted is its own sorted text. Any other is read into memory by all cores, each of which sorts its part.

use super::grammar::Kind;
use super::parallel_files::map_files;
use super::parallel_read::read_parallel;
use super::read::StackSink;
use super::sortedness::{SortedSummary, check_one};
use super::write::Text;
use crate::Error;
use crate::input::{Blocks, Source};
use crate::parallel;
use crate::profile::{Batch, FrameId, Frames, Profile, Weights};

/// A file, of one weight a line.
pub struct SortedFile {
    /// What it weighs.
    pub total: Weights,
    /// Whether all weights are whole numbers.
    pub is_whole: bool,
    /// SortedReader texts that make it up together.
    pub texts: Vec<Blocks>,
}

/// The sorted texts of all files, which are looked through on all cores. Nothing if one is no file, which can be read only
/// once, has two weights a line, or if there is anything to say of one.
pub fn sort_files(sources: &[Source]) -> Option<Vec<SortedFile>> {
    map_files(sources, |source| match check_one(source, |_| true).ok()? {
        Some(SortedSummary { kind: Some(Kind::Differential), .. }) => None,
        Some(SortedSummary { total, is_whole, .. }) => {
            source.open().ok().map(|text| SortedFile { total, is_whole, texts: vec![text] })
        }
        None => sorted(source),
    })
}

/// The sorted parts of a file that is not sorted.
fn sorted(source: &Source) -> Option<SortedFile> {
    let parts = read_parallel(source, Part::default)?;
    let (mut total, mut is_whole) = (Weights::default(), true);
    for part in &parts {
        total.add(part.profile.total()).ok()?;
        is_whole &= !part.is_fractional;
    }
    let text = |mut part: Part| {
        part.profile.presort(1);
        Blocks::new(source.name(), Box::new(Text::new(part.profile)?)).ok()
    };
    let threads = parts.len();
    let texts = parallel::map(parts, threads, text).into_iter().collect::<Option<_>>()?;
    Some(SortedFile { total, is_whole, texts })
}

/// A part of a file.
#[derive(Default)]
struct Part {
    profile: Profile,
    batch: Batch,
    is_fractional: bool,
    is_differential: bool,
}

impl StackSink for Part {
    fn frames(&mut self) -> &mut Frames {
        &mut self.profile.frames
    }

    fn begin(&mut self, kind: Kind) {
        self.is_differential = kind == Kind::Differential;
    }

    fn add(&mut self, stack: &[FrameId], _: usize, weights: Weights) -> Result<(), Error> {
        if self.is_differential {
            // Whoever asks for one weight a line says so.
            return Err(Error::AlreadyReported);
        }
        self.is_fractional |= !weights.are_whole();
        self.batch.push(stack, weights, &self.profile.frames);
        if self.batch.is_full() { self.profile.add_batch(&mut self.batch) } else { Ok(()) }
    }

    fn end(&mut self) -> Result<(), Error> {
        self.profile.add_batch(&mut self.batch)
    }
}
