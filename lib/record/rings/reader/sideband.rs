//! Side-band records: forks, mappings, names and exits, in the order of their times.

use super::{RingReader, for_each_record};
use crate::perf::event::Event;
use crate::perf::recording::Recording;
use crate::record::clock;
use crate::record::counters::{Counters, CpuRings};

/// A side-band record that was copied out of its ring.
#[derive(Debug)]
pub(super) struct SidebandRecord {
    time: u64,
    /// Index of the CPU's rings.
    rings: usize,
    bytes: Vec<u8>,
}

impl RingReader {
    /// Reads the side-band records, and publishes to the BPF program what they say.
    pub fn read_sideband(&mut self, counters: &Counters, recording: &mut Recording) {
        self.horizon = clock::now();
        for (rings, CpuRings { sideband, .. }) in counters.rings.iter().enumerate() {
            for_each_record(sideband, |bytes| match sideband.parse(bytes) {
                Some((_, Event::Lost(count))) => recording.counts.lost_sideband += count,
                Some((stamp, _)) => {
                    self.sideband_records += 1;
                    self.pending.push(SidebandRecord { time: stamp.time, rings, bytes: bytes.to_vec() });
                }
                None => recording.counts.malformed += 1,
            });
        }
        self.process_pending(counters, recording);
    }

    /// Processes the pending side-band records up to the horizon.
    pub(super) fn process_pending(&mut self, counters: &Counters, recording: &mut Recording) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|record| record.time);
        let ready = pending.partition_point(|record| record.time <= self.horizon);
        for record in pending.drain(..ready) {
            if let Some((stamp, event)) = counters.rings[record.rings].sideband.parse(&record.bytes)
                && self.followed.as_mut().is_none_or(|followed| followed.includes(stamp, &event))
                && !self.attachments.note_event(stamp.time, &event)
            {
                if let Some(sampler) = &mut self.sampler {
                    sampler.tables.note_event(stamp.time, &event);
                }
                self.note_inheritance(&event, counters);
                if let Some(switches) = &mut self.switches {
                    switches.add_event(stamp, &event);
                }
                recording.handle_event(stamp, event);
            }
        }
        self.pending = pending;
        self.publish_tables(recording);
    }

    /// Notes from which thread a new one has inherited its counters.
    fn note_inheritance(&mut self, event: &Event<'_>, counters: &Counters) {
        if let Event::Fork { tid, parent_tid, .. } = event
            && let Some(owner) = counters.owner(*parent_tid, self.inherited_from.get(parent_tid).copied())
        {
            self.inherited_from.insert(*tid, owner);
        }
    }
}
