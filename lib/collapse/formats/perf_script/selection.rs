//! Which samples count, and what they weigh.

use super::header::Header;
use crate::collapse::chosen::Events;
use crate::collapse::origin::{Choice, Origin};
use crate::collapse::select::nanoseconds;
use crate::collapse::{Options, Remarks, SampleWeight};
use crate::profile::Weight;

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
