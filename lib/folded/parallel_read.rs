//! One file read by several threads.

use std::sync::{Mutex, PoisonError};

use super::grammar::Kind;
use super::read::{Reader, StackSink};
use crate::diagnostics::Diagnostics;
use crate::input::{Block, Source, last_line_end};
use crate::parallel::{self, cores};

/// Gives each stack of a file to one of as many targets as there are cores. Nothing if it is no file, which can be read only
/// once, or if there is anything to say of it: then it is to be read from the beginning, by one, who says it.
pub fn read_parallel<T: StackSink + Send>(source: &Source, target: impl Fn() -> T + Sync) -> Option<Vec<T>> {
    if *source == Source::Stdin || source.is_stream() {
        return None;
    }
    let mut input = source.open().ok()?;
    let first = input.head().ok()?.split(|byte| *byte == b'\n').next()?;
    let kind = Kind::of_first_line(first.strip_suffix(b"\r").unwrap_or(first));
    let is_usual = first.first().is_some_and(u8::is_ascii_graphic);
    let feed = Mutex::new(input);
    let read = || {
        let (mut target, mut diagnostics) = (target(), Diagnostics::silent());
        diagnostics.set_strict(true);
        target.begin(kind);
        let next =
            |block: &mut Block| feed.lock().unwrap_or_else(PoisonError::into_inner).read_block(block, last_line_end);
        Reader::amid(&mut target, kind).blocks("", next, &mut diagnostics).ok()?;
        target.end().ok()?;
        Some(target)
    };
    let threads = cores();
    if threads == 1 || !is_usual {
        return None;
    }
    parallel::map(0..threads, threads, |_| read()).into_iter().collect()
}
