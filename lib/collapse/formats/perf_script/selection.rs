//! Selects samples by the options, and returns their weight, time and span.

use super::header::Header;
use crate::collapse::filter::args::parse_seconds;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::filter::sample::{SampleFilter, SampleInfo};
use crate::collapse::options::Options;
use crate::collapse::parser::BlockReport;
use crate::collapse::sink::Sink;
use crate::collapse::spans::Spans;
use crate::collapse::timeline::SampleTime;
use crate::markers::NO_SPAN;
use crate::profile::SampleWeight;
use crate::profile::{FrameId, Weight};

/// The filters that select samples, and their state.
pub(super) struct Selection {
    pub(super) events: EventFilter,
    weight: SampleWeight,
    filter: SampleFilter,
}

impl Selection {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            events: EventFilter::new(options.event.clone()),
            weight: options.weight,
            filter: SampleFilter::new(options),
        }
    }

    /// Returns a copy for another thread, or `None` if the first sample, which tells the default event, has not been seen.
    pub(super) fn fork(&self) -> Option<Self> {
        Some(Self { events: self.events.fork()?, filter: self.filter.clone(), ..*self })
    }

    /// Returns the sample's weight, if it is selected.
    pub(super) fn select_weight(
        &mut self,
        header: &Header<'_>,
        sink: &mut Sink,
        report: &mut BlockReport,
    ) -> Option<Weight> {
        let event_matches = self.events.accept(header.event.unwrap_or_default());
        if !self.is_selected(header, sink, report) || !event_matches {
            return None;
        }
        let weight = match (self.weight, header.period) {
            (SampleWeight::Period, Some(period)) => Weight::new(period),
            _ => Weight::ONE,
        };
        self.events.add_weight(weight);
        if self.weight == SampleWeight::Period && header.period.is_none() {
            self.events.note_without_period();
        }
        Some(weight)
    }

    /// Returns true if the options that filter by time, thread and CPU select the sample.
    fn is_selected(&self, header: &Header<'_>, sink: &mut Sink, report: &mut BlockReport) -> bool {
        if self.filter.accepts_all() {
            return true;
        }
        let info = sample_info(header);
        sink.note_time(info.time);
        if info.comm.is_empty() && self.filter.names_threads() {
            report.add_malformed("a sample has no thread name, which --comm needs");
            return false;
        }
        self.filter.accepts(&info).unwrap_or_else(|missing| {
            report.add_malformed(missing);
            false
        })
    }
}

pub(super) fn sample_info<'a>(header: &Header<'a>) -> SampleInfo<'a> {
    SampleInfo {
        time: header.time.and_then(parse_seconds),
        comm: header.comm,
        pid: parse_number(header.pid()),
        tid: parse_number(header.tid()),
        cpu: parse_number(header.cpu),
    }
}

fn parse_number(text: Option<&[u8]>) -> Option<u32> {
    std::str::from_utf8(text?).ok()?.parse().ok()
}

/// Returns the time, the thread and the CPU of a sample, if it has a time.
pub(super) fn sample_time(header: &Header<'_>, sink: &mut Sink) -> Option<SampleTime> {
    let time = header.time.and_then(parse_seconds)?;
    let thread = [header.comm, b" ", header.id].concat();
    Some(SampleTime { time, thread: sink.intern_thread(thread.trim_ascii()), cpu: parse_number(header.cpu) })
}

/// Adds the frames of the spans that contain the sample.
pub(super) fn push_span_frames(
    spans: &Spans,
    header: &Header<'_>,
    sink: &mut Sink,
    report: &mut BlockReport,
    frames: &mut Vec<FrameId>,
) {
    let SampleInfo { time, pid, tid, .. } = sample_info(header);
    if let Some((tid, time)) = tid.zip(time) {
        return spans.push_frames(pid, tid, time, sink, frames);
    }
    report.add_malformed("the sample has no time or no thread ID, which --span needs");
    frames.push(sink.intern(NO_SPAN));
}
