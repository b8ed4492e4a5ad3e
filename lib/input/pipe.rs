//! Reads standard input from a pipe without slowing its writer.
//!
//! A reader that is faster than the writer empties the pipe and sleeps, and then every small write has to wake it. So
//! the pipe is enlarged, and after a read that returned little the reader waits, so that the pipe can fill. Measured
//! with `perf script`, which writes 4 KiB at a time.

use std::io::{self, Read};
use std::time::Duration;

/// Size in bytes to which the pipe is enlarged, if the system permits it.
const SIZE: usize = 1 << 20;

/// Time for which the pipe is left to fill.
const FILL_TIME: Duration = Duration::from_millis(1);

/// A pipe that is left to fill between reads.
pub(super) struct Pipe<R> {
    reader: R,
    /// Number of bytes that the pipe can hold.
    size: usize,
    /// True if the last read returned less than an eighth of that.
    was_nearly_empty: bool,
}

impl<R: Read> Pipe<R> {
    /// Wraps a pipe that can hold `size` bytes.
    pub(super) fn new(reader: R, size: usize) -> Self {
        Self { reader, size, was_nearly_empty: false }
    }
}

impl<R: Read> Read for Pipe<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.was_nearly_empty {
            std::thread::sleep(FILL_TIME);
        }
        let read = self.reader.read(buffer)?;
        self.was_nearly_empty = read < self.size / 8 && read < buffer.len();
        Ok(read)
    }
}

/// Enlarges the pipe on standard input and returns its size; `None` if standard input is no pipe.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(super) fn enlarge_stdin() -> Option<usize> {
    use std::os::fd::AsRawFd as _;
    let stdin = io::stdin().as_raw_fd();
    // SAFETY: both calls take numbers and a descriptor that stays open. They fail if it is no pipe.
    let size = unsafe {
        libc::fcntl(stdin, libc::F_SETPIPE_SZ, SIZE as libc::c_int);
        libc::fcntl(stdin, libc::F_GETPIPE_SZ)
    };
    usize::try_from(size).ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn enlarge_stdin() -> Option<usize> {
    None
}
