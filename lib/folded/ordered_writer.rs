//! Several threads that write one text, each a part of it, in order.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::Error;

/// How much of its part a thread holds until the parts before it are written.
const HELD: usize = 8 << 20;

/// The output, and whose turn it is.
pub(super) struct OrderedWriter<'a> {
    name: &'a str,
    out: Mutex<&'a mut (dyn Write + Send)>,
    /// The number of the part that is written; nothing once one has failed.
    present: Mutex<Option<usize>>,
    changed: Condvar,
    failure: Mutex<Option<Error>>,
}

impl<'a> OrderedWriter<'a> {
    /// The output, and its name for messages.
    pub(super) fn new(name: &'a str, out: &'a mut (dyn Write + Send)) -> Self {
        let (out, present, failure) = (Mutex::new(out), Mutex::new(Some(0)), Mutex::new(None));
        Self { name, out, present, changed: Condvar::new(), failure }
    }

    /// What one of the threads writes with.
    pub(super) fn writer(&self) -> Writer<'_, 'a> {
        Writer { turns: self, number: 0, held: Vec::new(), ended: true }
    }

    /// Keeps the failure, if it is the first.
    pub(super) fn keep<T>(&self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| lock(&self.failure).get_or_insert(error).is_broken_pipe()).ok()
    }

    /// Says what failed.
    pub(super) fn end(self) -> Result<(), Error> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn next(&self, present: Option<usize>) {
        *lock(&self.present) = present;
        self.changed.notify_all();
    }
}

/// One thread's way to write.
pub(super) struct Writer<'t, 'a> {
    turns: &'t OrderedWriter<'a>,
    /// The part that it writes, what of it waits for its turn, and whether that is all.
    number: usize,
    held: Vec<u8>,
    ended: bool,
}

impl Writer<'_, '_> {
    /// Lets `write` write a part. Parts are numbered without a gap and begun in order; after one that failed none is
    /// written.
    pub(super) fn part(&mut self, number: usize, write: impl FnOnce(&mut Self) -> Result<(), Error>) -> Option<()> {
        (self.number, self.ended) = (number, false);
        let written = write(self).and_then(|()| self.end().map_err(|error| Error::write(self.turns.name, error)));
        self.turns.keep(written)
    }

    /// Writes what is left, in its turn.
    fn end(&mut self) -> io::Result<()> {
        self.wait()?;
        self.pass_on(b"")?;
        self.ended = true;
        self.turns.next(Some(self.number + 1));
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        let not_yet = |present: &mut Option<usize>| present.is_some_and(|present| present < self.number);
        let present = self.turns.changed.wait_while(lock(&self.turns.present), not_yet);
        present.unwrap_or_else(PoisonError::into_inner).map(|_| ()).ok_or(io::ErrorKind::Other.into())
    }

    fn pass_on(&mut self, text: &[u8]) -> io::Result<()> {
        let mut out = lock(&self.turns.out);
        out.write_all(&self.held)?;
        self.held.clear();
        out.write_all(text)
    }
}

impl Write for Writer<'_, '_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.held.len() + text.len() > HELD {
            self.wait()?;
        }
        if *lock(&self.turns.present) == Some(self.number) {
            self.pass_on(text)?;
        } else {
            self.held.extend_from_slice(text);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer<'_, '_> {
    fn drop(&mut self) {
        if !self.ended {
            self.turns.next(None);
        }
    }
}

pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{HELD, OrderedWriter, Writer};
    use crate::Error;

    /// What three threads write, of which one fails at a part if it is said.
    fn written(failing: Option<usize>) -> (Vec<u8>, bool) {
        let (mut out, next) = (Vec::new(), AtomicUsize::new(0));
        let turns = OrderedWriter::new("out", &mut out);
        let write = |number: usize, part: &mut Writer| {
            let piece = vec![b'a' + number as u8; HELD / 3 + 1];
            (0..number).for_each(|_| drop(part.write_all(&piece)));
            if Some(number) == failing { Err(Error::Overflow) } else { Ok(()) }
        };
        let work = || {
            let mut writer = turns.writer();
            let mut numbers =
                std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|next| *next < 9));
            numbers.try_for_each(|number| writer.part(number, |part| write(number, part)))
        };
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(work))));
        let failed = turns.end().is_err_and(|error| matches!(error, Error::Overflow));
        (out, failed)
    }

    #[test]
    fn parts_stand_in_order_whatever_their_size() {
        let part = |number: u8| vec![b'a' + number; usize::from(number) * (HELD / 3 + 1)];
        assert!(written(None) == ((0..9).flat_map(part).collect(), false));
    }

    #[test]
    fn after_one_that_failed_none_is_written() {
        let (text, failed) = written(Some(3));
        assert!(failed && text.iter().all(|byte| *byte <= b'd'));
    }
}
