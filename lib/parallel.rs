//! Work on several threads: as many as are asked for, or as few as the system gives.

use std::num::NonZeroUsize;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::{Error, io_error_text};

/// One thread a core.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// What `work` makes of each item, in the items' order. This thread is one of those that work.
pub(crate) fn map<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    threads: usize,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let items: Vec<I> = items.into_iter().collect();
    let threads = threads.min(items.len());
    let waiting = Mutex::new(items.into_iter().enumerate());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || std::iter::from_fn(next).map(|(number, item)| (number, work(item))).collect::<Vec<_>>();
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, run).ok()).collect();
        let mut done = run();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, made)| made).collect()
}

/// Gives a thread of its own something to work on; gives it back where the system gives no thread.
pub(crate) fn spawn_with<I: Send + 'static>(input: I, work: impl FnOnce(I) + Send + 'static) -> Result<(), I> {
    let (give, given) = channel();
    match Builder::new().spawn(move || given.recv().map_or((), work)) {
        Ok(_) => give.send(input).map_err(|unsent| unsent.0),
        Err(_) => Err(input),
    }
}

/// Starts a thread that the caller cannot do without.
///
/// # Errors
/// [`Error::System`] where the system gives none.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    let refused = |error| Error::System(format!("cannot start a thread: {}", io_error_text(&error)));
    Builder::new().spawn_scoped(scope, work).map_err(refused)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{map, spawn_with};

    #[test]
    fn each_item_is_worked_on_once_and_what_is_made_stands_in_order() {
        for threads in [0, 1, 3, 100] {
            let worked = AtomicUsize::new(0);
            let made = map(0..50, threads, |item| {
                worked.fetch_add(1, Ordering::Relaxed);
                item * 2
            });
            assert_eq!(made, (0..50).map(|item| item * 2).collect::<Vec<_>>());
            assert_eq!(worked.into_inner(), 50);
        }
    }

    #[test]
    fn what_is_handed_over_arrives() {
        let (send, receive) = std::sync::mpsc::channel();
        assert_eq!(spawn_with(7, move |item| send.send(item).unwrap()), Ok(()));
        assert_eq!(receive.recv(), Ok(7));
    }
}
