//! Spans of work, such as requests, that a program recorded. A sample belongs to the span that its thread was in.
//!
//! Spans are half-open: the start is included, the end is not. If spans overlap, the one that started last wins; of
//! those that started together, the one that ends first. It is below the spans that contain it, as OpenTelemetry nests them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};

use super::sink::Sink;
use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::markers::NO_SPAN;
use crate::profile::FrameId;

/// A span of one thread.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) name: Vec<u8>,
    pub(super) tid: u32,
    /// The process; `None` if it is not known.
    pub(super) pid: Option<u32>,
    /// Start and end in nanoseconds on the clock of the spans.
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A span on the clock of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedSpan<'a> {
    /// The name of the span.
    pub name: &'a [u8],
    /// The ID of its thread.
    pub tid: u32,
    /// The time of its start.
    pub start: u64,
    /// The time of its end.
    pub end: u64,
}

/// The clock of the spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SpanClock {
    /// The clock of the samples.
    #[default]
    Samples,
    /// Nanoseconds since 1970. Samples are converted to it, or have it themselves.
    Unix,
}

/// All spans of a file, indexed by thread and time.
#[derive(Debug, Default)]
pub struct Spans {
    name: String,
    clock: SpanClock,
    spans: Vec<Span>,
    /// True if the file has other lines or spans, which were left out.
    is_partial: bool,
    /// For each thread, the times at which the innermost span changes, and the new one.
    transitions: HashMap<u32, Vec<(u64, Option<usize>)>>,
    /// For each span, the innermost one of those that contain it.
    parents: Vec<Option<usize>>,
    /// Best match of any sample: one of the constants below.
    best_match: AtomicU8,
}

const NO_SAMPLE: u8 = 0;
const OTHER_THREAD: u8 = 1;
const OTHER_TIME: u8 = 2;
const WITHIN: u8 = 3;
/// The times of samples are not those of the spans' clock.
const OTHER_CLOCK: u8 = 4;

/// The largest number of spans within each other that are frames.
const MAX_DEPTH: usize = 256;

/// The number of spans that began before another one, did not end, and are looked at because they may contain it. Properly nested
/// spans need one.
const MAX_OVERLAPPING: usize = 1024;

/// Times since 1970 are larger, those since the start of a machine smaller: 2001, or 31 years.
const FIRST_UNIX_TIME: u64 = 1_000_000_000_000_000_000;

impl Spans {
    /// Indexes spans; `name` is the file for messages. `is_partial` says that lines or spans of it were left out.
    pub(super) fn new(name: String, clock: SpanClock, spans: Vec<Span>, is_partial: bool) -> Self {
        let mut ends: HashMap<u32, Vec<(u64, bool, usize)>> = HashMap::new();
        for (number, span) in spans.iter().enumerate() {
            let bounds = ends.entry(span.tid).or_default();
            bounds.extend([(span.start, true, number), (span.end, false, number)]);
        }
        let mut parents = vec![None; spans.len()];
        let transitions =
            ends.into_iter().map(|(tid, ends)| (tid, find_transitions(&spans, ends, &mut parents))).collect();
        Self { name, clock, spans, is_partial, transitions, parents, best_match: AtomicU8::new(NO_SAMPLE) }
    }

