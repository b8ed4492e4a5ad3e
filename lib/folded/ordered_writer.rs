//! An output to which several threads write numbered parts, which appear in order.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::Error;
use crate::parallel::lock;

/// Number of bytes of a part that a thread buffers until the parts before it are written.
const MAX_BUFFERED: usize = 8 << 20;

/// The output that the threads share.
pub(super) struct OrderedWriter<'a> {
    name: &'a str,
    out: Mutex<&'a mut (dyn Write + Send)>,
    /// The number of the part that is written to `out` now; `None` once a part has failed.
    current: Mutex<Option<usize>>,
    changed: Condvar,
    failure: Mutex<Option<Error>>,
}

impl<'a> OrderedWriter<'a> {
    /// Wraps an output, whose name is for messages.
    pub(super) fn new(name: &'a str, out: &'a mut (dyn Write + Send)) -> Self {
        let (out, current, failure) = (Mutex::new(out), Mutex::new(Some(0)), Mutex::new(None));
        Self { name, out, current, changed: Condvar::new(), failure }
    }

    /// Creates the writer of one thread.
    pub(super) fn part_writer(&self) -> PartWriter<'_, 'a> {
        PartWriter { output: self, number: 0, buffered: Vec::new(), is_complete: true }
    }

    /// Returns the value of a result. An error is kept for [`finish`](Self::finish), if it is the first.
    pub(super) fn record_failure<T>(&self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                lock(&self.failure).get_or_insert(error);
                None
            }
        }
    }

    /// Returns the first error that was recorded.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn set_current(&self, current: Option<usize>) {
        *lock(&self.current) = current;
        self.changed.notify_all();
    }
}

/// The writer of one thread, which writes one part after another.
pub(super) struct PartWriter<'t, 'a> {
    output: &'t OrderedWriter<'a>,
    /// The number of the current part.
    number: usize,
    /// Text of the part that cannot be written yet.
    buffered: Vec<u8>,
    is_complete: bool,
}

impl PartWriter<'_, '_> {
    /// Calls `write` to write a part; `None` if it fails or an earlier part failed.
    ///
    /// Parts are numbered from 0 without gaps and must be started in order. After a failed part no other is written.
    pub(super) fn write_part(
        &mut self,
        number: usize,
        write: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Option<()> {
        (self.number, self.is_complete) = (number, false);
        let written = write(self).and_then(|()| self.complete().map_err(|error| Error::write(self.output.name, error)));
        self.output.record_failure(written)
    }

    /// Writes the buffered text once the parts before are written, and passes on to the next part.
    fn complete(&mut self) -> io::Result<()> {
        self.wait()?;
        self.write_through(b"")?;
        self.is_complete = true;
        self.output.set_current(Some(self.number + 1));
        Ok(())
    }

    /// Waits until the parts before this one are written.
    fn wait(&self) -> io::Result<()> {
        let current = lock(&self.output.current);
        let current = self.output.changed.wait_while(current, |current| current.is_some_and(|it| it < self.number));
        current.unwrap_or_else(PoisonError::into_inner).map(|_| ()).ok_or(io::ErrorKind::Other.into())
    }

    fn write_through(&mut self, text: &[u8]) -> io::Result<()> {
        let mut out = lock(&self.output.out);
        out.write_all(&self.buffered)?;
        self.buffered.clear();
        out.write_all(text)
    }
}

impl Write for PartWriter<'_, '_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.buffered.len() + text.len() > MAX_BUFFERED {
            self.wait()?;
        }
        if *lock(&self.output.current) == Some(self.number) {
            self.write_through(text)?;
        } else {
            self.buffered.extend_from_slice(text);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PartWriter<'_, '_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.output.set_current(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{MAX_BUFFERED, OrderedWriter, PartWriter};
    use crate::Error;

    /// Writes the part with a number: as many pieces as its number, then an error if it is to fail.
    fn write_pieces(number: usize, failing: Option<usize>, part: &mut PartWriter) -> Result<(), Error> {
        let piece = vec![b'a' + number as u8; MAX_BUFFERED / 3 + 1];
        (0..number).for_each(|_| drop(part.write_all(&piece)));
        if Some(number) == failing { Err(Error::Overflow) } else { Ok(()) }
    }

    /// Writes nine parts on three threads, of which one may fail; returns the output and whether the failure was
    /// reported.
    fn written(failing: Option<usize>) -> (Vec<u8>, bool) {
        let (mut out, next) = (Vec::new(), AtomicUsize::new(0));
        let output = OrderedWriter::new("out", &mut out);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut writer = output.part_writer();
                    let mut numbers =
                        std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|next| *next < 9));
                    numbers.try_for_each(|number| writer.write_part(number, |part| write_pieces(number, failing, part)))
                });
            }
        });
        let failed = output.finish().is_err_and(|error| matches!(error, Error::Overflow));
        (out, failed)
    }

    #[test]
    fn writes_parts_in_order_whatever_their_size() {
        let parts = (0..9).flat_map(|number| vec![b'a' + number; usize::from(number) * (MAX_BUFFERED / 3 + 1)]);
        assert!(written(None) == (parts.collect(), false));
    }

    #[test]
    fn writes_nothing_after_a_failed_part() {
        let (text, failed) = written(Some(3));
        assert!(failed && text.iter().all(|byte| *byte <= b'd'));
    }
}
