//! Helpers of readers of documents: bytes, deep stacks, names of threads and functions.

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

/// Maximum size of a document that is held in memory: a small compressed file could fill it.
const MAX_LENGTH: usize = 1 << 30;

/// Maximum depth of a stack in formats whose stacks share prefixes: a small file could contain very many frames. Of
/// deeper stacks, the part near the leaf is kept.
pub(super) const DEEPEST: usize = 1024;

/// Minimum number of frames that are kept of a deep stack.
const MIN_KEPT_FRAMES: usize = 16;

/// Returns the number of frames near the root that are cut from a stack of this depth.
///
/// At twice the depth, half as many frames are kept. The memory for a chain of calls, each of which is the leaf of a
/// stack, thus grows little faster than the chain.
pub(super) fn left_out(depth: usize) -> usize {
    match depth {
        ..=DEEPEST => 0,
        _ => depth - (DEEPEST >> (depth / DEEPEST).ilog2()).max(MIN_KEPT_FRAMES),
    }
}

/// Reads all bytes, without a byte order mark.
pub(super) fn read(document: &mut Document<'_>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut limited = document.take(MAX_LENGTH as u64 + 1);
    if let Err(error) = limited.read_to_end(&mut bytes) {
        return Err(document.unreadable(io_error_text(&error)));
    }
    if bytes.len() > MAX_LENGTH {
        return Err(document.unreadable("longer than 1 GiB, the maximum for this format"));
    }
    if bytes.starts_with(BOM) {
        bytes.drain(..BOM.len());
    }
    Ok(bytes)
}

/// True if samples have the weight of the input instead of one each.
pub(super) fn weighs(options: &Options) -> bool {
    options.weight == SampleWeight::Period
}

/// Adds a stack, root first, below the frame of a thread. A stack of weight zero is not added.
pub(super) fn add(thread: Option<FrameId>, frames: &[FrameId], weight: Weight, sink: &mut Sink) -> Result<(), Error> {
    let left_out = left_out(frames.len());
    add_part(thread, left_out == 0, &frames[left_out..], weight, sink)
}

/// Adds a stack that may have been cut already: unless `has_root`, it is marked as truncated.
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

/// Returns the name of a thread's frame, with `-PID` or `-PID/TID` if the options say so; without a name, its numbers.
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

/// Returns the name of a function, with `--srcline` followed by its source file and line, if known.
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

/// Converts millionths to a weight, unless negative.
pub(super) fn positive(millionths: i128) -> Option<Weight> {
    u128::try_from(millionths).ok().map(Weight::from_millionths)
}

/// Returns the name of a frame without a symbol: its module, with `--addrs` also its address.
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
