//! Which samples count, what they weigh, and when and in which span they were taken.

use super::header::Header;
use crate::collapse::filter::args::parse_seconds;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::filter::sample::{SampleFilter, SampleInfo};
use crate::collapse::sink::Sink;
use crate::collapse::spans::Spans;
use crate::collapse::timeline::SampleTime;
use crate::collapse::{Options, Remarks};
use crate::markers::NO_SPAN;
use crate::profile::SampleWeight;
use crate::profile::{FrameId, Weight};

/// What the options ask for, and what was seen so far.
pub(super) struct Selection {
    pub(super) events: EventFilter,
    weight: SampleWeight,
    choice: SampleFilter,
}

impl Selection {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            events: EventFilter::new(options.event.clone()),
            weight: options.weight,
            choice: SampleFilter::new(options),
        }
    }

    /// The same for another thread, if what the first sample decides is decided.
    pub(super) fn fork(&self) -> Option<Self> {
        if self.choice.needs_first_time() {
            return None;
        }
        Some(Self { events: self.events.fork()?, choice: self.choice.clone(), ..*self })
    }

    /// What the sample weighs, if it counts.
    pub(super) fn weigh(&mut self, header: &Header<'_>, remarks: &mut Remarks) -> Option<Weight> {
        let taken = self.events.accept(header.event.unwrap_or_default());
        if !self.chooses(header, remarks) || !taken {
            return None;
        }
        let weight = match (self.weight, header.period) {
            (SampleWeight::Period, Some(period)) => Weight::new(period),
            _ => Weight::ONE,
        };
        self.events.add_weight(weight);
        Some(weight)
    }

    fn chooses(&mut self, header: &Header<'_>, remarks: &mut Remarks) -> bool {
        let chosen = if self.choice.accepts_all() { Ok(true) } else { self.choice.accepts(&origin(header)) };
        chosen.unwrap_or_else(|missing| {
            remarks.malformed(missing);
            false
        })
    }
}

/// Who was where, and when.
pub(super) fn origin<'a>(header: &Header<'a>) -> SampleInfo<'a> {
    let number = |text: Option<&[u8]>| std::str::from_utf8(text?).ok()?.parse().ok();
    SampleInfo {
        time: header.time.and_then(parse_seconds),
        comm: header.comm,
        pid: number(header.pid()),
        tid: number(header.tid()),
        cpu: number(header.cpu),
    }
}

/// When the sample was taken, and by whom.
pub(super) fn moment(header: &Header<'_>, sink: &mut Sink) -> Option<SampleTime> {
    let time = header.time.and_then(parse_seconds)?;
    let thread = [header.comm, b" ", header.id].concat();
    Some(SampleTime { time, thread: sink.intern_thread(thread.trim_ascii()) })
}

/// The frame of the span that the sample belongs to.
pub(super) fn span(spans: &Spans, header: &Header<'_>, sink: &mut Sink, remarks: &mut Remarks) -> FrameId {
    let SampleInfo { time, tid, .. } = origin(header);
    if time.is_none() || tid.is_none() {
        remarks.malformed("a sample without a time or a thread id, so that --span cannot tell whose it is");
    }
    let name = tid.zip(time).and_then(|(tid, time)| spans.find(tid, time));
    sink.intern(name.unwrap_or(NO_SPAN))
}
