//! Standard input that is a pipe.
//!
//! A reader that is quicker than the writer makes the writer slower: it empties the pipe at once, sleeps, and every
//! small write has to wake it. So it lets the pipe fill first: the pipe is made larger, and after a read that found
//! little there it waits for a moment. Measured with `perf script`, which writes 4 KiB at a time.

use std::io::{self, Read};
use std::time::Duration;

/// How large a pipe is made, if the system allows it.
const SIZE: usize = 1 << 20;

/// How long the pipe is left to fill.
const MOMENT: Duration = Duration::from_millis(1);

/// Reads a pipe without waking its writer too often.
pub(super) struct Pipe<R> {
    reader: R,
    size: usize,
    found_little: bool,
}

impl<R: Read> Pipe<R> {
    /// For a pipe of which so many bytes can be in flight.
    pub(super) fn new(reader: R, size: usize) -> Self {
        Self { reader, size, found_little: false }
    }
}

impl<R: Read> Read for Pipe<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.found_little {
            std::thread::sleep(MOMENT);
        }
        let read = self.reader.read(buffer)?;
        self.found_little = read < self.size / 8 && read < buffer.len();
        Ok(read)
    }
}

/// If standard input is a pipe: its size, after an attempt to make it larger.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(super) fn enlarge_stdin() -> Option<usize> {
    use std::os::fd::AsRawFd as _;
    let stdin = io::stdin().as_raw_fd();
    // SAFETY: both calls take a descriptor, which stays open, and numbers. On what is no pipe they fail.
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
