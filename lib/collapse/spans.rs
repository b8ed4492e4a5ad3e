//! Spans of work, such as requests, that a program wrote down: a sample of the same thread within one belongs to it.
//!
//! As everywhere, a span's beginning is within it and its end is not. Of several, the innermost counts: the one that began
//! last; of those that began together, the one that ends first.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::diagnostics::Diagnostics;

/// One span.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) name: Vec<u8>,
    pub(super) tid: u32,
    /// In nanoseconds on the clock of the samples.
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Which span each moment of each thread belongs to.
#[derive(Debug, Default)]
pub struct Spans {
    name: String,
    spans: Vec<Span>,
    /// By thread: from when on which span is the innermost, if any.
    changes: HashMap<u32, Vec<(u64, Option<usize>)>>,
    /// The most that a sample had to do with them: one of the following.
    met: AtomicU8,
}

const NOT_ASKED: u8 = 0;
const OTHER_THREAD: u8 = 1;
const OTHER_TIME: u8 = 2;
const WITHIN: u8 = 3;

impl Spans {
    /// The spans that a file of this name has.
    pub(super) fn new(name: String, spans: Vec<Span>) -> Self {
        let mut ends: HashMap<u32, Vec<(u64, bool, usize)>> = HashMap::new();
        for (number, span) in spans.iter().enumerate() {
            let of_thread = ends.entry(span.tid).or_default();
            of_thread.extend([(span.start, true, number), (span.end, false, number)]);
        }
        let changes = ends.into_iter().map(|(tid, ends)| (tid, changes(&spans, ends))).collect();
        Self { name, spans, changes, met: AtomicU8::new(NOT_ASKED) }
    }

    /// The name of the span to which a moment of a thread belongs.
    pub(super) fn at(&self, tid: u32, time: u64) -> Option<&[u8]> {
        let found = self.changes.get(&tid).map(|changes| {
            let place = changes.partition_point(|(from, _)| *from <= time).checked_sub(1)?;
            changes[place].1
        });
        let met = match found {
            None => OTHER_THREAD,
            Some(None) => OTHER_TIME,
            Some(Some(_)) => WITHIN,
        };
        // Seldom written, and so never fought for.
        if self.met.load(Ordering::Relaxed) < met {
            self.met.fetch_max(met, Ordering::Relaxed);
        }
        found.flatten().map(|number| &self.spans[number].name[..])
    }

    /// Says so if they were of no use.
    pub(super) fn tell(&self, diagnostics: &mut Diagnostics) {
        let why = match self.met.load(Ordering::Relaxed) {
            OTHER_THREAD if self.spans.is_empty() => "there is no span in it",
            OTHER_THREAD => "no sample is of a thread that has a span: tid is the thread's number, as gettid tells it",
            OTHER_TIME => {
                "no sample was taken within a span of its thread: start and end are in nanoseconds on the samples' clock, \
                 which fg-record --clock and perf record -k choose"
            }
            _ => return,
        };
        diagnostics.warn(&format!("{}: {why}", self.name));
    }
}

/// Of one thread's beginnings and ends what is innermost after each.
fn changes(spans: &[Span], mut ends: Vec<(u64, bool, usize)>) -> Vec<(u64, Option<usize>)> {
    ends.sort_unstable();
    let (mut open, mut changes) = (BTreeSet::new(), Vec::with_capacity(ends.len()));
    for moment in ends.chunk_by(|(a, ..), (b, ..)| a == b) {
        for (_, begins, number) in moment {
            let span = &spans[*number];
            let key = (span.start, Reverse(span.end), *number);
            if *begins && span.start < span.end {
                open.insert(key);
            } else {
                open.remove(&key);
            }
        }
        changes.push((moment[0].0, open.last().map(|(.., number)| *number)));
    }
    changes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Span, Spans};

    #[test]
    fn the_innermost_counts() {
        let span = |name: &str, tid, start, end| Span { name: name.into(), tid, start, end };
        let spans = Spans::new(
            String::new(),
            vec![
                span("outer", 1, 10, 100),
                span("inner", 1, 20, 30),
                span("next", 1, 30, 40),
                span("over the end", 1, 90, 110),
                span("long", 2, 10, 100),
                span("short", 2, 10, 20),
                span("empty", 2, 50, 50),
            ],
        );
        for (tid, time, expected) in [
            (1, 9, None),
            (1, 10, Some("outer")),
            (1, 20, Some("inner")),
            (1, 29, Some("inner")),
            (1, 30, Some("next")),
            (1, 40, Some("outer")),
            (1, 109, Some("over the end")),
            (1, 110, None),
            (2, 10, Some("short")),
            (2, 20, Some("long")),
            (2, 50, Some("long")),
            (3, 20, None),
        ] {
            assert_eq!(spans.at(tid, time), expected.map(str::as_bytes), "{tid} at {time}");
        }
    }

    proptest! {
        #[test]
        fn looking_up_is_as_going_through_all(list in prop::collection::vec((0..12u64, 0..6u64), 0..12), time in 0..20u64) {
            let spans: Vec<Span> = list.iter().enumerate().map(|(number, (start, length))| {
                Span { name: number.to_string().into(), tid: 1, start: *start, end: start + length }
            }).collect();
            let holds = |span: &&Span| span.start <= time && time < span.end;
            let innermost = spans.iter().filter(holds).max_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
            let expected = innermost.map(|span| span.name.clone());
            prop_assert_eq!(Spans::new(String::new(), spans).at(1, time).map(<[u8]>::to_vec), expected);
        }
    }
}
