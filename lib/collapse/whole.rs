//! What readers of whole documents have in common: the bytes, deep stacks, and names of threads and places.

use std::io::Read as _;

use super::Options;
use super::document::Document;
use super::sink::Sink;
use crate::bytes::BOM;
use crate::markers::TRUNCATED;
use crate::markers::UNKNOWN;
use crate::profile::SampleWeight;
use crate::profile::{FrameId, Weight, Weights};
use crate::{Error, io_error_text};

/// The most that is taken of a document that has to be in memory as a whole, so that a small compressed file cannot fill
/// it.
const LARGEST: usize = 1 << 30;

/// The deepest stack that is written out as a whole from formats in which stacks share what they have in common: else a
/// small file could hold a great many frames. Of deeper ones the leaves' end is kept.
pub(super) const DEEPEST: usize = 1024;

/// So many frames are kept of the very deepest.
const LEAST: usize = 16;

/// How many frames next to the root are left out of a stack that is so deep. Twice as deep, half as many are kept: a chain
/// of calls, each of which is the leaf of a stack, takes memory that grows little faster than the chain.
pub(super) fn left_out(depth: usize) -> usize {
    match depth {
        ..=DEEPEST => 0,
        _ => depth - (DEEPEST >> (depth / DEEPEST).ilog2()).max(LEAST),
    }
}

/// All bytes, without a byte-order mark.
pub(super) fn read(document: &mut Document<'_>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut limited = document.take(LARGEST as u64 + 1);
    if let Err(error) = limited.read_to_end(&mut bytes) {
        return Err(document.unreadable(io_error_text(&error)));
    }
    if bytes.len() > LARGEST {
        return Err(document.unreadable("longer than a gigabyte, which is more than is read of such a document"));
    }
    if bytes.starts_with(BOM) {
        bytes.drain(..BOM.len());
    }
    Ok(bytes)
}

/// Whether samples weigh what the input says, and not one each.
pub(super) fn weighs(options: &Options) -> bool {
    options.weight == SampleWeight::Period
}

/// Adds a stack, root first, below a thread's frame if there is one. What weighs nothing is no sample.
pub(super) fn add(thread: Option<FrameId>, frames: &[FrameId], weight: Weight, sink: &mut Sink) -> Result<(), Error> {
    let left_out = left_out(frames.len());
    add_part(thread, left_out == 0, &frames[left_out..], weight, sink)
}

/// As [`add`], of a stack that was cut already unless it has its root.
pub(super) fn add_part(
    thread: Option<FrameId>,
    has_root: bool,
    frames: &[FrameId],
    weight: Weight,
    sink: &mut Sink,
) -> Result<(), Error> {
    if weight.is_zero() {
        return Ok(());
    }
    let mut stack: Vec<FrameId> = thread.into_iter().collect();
    if !has_root {
        stack.push(sink.intern(TRUNCATED));
    }
    stack.extend_from_slice(frames);
    if stack.is_empty() {
        stack.push(sink.intern(UNKNOWN));
    }
    sink.add(&stack, Weights::plain(weight))
}

/// A thread's frame: its name, with `-PID` or `-PID/TID` if that is asked for; without a name, what numbers there are.
pub(super) fn thread(name: &[u8], pid: &[u8], tid: &[u8], options: &Options) -> Vec<u8> {
    if name.is_empty() {
        return [pid, b"/", tid].concat();
    }
    let known = |number: &[u8]| if number.is_empty() { b"?".to_vec() } else { number.to_vec() };
    let mut name = name.to_vec();
    if options.pid || options.tid {
        name.push(b'-');
        name.extend(known(pid));
    }
    if options.tid {
        name.push(b'/');
        name.extend(known(tid));
    }
    name
}

/// A function's name, and with `--srcline` its place in the source, as far as it is known.
pub(super) fn located(name: &[u8], file: &[u8], line: Option<i64>, options: &Options) -> Vec<u8> {
    let mut name = name.to_vec();
    if options.srcline && !file.is_empty() {
        name.push(b':');
        name.extend_from_slice(file);
        if let Some(line) = line.filter(|line| *line > 0) {
            name.extend_from_slice(format!(":{line}").as_bytes());
        }
    }
    name
}

/// A weight of millionths, if it is not negative.
pub(super) fn positive(millionths: i128) -> Option<Weight> {
    u128::try_from(millionths).ok().map(Weight::from_millionths)
}

/// What a frame without a name is called: its module, and with `--addrs` its address.
pub(super) fn module(file: &[u8], address: &[u8], options: &Options) -> Vec<u8> {
    let inner = match file {
        b"" => b"unknown",
        [b'[', inner @ .., b']'] => inner,
        path => path.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or(path),
    };
    let address = address.strip_prefix(b"0x").unwrap_or(address);
    match options.addrs {
        true => [b"[", inner, b" <", address, b">]"].concat(),
        false => [b"[", inner, b"]"].concat(),
    }
}
