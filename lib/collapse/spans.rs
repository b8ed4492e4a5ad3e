//! Spans of work, such as requests, that a program recorded. A sample belongs to the span that its thread was in.
//!
//! Spans are half-open: the start is included, the end is not. If spans overlap, the one that started last wins; of
//! those that started together, the one that ends first.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::diagnostics::Diagnostics;

/// A span of one thread.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) name: Vec<u8>,
    pub(super) tid: u32,
    /// Start and end in nanoseconds on the clock of the samples.
    pub(super) start: u64,
    pub(super) end: u64,
}

/// All spans of a file, indexed by thread and time.
#[derive(Debug, Default)]
pub struct Spans {
    name: String,
    spans: Vec<Span>,
    /// For each thread, the times at which the innermost span changes, and the new one.
    transitions: HashMap<u32, Vec<(u64, Option<usize>)>>,
    /// Best match of any sample: one of the constants below.
    best_match: AtomicU8,
}

const NO_SAMPLE: u8 = 0;
const OTHER_THREAD: u8 = 1;
const OTHER_TIME: u8 = 2;
const WITHIN: u8 = 3;

impl Spans {
    /// Indexes spans; `name` is the file for messages.
    pub(super) fn new(name: String, spans: Vec<Span>) -> Self {
        let mut ends: HashMap<u32, Vec<(u64, bool, usize)>> = HashMap::new();
        for (number, span) in spans.iter().enumerate() {
            let bounds = ends.entry(span.tid).or_default();
            bounds.extend([(span.start, true, number), (span.end, false, number)]);
        }
        let transitions = ends.into_iter().map(|(tid, ends)| (tid, find_transitions(&spans, ends))).collect();
        Self { name, spans, transitions, best_match: AtomicU8::new(NO_SAMPLE) }
    }

    /// Returns the name of the innermost span of a thread at a time.
    pub(super) fn find(&self, tid: u32, time: u64) -> Option<&[u8]> {
        let found = self.transitions.get(&tid).map(|transitions| {
            let index = transitions.partition_point(|(from, _)| *from <= time).checked_sub(1)?;
            transitions[index].1
        });
        let matched = match found {
            None => OTHER_THREAD,
            Some(None) => OTHER_TIME,
            Some(Some(_)) => WITHIN,
        };
        // Written rarely, so that threads do not contend for the cache line.
        if self.best_match.load(Ordering::Relaxed) < matched {
            self.best_match.fetch_max(matched, Ordering::Relaxed);
        }
        found.flatten().map(|number| &self.spans[number].name[..])
    }

    /// Warns if no sample matched a span.
    pub(super) fn report(&self, diagnostics: &mut Diagnostics) {
        let why = match self.best_match.load(Ordering::Relaxed) {
            OTHER_THREAD if self.spans.is_empty() => "no spans found",
            OTHER_THREAD => "no sample belongs to a thread with a span; tid must be the thread id that gettid returns",
            OTHER_TIME => {
                "no sample lies within a span of its thread; start and end must be nanoseconds on the clock of the samples, \
                 which fg-record --clock and perf record -k select"
            }
            _ => return,
        };
        diagnostics.warn(&format!("{}: {why}", self.name));
    }
}

/// Returns the innermost span after each start and end of a span of one thread.
fn find_transitions(spans: &[Span], mut ends: Vec<(u64, bool, usize)>) -> Vec<(u64, Option<usize>)> {
    ends.sort_unstable();
    let (mut open, mut transitions) = (BTreeSet::new(), Vec::with_capacity(ends.len()));
    for bounds in ends.chunk_by(|(a, ..), (b, ..)| a == b) {
        for (_, begins, number) in bounds {
            let span = &spans[*number];
            let key = (span.start, Reverse(span.end), *number);
            if *begins && span.start < span.end {
                open.insert(key);
            } else {
                open.remove(&key);
            }
        }
        transitions.push((bounds[0].0, open.last().map(|(.., number)| *number)));
    }
    transitions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Span, Spans};

    fn span(name: &str, tid: u32, start: u64, end: u64) -> Span {
        Span { name: name.into(), tid, start, end }
    }

    #[test]
    fn finds_the_innermost_span() {
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
            assert_eq!(spans.find(tid, time), expected.map(str::as_bytes), "{tid} at {time}");
        }
    }

    proptest! {
        #[test]
        fn lookup_matches_a_linear_search(list in prop::collection::vec((0..12u64, 0..6u64), 0..12), time in 0..20u64) {
            let spans: Vec<Span> = list.iter().enumerate().map(|(number, (start, length))| {
                Span { name: number.to_string().into(), tid: 1, start: *start, end: start + length }
            }).collect();
            let holding = spans.iter().filter(|span| (span.start..span.end).contains(&time));
            let innermost = holding.max_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
            let expected = innermost.map(|span| span.name.clone());
            prop_assert_eq!(Spans::new(String::new(), spans).find(1, time).map(<[u8]>::to_vec), expected);
        }
    }
}
