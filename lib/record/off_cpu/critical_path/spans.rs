//! The critical paths of spans, such as requests: what the time of each was spent on, from its end back to its start.
//!
//! Spans of a thread that overlap have one path, so that no time counts twice. Each of its parts is below the spans that the thread
//! was in at that time, as OpenTelemetry nests them: the innermost one, which is the one that began last, below those that contain
//! it.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;

use super::tracker::add_charge;
use super::{Life, ThreadLogs};
use crate::collapse::{RecordedSpan, Spans};
use crate::diagnostics::{Diagnostics, plural};
use crate::input::Source;
use crate::perf::export::perf_script::Clock;
use crate::perf::recording::Recording;
use crate::record::clock;

impl ThreadLogs {
    /// Charges the paths of the spans in a file that lie within the recording, below root frames with their names. The charges
    /// add up to the time in which each thread was in a span. Returns warnings about others.
    ///
    /// # Errors
    /// The reason why there is no path.
    pub fn charge_spans(
        &self,
        file: &Path,
        time: Range<u64>,
        recording: &mut Recording,
    ) -> Result<Vec<String>, String> {
        // It is written while the recording goes on.
        let mut diagnostics = Diagnostics::silent();
        let spans = Spans::load(&Source::File(file.to_owned()), &mut diagnostics).map_err(|error| error.to_string())?;
        let unix_offset = clock::offset_from_monotonic(Clock::Realtime);
        let (mut within, mut other_threads, mut other_times) = (Vec::new(), 0_u64, 0_u64);
        for span in spans.recorded(unix_offset) {
            match self.includes(&span, &time) {
                Some(true) => within.push(span),
                Some(false) => other_times += 1,
                None => other_threads += 1,
            }
        }
        if within.is_empty() {
            return Err(format!(
                "no span lies within the recording of its thread: {} of other threads, {} of other times; tid must be the thread \
                 id that gettid returns, and times those of CLOCK_MONOTONIC, or since 1970 in OpenTelemetry traces",
                plural(other_threads, "span"),
                plural(other_times, "span")
            ));
        }
        nest(within).iter().for_each(|group| self.charge_group(group, recording));
        let left_out = other_threads + other_times;
        let left_out = (left_out > 0)
            .then(|| format!("{} left out: not within the recording of their threads", plural(left_out, "span")));
        let malformed = diagnostics.skipped_lines();
        let malformed =
            (malformed > 0).then(|| format!("{}: skipped {}", file.display(), plural(malformed, "malformed line")));
        Ok(left_out.into_iter().chain(malformed).collect())
    }

    /// True if a span lies within the recorded life of its thread; `None` if there is no such thread.
    fn includes(&self, span: &RecordedSpan<'_>, time: &Range<u64>) -> Option<bool> {
        let life = self.life_at(span.tid, span.end, time.end)?;
        let known = life.begin.max(time.start).max(self.known_since)..=life.end;
        Some(known.contains(&span.start) && known.contains(&span.end) && span.start < span.end)
    }

    /// Charges the path of spans that overlap, from their last end back to their first start.
    fn charge_group(&self, group: &SpanGroup<'_>, recording: &mut Recording) {
        let [first, later @ ..] = &group.sections[..] else { return };
        let life = Life { tid: group.tid, begin: first.start, end: group.end };
        let bounds: Vec<u64> = later.iter().map(|section| section.start).collect();
        let charges = self.charge_path_by_time(life, life.begin, &bounds);
        for (section, charges) in group.sections.iter().zip(charges) {
            charges.iter().for_each(|charge| add_charge(charge, &section.names, recording));
        }
    }
}

/// Spans of a thread that overlap.
#[derive(Debug, PartialEq, Eq)]
struct SpanGroup<'a> {
    tid: u32,
    /// They follow each other.
    sections: Vec<Section<'a>>,
    end: u64,
}

/// A time in which a thread is in the same spans.
#[derive(Debug, PartialEq, Eq)]
struct Section<'a> {
    start: u64,
    /// The names of the innermost span and of those that contain it, outermost first.
    names: Vec<&'a [u8]>,
}

/// Groups the spans of each thread that overlap. Spans are not empty.
fn nest(mut spans: Vec<RecordedSpan<'_>>) -> Vec<SpanGroup<'_>> {
    // A span comes after those that contain it. One that was exported twice is one.
    spans.sort_by_key(|span| (span.tid, span.start, Reverse(span.end), span.name));
    spans.dedup();
    let mut groups = Vec::new();
    let mut rest = &spans[..];
    while let [first, others @ ..] = rest {
        let mut end = first.end;
        let overlapping = others.iter().take_while(|span| {
            let overlaps = span.tid == first.tid && span.start < end;
            end = if overlaps { end.max(span.end) } else { end };
            overlaps
        });
        let (group, later) = rest.split_at(1 + overlapping.count());
        groups.push(SpanGroup { tid: first.tid, sections: find_sections(group), end });
        rest = later;
    }
    groups
}

/// Returns the sections of spans that overlap, in the order in which `nest` sorts them.
fn find_sections<'a>(spans: &[RecordedSpan<'a>]) -> Vec<Section<'a>> {
    let mut bounds: Vec<u64> = spans.iter().flat_map(|span| [span.start, span.end]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let (mut open, mut next): (Vec<&RecordedSpan<'_>>, usize) = (Vec::new(), 0);
    let mut sections = Vec::new();
    for start in bounds {
        open.retain(|span| span.end > start);
        let begun = spans[next..].iter().take_while(|span| span.start <= start);
        open.extend(begun.inspect(|_| next += 1));
        if !open.is_empty() {
            sections.push(Section { start, names: find_chain(&open) });
        }
    }
    sections
}

/// Returns the names of the innermost of the spans that a thread is in, and of those that contain it, outermost first.
fn find_chain<'a>(open: &[&RecordedSpan<'a>]) -> Vec<&'a [u8]> {
    let (mut names, mut end) = (Vec::new(), 0);
    for span in open.iter().rev() {
        if names.is_empty() || span.end >= end {
            names.push(span.name);
            end = span.end;
        }
    }
    names.reverse();
    names
}

#[cfg(test)]
mod tests {
    use super::{RecordedSpan, nest};

    fn span(name: &str, tid: u32, start: u64, end: u64) -> RecordedSpan<'_> {
        RecordedSpan { name: name.as_bytes(), tid, start, end }
    }

    #[test]
    fn a_span_is_below_those_that_contain_it() {
        let groups = nest(vec![
            span("inner", 1, 20, 30),
            span("outer", 1, 10, 100),
            span("leaf", 1, 20, 25),
            span("leaf", 1, 20, 25),
            span("same", 1, 20, 30),
            // It is within no other span.
            span("over the end", 1, 90, 110),
            span("last", 1, 95, 100),
            span("next", 1, 110, 120),
            span("other thread", 2, 15, 30),
        ]);
        let text = groups.iter().map(|group| {
            let sections = group.sections.iter().map(|section| {
                let names = section.names.iter().map(|name| String::from_utf8_lossy(name));
                format!("{} {}", section.start, names.collect::<Vec<_>>().join(";"))
            });
            format!("{}: {}, {}", group.tid, sections.collect::<Vec<_>>().join(", "), group.end)
        });
        let expected = [
            "1: 10 outer, 20 outer;inner;same;leaf, 25 outer;inner;same, 30 outer, 90 over the end, 95 over the end;last, \
             100 over the end, 110",
            "1: 110 next, 120",
            "2: 15 other thread, 30",
        ];
        assert_eq!(text.collect::<Vec<_>>(), expected);
    }
}
