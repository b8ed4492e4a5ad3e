//! Processes several files in parallel.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::input::Source;
use crate::parallel::{self, cores};

/// Applies `work` to each file, on all cores, and returns the results in order.
///
/// `None` if `work` returns `None` for a file, or if a source is not a regular file: a stream can be read only once.
pub(super) fn map_files<T: Send>(sources: &[Source], work: impl Fn(&Source) -> Option<T> + Sync) -> Option<Vec<T>> {
    // Standard input counts as a stream, even if it is a file.
    if sources.iter().any(|source| *source == Source::Stdin || source.is_stream()) {
        return None;
    }
    let has_failed = AtomicBool::new(false);
    let results = parallel::map(sources, cores(), |source| {
        let result = if has_failed.load(Ordering::Relaxed) { None } else { work(source) };
        has_failed.fetch_or(result.is_none(), Ordering::Relaxed);
        result
    });
    results.into_iter().collect()
}
