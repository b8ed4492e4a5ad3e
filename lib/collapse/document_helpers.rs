//! Helpers of readers of documents: bytes, deep stacks, names of threads and functions.

use std::io::Read as _;

use super::document::Document;
use super::options::Options;
use super::sink::Sink;
use super::stack::MAX_SHARED_DEPTH;
use crate::markers::TRUNCATED;
use crate::markers::UNKNOWN;
use crate::profile::SampleWeight;
use crate::profile::{FrameId, Weight, Weights};
use crate::{Error, io_error_text};

/// Maximum size of a document that is held in memory: a small compressed file could fill it.
pub(super) const MAX_LENGTH: usize = 1 << 30;

/// Minimum number of frames that are kept of a deep stack.
const MIN_KEPT_FRAMES: usize = 16;

/// Returns the number of frames near the root that are cut from a stack of this depth.
///
/// Of stacks deeper than [`MAX_SHARED_DEPTH`], the part near the leaf is kept: at twice the depth, half as many frames.
/// The memory for a chain of calls, each of which is the leaf of a stack, thus grows little faster than the chain.
pub(super) fn count_truncated_frames(depth: usize) -> usize {
    match depth {
        ..=MAX_SHARED_DEPTH => 0,
        _ => depth - (MAX_SHARED_DEPTH >> (depth / MAX_SHARED_DEPTH).ilog2()).max(MIN_KEPT_FRAMES),
    }
}

/// Reads all bytes.
pub(super) fn read_bytes(document: &mut Document<'_>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut limited = document.take(MAX_LENGTH as u64 + 1);
    if let Err(error) = limited.read_to_end(&mut bytes) {
        return Err(document.unreadable(io_error_text(&error)));
    }
    if bytes.len() > MAX_LENGTH {
        return Err(document.unreadable("longer than 1 GiB, the maximum for this format"));
    }
    Ok(bytes)
}

/// True if samples have the weight of the input instead of one each.
pub(super) fn uses_input_weights(options: &Options) -> bool {
    options.weight == SampleWeight::Period
}

/// Adds a stack, root first, below the frame of a thread. A stack of weight zero is not added.
pub(super) fn add_stack(
    thread: Option<FrameId>,
    frames: &[FrameId],
    weight: Weight,
    sink: &mut Sink,
) -> Result<(), Error> {
    let left_out = count_truncated_frames(frames.len());
    sink.cut_stacks += u64::from(left_out > 0 && !weight.is_zero());
    add_partial_stack(thread, left_out == 0, &frames[left_out..], weight, sink)
}

/// Adds a stack that may have been cut already: unless `has_root`, it is marked as truncated.
pub(super) fn add_partial_stack(
    thread: Option<FrameId>,
    has_root: bool,
    frames: &[FrameId],
    weight: Weight,
    sink: &mut Sink,
) -> Result<(), Error> {
    if weight.is_zero() {
        sink.note_weightless();
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
pub(super) fn thread_name(name: &[u8], pid: &[u8], tid: &[u8], options: &Options) -> Vec<u8> {
    if name.trim_ascii().is_empty() {
        return if pid.is_empty() { tid.to_vec() } else { [pid, b"/", tid].concat() };
    }
    let mut name = name.to_vec();
    if options.pid || options.tid {
        name.push(b'-');
        name.extend_from_slice(number_or_mark(pid));
    }
    if options.tid {
        name.push(b'/');
        name.extend_from_slice(number_or_mark(tid));
    }
    name
}

/// Returns a number, or `?` if it is empty.
fn number_or_mark(number: &[u8]) -> &[u8] {
    if number.is_empty() { b"?" } else { number }
}

/// Returns the name of a function, with `--srcline` followed by its source file and line, if known.
pub(super) fn function_with_source(name: &[u8], file: &[u8], line: Option<i64>, options: &Options) -> Vec<u8> {
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
pub(super) fn weight_from_millionths(millionths: i128) -> Option<Weight> {
    u128::try_from(millionths).ok().map(Weight::from_millionths)
}

/// Returns the name of a frame without a symbol: its module, with `--addrs` also its address.
pub(super) fn module_frame(file: &[u8], address: &[u8], options: &Options) -> Vec<u8> {
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