    /// Iterates over all spans. Times since 1970 become those of the recording, whose clock is `unix_offset` behind.
    pub fn recorded(&self, unix_offset: u64) -> impl Iterator<Item = RecordedSpan<'_>> {
        let offset = if self.clock == SpanClock::Unix { unix_offset } else { 0 };
        self.spans.iter().map(move |Span { name, tid, start, end, .. }| RecordedSpan {
            name,
            tid: *tid,
            start: start.wrapping_sub(offset),
            end: end.wrapping_sub(offset),
        })
    }

    /// Converts the time of a sample to the clock of the spans. `unix_offset` is the difference between times since 1970 and
    /// those of the sample's clock, if the recording has it.
    pub(super) fn convert_time(&self, time: u64, unix_offset: Option<u64>) -> u64 {
        match self.clock {
            SpanClock::Samples => time,
            SpanClock::Unix => time.wrapping_add(unix_offset.unwrap_or(0)),
        }
    }

    /// Adds the frames of the spans that a thread is in at a time, or one that says that it is in none.
    pub(super) fn push_frames(
        &self,
        pid: Option<u32>,
        tid: u32,
        time: u64,
        sink: &mut Sink,
        frames: &mut Vec<FrameId>,
    ) {
        let names = self.find(pid, tid, time);
        if names.is_empty() {
            frames.push(sink.intern(NO_SPAN));
        }
        frames.extend(names.into_iter().map(|name| sink.intern(name)));
    }

    /// Returns the names of the innermost span of a thread at a time, and of those that contain it, outermost first. Of more than
    /// [`MAX_DEPTH`], the outermost ones are left out.
    fn find(&self, pid: Option<u32>, tid: u32, time: u64) -> Vec<&[u8]> {
        let transitions = self.transitions.get(&tid);
        let found = transitions.and_then(|transitions| {
            let before = transitions.partition_point(|(from, _)| *from <= time).checked_sub(1);
            let number = before.and_then(|index| transitions[index].1);
            // Outside all spans, the first one tells whose they are.
            let witness = number.or_else(|| transitions.iter().find_map(|(_, number)| *number));
            // Some programs number their threads themselves: the thread of another process may have the same number.
            let process = witness.and_then(|witness| self.spans[witness].pid);
            pid.zip(process).is_none_or(|(pid, process)| pid == process).then_some(number)
        });
        let matched = match found {
            _ if self.clock == SpanClock::Unix && time < FIRST_UNIX_TIME => OTHER_CLOCK,
            None => OTHER_THREAD,
            Some(None) => OTHER_TIME,
            Some(Some(_)) => WITHIN,
        };
        // Written rarely, so that threads do not contend for the cache line.
        if self.best_match.load(Ordering::Relaxed) < matched {
            self.best_match.fetch_max(matched, Ordering::Relaxed);
        }
        let spans = std::iter::successors(found.flatten(), |number| self.parents[*number]).take(MAX_DEPTH);
        let mut names: Vec<&[u8]> = spans.map(|number| &self.spans[number].name[..]).collect();
        names.reverse();
        names
    }

    /// Warns if no sample matched a span.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no sample belongs to a thread with a span, or the times of spans and samples cannot be compared.
    pub(super) fn report(&self, diagnostics: &mut Diagnostics) -> Result<(), Error> {
        let attribute = if self.clock == SpanClock::Unix { "the attribute thread.id" } else { "tid" };
        let why = match self.best_match.load(Ordering::Relaxed) {
            OTHER_THREAD if self.spans.is_empty() && self.is_partial => {
                return Err(Error::Invalid(format!(
                    "--span {}: none of its lines is a span that has a thread",
                    self.name
                )));
            }
            OTHER_THREAD if self.spans.is_empty() => "no spans found",
            OTHER_THREAD => {
                return Err(Error::Invalid(format!(
                    "--span {}: no sample belongs to a thread with a span; {attribute} must be the thread id that gettid returns",
                    self.name
                )));
            }
            OTHER_CLOCK => {
                return Err(Error::Invalid(format!(
                    "--span {}: its times are those of CLOCK_REALTIME, but those of the samples are not; record with fg-record \
                     --script --clock realtime, perf record -k CLOCK_REALTIME, or give the perf.data file of perf record -k \
                     CLOCK_MONOTONIC",
                    self.name
                )));
            }
            OTHER_TIME if self.clock == SpanClock::Unix => "no sample lies within a span of its thread",
            OTHER_TIME => {
                "no sample lies within a span of its thread; start and end must be nanoseconds on the clock of the samples, \
                 which fg-record --clock and perf record -k select"
            }
            _ => return Ok(()),
        };
        diagnostics.warn(&format!("{}: {why}", self.name));
        Ok(())
    }
}

