//! Samples of documents with times and threads: selects them by the options, and adds their span and their time.

use std::sync::Arc;

use super::filter::sample::{SampleFilter, SampleInfo};
use super::options::Options;
use super::sink::Sink;
use super::spans::Spans;
use super::timeline::SampleTime;
use crate::Error;
use crate::markers::{TRUNCATED, UNKNOWN};
use crate::profile::{FrameId, Weight, Weights};

/// The selection of samples, and the buffer for their stacks.
pub(super) struct TimedSamples {
    filter: SampleFilter,
    spans: Option<Arc<Spans>>,
    stack: Vec<FrameId>,
}

/// A sample and its stack.
pub(super) struct TimedSample<'a> {
    pub(super) info: SampleInfo<'a>,
    /// Root frames, such as the thread and labels.
    pub(super) roots: &'a [FrameId],
    /// True if frames near the root are missing.
    pub(super) is_truncated: bool,
    /// The frames, root first.
    pub(super) frames: &'a [FrameId],
    pub(super) weight: Weight,
}

impl TimedSamples {
    pub(super) fn new(options: &Options) -> Self {
        Self { filter: SampleFilter::new(options), spans: options.spans.clone(), stack: Vec::new() }
    }

    /// Returns true if samples do not depend on their time: the options select all of them, and need no span.
    pub(super) fn ignores_times(&self) -> bool {
        self.filter.accepts_all() && self.spans.is_none()
    }

    /// Returns true if the options that filter by time, thread and CPU select the sample, and notes its time.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the sample lacks a property that a condition needs.
    pub(super) fn accept(&self, info: &SampleInfo<'_>, sink: &mut Sink) -> Result<bool, Error> {
        sink.note_time(info.time);
        if self.filter.accepts_all() {
            return Ok(true);
        }
        let is_accepted = self.filter.accepts(info).map_err(|missing| Error::Invalid(missing.to_owned()))?;
        if !is_accepted {
            sink.note_left_out();
        }
        Ok(is_accepted)
    }

    /// Adds a sample with its span, if spans are wanted, and its time. A sample of weight zero is not added.
    pub(super) fn add(&mut self, sample: &TimedSample<'_>, sink: &mut Sink) -> Result<(), Error> {
        if sample.weight.is_zero() {
            sink.note_weightless();
            return Ok(());
        }
        self.stack.clear();
        if let Some(spans) = &self.spans {
            let (Some(tid), Some(time)) = (sample.info.tid, sample.info.time) else {
                return Err(Error::Invalid("a sample has no time or no thread ID, which --span needs".to_owned()));
            };
            spans.push_frames(sample.info.pid, tid, time, sink, &mut self.stack);
        }
        self.stack.extend_from_slice(sample.roots);
        if sample.is_truncated {
            self.stack.push(sink.intern(TRUNCATED));
        }
        self.stack.extend_from_slice(sample.frames);
        if sample.frames.is_empty() && !sample.is_truncated {
            self.stack.push(sink.intern(UNKNOWN));
        }
        let time = if sink.needs_times() { sample_time(&sample.info, sink) } else { None };
        sink.add_timed(&self.stack, Weights::plain(sample.weight), time)
    }
}

/// Returns the time, the thread and the CPU of a sample, if it has a time.
fn sample_time(info: &SampleInfo<'_>, sink: &mut Sink) -> Option<SampleTime> {
    let time = info.time?;
    let ids = [info.pid, info.tid].into_iter().flatten().map(|id| id.to_string()).collect::<Vec<_>>().join("/");
    let name = [info.comm, ids.as_bytes()].join(&b' ');
    Some(SampleTime { time, thread: sink.intern_thread(name.trim_ascii()), cpu: info.cpu })
}
