//! Several files at once, on all cores.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::input::Source;
use crate::parallel::{self, cores};

/// What `work` makes of each file; nothing if it makes nothing of one, or if one is no file, which can be read only once.
pub(super) fn map_files<T: Send>(sources: &[Source], work: impl Fn(&Source) -> Option<T> + Sync) -> Option<Vec<T>> {
    // Standard input is never a file of its own.
    if sources.iter().any(|source| *source == Source::Stdin || source.is_stream()) {
        return None;
    }
    let failed = AtomicBool::new(false);
    let work = |source| {
        let made = if failed.load(Ordering::Relaxed) { None } else { work(source) };
        failed.fetch_or(made.is_none(), Ordering::Relaxed);
        made
    };
    parallel::map(sources, cores(), work).into_iter().collect()
}