/// Returns the innermost span after each start and end of a span of one thread. Notes for each span the innermost one of those
/// that contain it.
fn find_transitions(
    spans: &[Span],
    mut ends: Vec<(u64, bool, usize)>,
    parents: &mut [Option<usize>],
) -> Vec<(u64, Option<usize>)> {
    ends.sort_unstable();
    let (mut open, mut transitions) = (BTreeSet::new(), Vec::with_capacity(ends.len()));
    for bounds in ends.chunk_by(|(a, ..), (b, ..)| a == b) {
        for (_, begins, number) in bounds {
            if *begins && spans[*number].start < spans[*number].end {
                open.insert(key(spans, *number));
            } else {
                open.remove(&key(spans, *number));
            }
        }
        for (_, _, number) in bounds.iter().filter(|(_, begins, _)| *begins) {
            let before = open.range(..key(spans, *number)).rev().take(MAX_OVERLAPPING);
            let mut containing = before.filter(|(_, Reverse(end), _)| *end >= spans[*number].end);
            let parent = containing.next().map(|(.., parent)| *parent);
            parents[*number] = match parent {
                // A span that was exported twice is one.
                Some(parent) if is_same(&spans[*number], &spans[parent]) => parents[parent],
                parent => parent,
            };
        }
        transitions.push((bounds[0].0, open.last().map(|(.., number)| *number)));
    }
    transitions
}

/// Returns a key by which a span follows those that contain it.
fn key(spans: &[Span], number: usize) -> (u64, Reverse<u64>, usize) {
    (spans[number].start, Reverse(spans[number].end), number)
}

fn is_same(span: &Span, other: &Span) -> bool {
    (span.start, span.end, &span.name) == (other.start, other.end, &other.name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Span, SpanClock, Spans};

    fn span(name: &str, tid: u32, start: u64, end: u64) -> Span {
        Span { name: name.into(), tid, pid: None, start, end }
    }

    #[test]
    fn finds_the_innermost_span_and_those_that_contain_it() {
        let spans = Spans::new(
            String::new(),
            SpanClock::Samples,
            vec![
                span("outer", 1, 10, 100),
                span("inner", 1, 20, 30),
                span("next", 1, 30, 40),
                span("over the end", 1, 90, 110),
                span("long", 2, 10, 100),
                span("short", 2, 10, 20),
                span("short", 2, 10, 20),
                span("empty", 2, 50, 50),
            ],
            false,
        );
        for (tid, time, expected) in [
            (1, 9, ""),
            (1, 10, "outer"),
            (1, 20, "outer;inner"),
            (1, 29, "outer;inner"),
            (1, 30, "outer;next"),
            (1, 40, "outer"),
            // It is within no other span.
            (1, 95, "over the end"),
            (1, 109, "over the end"),
            (1, 110, ""),
            (2, 10, "long;short"),
            (2, 20, "long"),
            (2, 50, "long"),
            (3, 20, ""),
        ] {
            assert_eq!(spans.find(Some(1), tid, time).join(&b';'), expected.as_bytes(), "{tid} at {time}");
        }
    }

    #[test]
    fn a_span_belongs_to_its_process() {
        let spans = vec![Span { pid: Some(7), ..span("work", 1, 10, 20) }];
        let spans = Spans::new(String::new(), SpanClock::Samples, spans, false);
        let found = [Some(7), Some(8), None].map(|pid| !spans.find(pid, 1, 15).is_empty());
        assert_eq!(found, [true, false, true]);
    }

    proptest! {
        #[test]
        fn lookup_matches_a_linear_search(list in prop::collection::vec((0..12u64, 0..6u64), 0..12), time in 0..20u64) {
            let spans: Vec<Span> = list.iter().enumerate().map(|(number, (start, length))| {
                Span { name: number.to_string().into(), tid: 1, pid: None, start: *start, end: start + length }
            }).collect();
            let mut holding: Vec<(usize, &Span)> =
                spans.iter().enumerate().filter(|(_, span)| (span.start..span.end).contains(&time)).collect();
            holding.sort_by_key(|(number, span)| (span.start, std::cmp::Reverse(span.end), *number));
            let mut expected: Vec<&Span> = Vec::new();
            for (_, span) in holding.iter().rev() {
                if expected.last().is_none_or(|inner| inner.end <= span.end) {
                    expected.push(span);
                }
            }
            let expected: Vec<Vec<u8>> = expected.iter().rev().map(|span| span.name.clone()).collect();
            let spans = Spans::new(String::new(), SpanClock::Samples, spans, false);
            prop_assert_eq!(spans.find(None, 1, time), expected);
        }
    }
}
