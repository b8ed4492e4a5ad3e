//! Reading the rings in an order in which every sample finds what it refers to.
//!
//! Rings of different CPUs are not read at the same instant, so records are not taken in the order of their times. Two
//! rules suffice. Of the side-band, only what is older than the moment at which its reading began (the horizon) is taken
//! in, sorted by time; the rest waits: a record was published before whatever it caused was even stamped, so nothing is
//! taken in before its cause. And a sample newer than the horizon first moves the horizon to now and has the side-band
//! read again: what the sample refers to was published before it.

use super::counters::Counters;
use crate::perf::event::{self, Event, Sample};
use crate::perf::recording::Recording;

/// How far behind the present a sample may still turn up that was stamped before its ring was read.
const STRAGGLERS_NS: u64 = 100_000_000;

/// Reads all rings again and again into a recording.
#[derive(Debug, Default)]
pub struct Reader {
    horizon: u64,
    /// Side-band records that are newer than the horizon.
    waiting: Vec<(u64, Vec<u8>)>,
}

impl Reader {
    /// Reads all that stands in the rings, but of each ring no more than one record that came meanwhile: who writes faster
    /// than we read would keep us from hearing of anything else.
    pub fn read(&mut self, counters: &Counters, recording: &mut Recording) {
        self.read_until(now(), counters, recording);
    }

    fn read_until(&mut self, until: u64, counters: &Counters, recording: &mut Recording) {
        let begin = now();
        self.read_side_band(counters, recording);
        for rings in &counters.rings {
            let Some(records) = rings.samples.sampler().iter() else { continue };
            let mut records = records.into_cow();
            while let Some(record) = records.lending_next() {
                let time = self.take_sample(record.as_raw().as_bytes(), counters, recording);
                if time > until {
                    break;
                }
            }
        }
        recording.forget_before(begin.saturating_sub(STRAGGLERS_NS));
    }

    /// Reads all that is left, when nothing more will come.
    pub fn finish(&mut self, counters: &Counters, recording: &mut Recording) {
        self.read_until(u64::MAX, counters, recording);
        self.horizon = u64::MAX;
        self.take_waiting(counters, recording);
    }

    /// Takes a record in, and says when it was written.
    fn take_sample(&mut self, record: &[u8], counters: &Counters, recording: &mut Recording) -> u64 {
        let Some((stamp, event)) = event::parse(record, counters.layout) else {
            recording.counts.malformed += 1;
            return 0;
        };
        match event {
            Event::Sample(sample) => {
                if let Some(event) = counters.event(stamp.tid, stamp.id) {
                    if stamp.time > self.horizon {
                        self.read_side_band(counters, recording);
                    }
                    recording.take(stamp, Event::Sample(Sample { event, ..sample }));
                }
            }
            Event::Lost(count) => recording.counts.lost += count,
            _ => recording.take(stamp, event),
        }
        stamp.time
    }

    fn read_side_band(&mut self, counters: &Counters, recording: &mut Recording) {
        self.horizon = now();
        for rings in &counters.rings {
            let Some(records) = rings.side.sampler().iter() else { continue };
            let mut records = records.into_cow();
            while let Some(record) = records.lending_next() {
                let bytes = record.as_raw().as_bytes();
                match event::parse(bytes, counters.layout) {
                    Some((_, Event::Lost(count))) => recording.counts.lost_side_band += count,
                    Some((stamp, _)) => self.waiting.push((stamp.time, bytes.to_vec())),
                    None => recording.counts.malformed += 1,
                }
            }
        }
        self.take_waiting(counters, recording);
    }

    fn take_waiting(&mut self, counters: &Counters, recording: &mut Recording) {
        if self.waiting.is_empty() {
            return;
        }
        self.waiting.sort_by_key(|(time, _)| *time);
        let ready = self.waiting.partition_point(|(time, _)| *time <= self.horizon);
        for (_, record) in self.waiting.drain(..ready) {
            if let Some((stamp, event)) = event::parse(&record, counters.layout) {
                recording.take(stamp, event);
            }
        }
    }
}

/// The time by the clock of the counters.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
