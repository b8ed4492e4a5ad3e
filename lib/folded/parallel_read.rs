//! Reads one file on several threads.

use std::sync::Mutex;

use super::grammar::LineKind;
use super::line_kind::detect_kind;
use super::stack_parser::{StackParser, StackSink};
use crate::diagnostics::Diagnostics;
use crate::input::{Block, Blocks, Source, last_line_end};
use crate::parallel::{self, cores, lock};

/// Distributes the stacks of a file over one sink per core.
///
/// `None` if the source is not a regular file, or if there is anything to report: the caller then reads it again from
/// the start on one thread, which reports problems in order.
pub fn read_parallel<T: StackSink + Send>(source: &Source, new_sink: impl Fn() -> T + Sync) -> Option<Vec<T>> {
    if *source == Source::Stdin || source.is_stream() {
        return None;
    }
    let mut input = source.open().ok()?;
    let head = input.head().ok()?;
    let kind = detect_kind(head)?.kind;
    // Not a blank line, a byte order mark, or another encoding.
    let has_plain_start = head.first().is_some_and(u8::is_ascii_graphic);
    let threads = cores();
    if threads == 1 || !has_plain_start {
        return None;
    }
    let input = Mutex::new(input);
    parallel::map(0..threads, threads, |_| read_share(&input, kind, new_sink())).into_iter().collect()
}

/// Reads blocks that no other thread has read, until the end of the input.
fn read_share<T: StackSink>(input: &Mutex<Blocks>, kind: LineKind, mut sink: T) -> Option<T> {
    let mut diagnostics = Diagnostics::silent();
    diagnostics.set_strict(true);
    sink.begin(kind);
    let next_block = |block: &mut Block| lock(input).read_block(block, last_line_end);
    let mut parser = StackParser::with_kind(&mut sink, kind);
    parser.read_blocks("", next_block, &mut diagnostics).ok()?;
    if parser.may_be_mixture() {
        return None;
    }
    sink.end().ok()?;
    Some(sink)
}
