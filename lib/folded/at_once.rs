//! Several files at once, on all cores.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::input::Source;

/// What `work` makes of each file; nothing if it makes nothing of one, or if one is no file, which can be read only once.
pub(super) fn at_once<T: Send>(sources: &[Source], work: impl Fn(&Source) -> Option<T> + Sync) -> Option<Vec<T>> {
    // Standard input is never a file of its own.
    if sources.iter().any(|source| *source == Source::Stdin || source.is_live()) {
        return None;
    }
    let (next, failed) = (AtomicUsize::new(0), sources.len());
    let done: Vec<Mutex<Option<T>>> = sources.iter().map(|_| Mutex::new(None)).collect();
    let run = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = sources.get(number) else { return };
            let made = work(source);
            if made.is_none() {
                next.store(failed, Ordering::Relaxed);
            }
            *done[number].lock().unwrap_or_else(PoisonError::into_inner) = made;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(sources.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
    done.into_iter().map(|made| made.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}
