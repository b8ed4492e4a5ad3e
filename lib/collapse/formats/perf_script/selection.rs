//! Which samples count, what they weigh, and when and in which span they were taken.

use super::header::Header;
use crate::collapse::chosen::Events;
use crate::collapse::origin::{Choice, Origin};
use crate::collapse::select::nanoseconds;
use crate::collapse::sink::Sink;
use crate::collapse::spans::Spans;
use crate::collapse::timeline::Moment;
use crate::collapse::{Options, Remarks};
use crate::markers::NO_SPAN;
use crate::profile::SampleWeight;
use crate::profile::{FrameId, Weight};

/// What the options ask for, and what was seen so far.
pub(super) struct Selection {
    pub(super) events: Events,
    weight: SampleWeight,
    choice: Choice,
}

impl Selection {
    pub(super) fn new(options: &Options) -> Self {
        Self { events: Events::new(options.event.clone()), weight: options.weight, choice: Choice::new(options) }
    }

    /// The same for another thread, if what the first sample decides is decided.
    pub(super) fn fork(&self) -> Option<Self> {
        if self.choice.awaits_first() {
            return None;
        }
        Some(Self { events: self.events.fork()?, choice: self.choice.clone(), ..*self })
    }

    /// What the sample weighs, if it counts.
    pub(super) fn weigh(&mut self, header: &Header<'_>, remarks: &mut Remarks) -> Option<Weight> {
        let taken = self.events.takes(header.event.unwrap_or_default());
        if !self.chooses(header, remarks) || !taken {
            return None;
        }
        let weight = match (self.weight, header.period) {
            (SampleWeight::Period, Some(period)) => Weight::new(period),
            _ => Weight::ONE,
        };
        self.events.counts(weight);
        Some(weight)
    }

    fn chooses(&mut self, header: &Header<'_>, remarks: &mut Remarks) -> bool {
        let chosen = if self.choice.is_all() { Ok(true) } else { self.choice.takes(&origin(header)) };
        chosen.unwrap_or_else(|missing| {
            remarks.malformed(missing);
            false
        })
    }
}

/// Who was where, and when.
pub(super) fn origin<'a>(header: &Header<'a>) -> Origin<'a> {
    let number = |text: Option<&[u8]>| std::str::from_utf8(text?).ok()?.parse().ok();
    Origin {
        time: header.time.and_then(nanoseconds),
        comm: header.comm,
        pid: number(header.pid()),
        tid: number(header.tid()),
        cpu: number(header.cpu),
    }
}

/// When the sample was taken, and by whom.
pub(super) fn moment(header: &Header<'_>, sink: &mut Sink) -> Option<Moment> {
    let time = header.time.and_then(nanoseconds)?;
    let thread = [header.comm, b" ", header.id].concat();
    Some(Moment { time, thread: sink.intern_thread(thread.trim_ascii()) })
}

/// The frame of the span that the sample belongs to.
pub(super) fn span(spans: &Spans, header: &Header<'_>, sink: &mut Sink, remarks: &mut Remarks) -> FrameId {
    let Origin { time, tid, .. } = origin(header);
    if time.is_none() || tid.is_none() {
        remarks.malformed("a sample without a time or a thread id, so that --span cannot tell whose it is");
    }
    let name = tid.zip(time).and_then(|(tid, time)| spans.at(tid, time));
    sink.intern(name.unwrap_or(NO_SPAN))
}
