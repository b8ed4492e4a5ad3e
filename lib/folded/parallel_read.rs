//! Reads one file on several threads.

use std::sync::Mutex;

use super::grammar::LineKind;
use super::line_kind::detect_kind;
use super::other_input::check_is_folded;
use super::stack_parser::{StackParser, StackSink};
use crate::diagnostics::Diagnostics;
use crate::input::{Blocks, Source, last_line_end};
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
    input.drop_colours().ok()?;
    check_is_folded(&mut input).ok()?;
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

    let mut parser = StackParser::of_blocks(&mut sink, kind).in_any_order();
    parser.read_blocks("", |block| lock(input).read_block(block, last_line_end), &mut diagnostics).ok()?;
    if parser.may_be_mixture() {
        return None;
    }
    parser.flush().ok()?;
    sink.end().ok()?;
    Some(sink)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::read_parallel;
    use crate::Error;
    use crate::folded::StackSink;
    use crate::input::Source;
    use crate::parallel::cores;
    use crate::profile::{FrameId, Frames, Weight, Weights};

    /// Sums of weights by the text of stacks.
    #[derive(Default)]
    struct Sums {
        frames: Frames,
        last: Vec<FrameId>,
        sums: BTreeMap<String, Weight>,
    }

    impl StackSink for Sums {
        fn frames(&mut self) -> &mut Frames {
            &mut self.frames
        }

        fn add(&mut self, stack: &[FrameId], shared: usize, weights: Weights) -> Result<(), Error> {
            assert_eq!(stack[..shared], self.last[..shared]);
            self.last = stack.to_vec();
            let names: Vec<_> = stack.iter().map(|frame| String::from_utf8_lossy(self.frames.name(*frame))).collect();
            let sum = self.sums.entry(names.join(";")).or_default();
            *sum = sum.checked_add(weights.after).unwrap();
            Ok(())
        }
    }

    /// Returns the sums that one thread per core finds in a text, added up.
    fn read(text: &str) -> BTreeMap<String, u128> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, text).unwrap();
        let mut sums = BTreeMap::new();
        for part in read_parallel(&Source::File(path), Sums::default).unwrap() {
            for (stack, weight) in part.sums {
                *sums.entry(stack).or_default() += weight.millionths();
            }
        }
        sums
    }

    #[test]
    fn equal_stacks_add_up_whether_they_are_repeated_or_not() {
        if cores() == 1 {
            return;
        }
        for distinct in [7, 500, 30_000] {
            let mut expected = BTreeMap::new();
            let lines = (0..30_000u64).map(|number| {
                let (function, weight) = (number * 7919 % distinct, 1 + number % 5);
                let stack = format!("main;run_{};parse_{function};read", function % 9);
                *expected.entry(stack.clone()).or_default() += u128::from(weight) * 1_000_000;
                format!("{stack} {weight}\n")
            });
            let text: String = lines.collect();
            assert_eq!(read(&text), expected, "{distinct}");
        }
    }
}
