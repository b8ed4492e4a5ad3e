//! Reading into buffers: helpers that the decoders of this module share.

use std::io::{self, Read};

/// Number of bytes read at once. Larger reads were not faster (measured from 64 KiB to 4 MiB).
pub(super) const READ_SIZE: usize = 128 * 1024;

/// Reads once, and again if a signal interrupts the read.
pub(super) fn read_some(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Reads until the buffer is full or the input ends; returns the number of bytes read.
pub(super) fn read_full(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some(reader, &mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
