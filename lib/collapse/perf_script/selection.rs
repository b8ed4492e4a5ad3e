//! Which samples count, and what they weigh.

use super::header::Header;
use crate::collapse::chosen::Events;
use crate::collapse::select::nanoseconds;
use crate::collapse::{CpuList, Options, Remarks, SampleWeight, TimeSpan};
use crate::profile::Weight;

/// What the options ask for, and what was seen so far.
pub(super) struct Selection {
    pub(super) events: Events,
    weight: SampleWeight,
    time: Option<TimeSpan>,
    comms: Vec<Vec<u8>>,
    cpus: Option<CpuList>,
    /// The first sample's time, if times are measured from it.
    first: Option<u64>,
}

impl Selection {
    pub(super) fn new(options: &Options) -> Self {
        let Options { weight, time, .. } = *options;
        let (comms, cpus) = (options.comms.clone(), options.cpus.clone());
        Self { events: Events::new(options.event.clone()), weight, time, comms, cpus, first: None }
    }

    /// The same for another thread, if what the first sample decides is decided.
    pub(super) fn fork(&self) -> Option<Self> {
        if self.first.is_none() && self.time.is_some_and(|span| span.is_relative()) {
            return None;
        }
        let (comms, cpus) = (self.comms.clone(), self.cpus.clone());
        Some(Self { events: self.events.fork()?, comms, cpus, ..*self })
    }

    /// What the sample weighs, if it counts.
    pub(super) fn weigh(&mut self, header: &Header<'_>, remarks: &mut Remarks) -> Option<Weight> {
        let taken = self.events.takes(header.event.unwrap_or_default());
        let chosen = (self.time.is_none() || self.in_time(header, remarks)) && taken;
        if !chosen || !self.of_thread(header) || !self.on_cpu(header, remarks) {
            return None;
        }
        let weight = match (self.weight, header.period) {
            (SampleWeight::Period, Some(period)) => Weight::new(period),
            _ => Weight::ONE,
        };
        self.events.counts(weight);
        Some(weight)
    }

    fn in_time(&mut self, header: &Header<'_>, remarks: &mut Remarks) -> bool {
        let Some(time) = header.time.and_then(nanoseconds) else {
            remarks.malformed("a sample without a time, so that --time cannot tell whether it counts");
            return false;
        };
        let first = *self.first.get_or_insert(time);
        self.time.is_none_or(|span| span.contains(time, first))
    }

    /// By its name as it is, or as it is shown, with `_` for blanks.
    fn of_thread(&self, header: &Header<'_>) -> bool {
        let same = |name: &Vec<u8>| {
            let as_shown = |byte: &u8| if *byte == b' ' { b'_' } else { *byte };
            name == header.comm || name.iter().copied().eq(header.comm.iter().map(as_shown))
        };
        self.comms.is_empty() || self.comms.iter().any(same)
    }

    fn on_cpu(&self, header: &Header<'_>, remarks: &mut Remarks) -> bool {
        let Some(cpus) = &self.cpus else { return true };
        let Some(cpu) = header.cpu.and_then(|cpu| std::str::from_utf8(cpu).ok()?.parse().ok()) else {
            remarks.malformed("a sample without a CPU, so that --cpu cannot tell whether it counts");
            return false;
        };
        cpus.contains(cpu)
    }
}
