//! Work on several threads: up to the number asked for, or fewer if the system does not give them.

use std::num::NonZeroUsize;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::{Error, io_error_text};

/// Returns the number of CPUs that the process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Applies `work` to each item on up to `threads` threads and returns the results in the order of the items.
///
/// The calling thread is one of the workers.
pub(crate) fn map<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    threads: usize,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let items: Vec<I> = items.into_iter().collect();
    let threads = threads.min(items.len());
    let queue = Mutex::new(items.into_iter().enumerate());
    let run = || {
        let items = std::iter::from_fn(|| lock(&queue).next());
        items.map(|(index, item)| (index, work(item))).collect::<Vec<_>>()
    };
    let mut results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, run).ok()).collect();
        let mut results = run();
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Starts a thread that calls `work` with `input`; returns the input if the system gives no thread.
pub(crate) fn spawn_with<I: Send + 'static>(input: I, work: impl FnOnce(I) + Send + 'static) -> Result<(), I> {
    // The input goes through a channel: a closure that cannot be spawned is dropped with everything that it owns.
    let (sender, receiver) = channel();
    match Builder::new().spawn(move || receiver.recv().map_or((), work)) {
        Ok(_) => sender.send(input).map_err(|unsent| unsent.0),
        Err(_) => Err(input),
    }
}

/// Starts a scoped thread for work that the caller cannot do itself.
///
/// # Errors
/// [`Error::System`] if the system gives no thread.
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    let handle = Builder::new().spawn_scoped(scope, work);
    handle.map_err(|error| Error::System(format!("cannot start a thread: {}", io_error_text(&error))))
}

/// Locks a mutex even if a thread panicked while it held the lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{map, spawn_with};

    #[test]
    fn maps_each_item_once_and_keeps_the_order() {
        for threads in [0, 1, 3, 100] {
            let calls = AtomicUsize::new(0);
            let results = map(0..50, threads, |item| {
                calls.fetch_add(1, Ordering::Relaxed);
                item * 2
            });
            assert_eq!(results, (0..50).map(|item| item * 2).collect::<Vec<_>>());
            assert_eq!(calls.into_inner(), 50);
        }
    }

    #[test]
    fn passes_the_input_to_the_thread() {
        let (send, receive) = std::sync::mpsc::channel();
        assert_eq!(spawn_with(7, move |item| send.send(item).unwrap()), Ok(()));
        assert_eq!(receive.recv(), Ok(7));
    }
}
