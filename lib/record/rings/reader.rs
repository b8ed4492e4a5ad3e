//! Reads the rings in an order in which everything that a sample refers to is known before the sample.
//!
//! Rings of different CPUs are not read at the same instant, so their records are not processed in the order of their
//! times. Two rules suffice:
//!
//! - Side-band records that are older than the start of their reading, the horizon, are processed in the order of their
//!   times. Newer ones wait for the next reading. The kernel publishes a record before anything that it causes is
//!   stamped, so no record is processed before its cause.
//! - A sample that is newer than the horizon first moves the horizon to now, and has the side-band rings read again.
//!   What the sample refers to was published before the sample.
//!
//! Samples are processed where they are in their ring. Those with copies of stacks are large.

mod sideband;

use self::sideband::SidebandRecord;
use rustc_hash::FxHashMap;

use super::attachments::Attachments;
use super::followed::Followed;
use super::outsiders::Outsiders;
use super::pending_stack::PendingStack;
use crate::perf::event::{Event, Sample, StackRecordPart, Stamp};
use crate::perf::process::ThreadExit;
use crate::perf::recording::Recording;
use crate::record::bpf::StackSampler;
use crate::record::counters::{Counters, Ring, SampleOrigin};
use crate::record::event_record::{EventKind, EventRecord};
use crate::record::off_cpu::switches::SwitchTracker;
use crate::record::pairs::tracker::PairTracker;
use crate::record::{clock, procfs};

/// A sample may turn up in its ring this long after it was stamped.
const MAX_SAMPLE_LATENCY_NS: u64 = 100_000_000;

/// Reads all rings into a recording, again and again.
#[derive(Debug)]
pub struct RingReader {
    /// Processes context switches, if they are recorded.
    pub switches: Option<SwitchTracker>,
    /// Charges pairs of events, if they are recorded.
    pub pairs: Option<PairTracker>,
    /// One sample in this many is used, and represents all of them.
    pub sample_divisor: u32,
    /// For each event, the number of samples that were left out since the last one that was used.
    skipped: Vec<u32>,
    /// Mappings and names from this time on are kept even if they are older than all samples to come. `u64::MAX` for
    /// none.
    pub keep_since: u64,
    /// Side-band records up to this time have been processed.
    horizon: u64,
    /// Mappings and names that ended before this time have been forgotten.
    forgotten_before: u64,
    /// Side-band records that are newer than the horizon.
    pending: Vec<SidebandRecord>,
    /// The BPF program that takes user stacks, if one does.
    pub sampler: Option<StackSampler>,
    /// For each CPU the last stack that the BPF program wrote.
    stacks: Vec<PendingStack>,
    /// True if the last samples came through objects that the BPF program could not walk through: the next ones will show
    /// more of them.
    pub is_learning: bool,
    /// Number of side-band records that were read.
    pub sideband_records: u64,
    /// For each thread that was created during the recording, the thread whose counters it has inherited, if those are
    /// counters of a thread.
    inherited_from: FxHashMap<u32, u32>,
    /// The processes whose side-band records are used; `None` for all. Counters of CPUs report those of all processes.
    pub followed: Option<Followed>,
    /// Finds processes to which the side-band counters have to be attached again.
    pub attachments: Attachments,
    /// Processes that are not recorded, but wake those that are.
    outsiders: Outsiders,
}

impl RingReader {
    /// Creates a reader of rings into which this BPF program writes stacks, if one does.
    pub fn new(sampler: Option<StackSampler>) -> Self {
        Self {
            switches: None,
            pairs: None,
            sample_divisor: 1,
            skipped: Vec::new(),
            keep_since: u64::MAX,
            horizon: 0,
            forgotten_before: 0,
            pending: Vec::new(),
            sampler,
            stacks: Vec::new(),
            is_learning: false,
            sideband_records: 0,
            inherited_from: FxHashMap::default(),
            followed: None,
            attachments: Attachments::default(),
            outsiders: Outsiders::default(),
        }
    }

    /// Reads the records that are in the rings, and of each ring at most one that is written meanwhile: a program that
    /// writes faster than we read must not keep us from everything else.
    pub fn read(&mut self, counters: &Counters, recording: &mut Recording) {
        self.read_all(false, counters, recording);
    }

    fn read_all(&mut self, is_last: bool, counters: &Counters, recording: &mut Recording) {
        let oldest_sample = clock::now().saturating_sub(MAX_SAMPLE_LATENCY_NS).min(self.keep_since);
        let is_forgetting_due = oldest_sample > self.forgotten_before + MAX_SAMPLE_LATENCY_NS;
        // Checked before reading: the last samples of a thread that has exited by now are about to be read.
        let exited = is_forgetting_due.then(|| recording.take_exited_before(oldest_sample, procfs::thread_exists));
        exited.iter().flatten().filter_map(ThreadExit::process).for_each(|pid| self.forget_process(pid));
        let start = clock::now();
        self.read_sideband(counters, recording);
        let mut stacks = std::mem::take(&mut self.stacks);
        stacks.resize_with(counters.rings.len(), PendingStack::default);
        for (rings, stack) in counters.rings.iter().zip(&mut stacks) {
            self.read_samples(&rings.samples, stack, if is_last { u64::MAX } else { start }, counters, recording);
        }
        self.stacks = stacks;
        self.is_learning = self.publish_tables(recording);
        self.read_switches(counters, recording);
        if let Some(switches) = &mut self.switches {
            switches.process_until(start, recording);
            if !is_last
                && let Some(event) = switches.every_switch_event()
                && let Some(is_enabled) = switches.update_rate(start, recording.counts.lost)
            {
                // A switch in between has two stacks. If the program cannot be told, blocks have none, and are called so.
                if is_enabled {
                    counters.set_event_enabled(event, true);
                }
                let _ = self.sampler.as_mut().map(|sampler| sampler.take_some_switches(!is_enabled));
                if !is_enabled {
                    counters.set_event_enabled(event, false);
                }
            }
        }
        if let Some(exited) = exited {
            for exit in &exited {
                self.inherited_from.remove(&exit.tid);
            }
            recording.forget_before(oldest_sample, exited);
            self.forgotten_before = oldest_sample;
        }
    }

    /// Reads the samples of a ring, of those that were written after `until` at most one.
    fn read_samples(
        &mut self,
        ring: &Ring,
        stack: &mut PendingStack,
        until: u64,
        counters: &Counters,
        recording: &mut Recording,
    ) {
        let Some(records) = ring.sampler().iter() else { return };
        let mut records = records.into_cow();
        while let Some(record) = records.lending_next() {
            let bytes = record.as_raw().as_bytes();
            if let Some((stamp, raw)) = ring.parse_output(bytes, counters.stack_layout) {
                match (EventRecord::parse(raw), StackRecordPart::parse(raw)) {
                    (Some(event), _) => self.add_event_record(stamp, &event, stack, counters, recording),
                    (None, Some(part)) => stack.add_part(stamp, &part),
                    (None, None) => recording.counts.malformed += 1,
                }
                continue;
            }
            let parsed = match ring.parse(bytes) {
                Some((stamp, Event::Sample(sample))) => Some((stamp, Event::Sample(stack.join(stamp, sample)))),
                other => {
                    stack.clear();
                    other
                }
            };
            let is_newer = parsed.as_ref().is_some_and(|(stamp, _)| stamp.time > until);
            self.add_sample_record(parsed, counters, recording);
            if is_newer {
                break;
            }
        }
    }

    /// Reads all remaining records, after the counters were disabled.
    pub fn finish(&mut self, counters: &Counters, recording: &mut Recording) {
        self.read_all(true, counters, recording);
        self.horizon = u64::MAX;
        self.process_pending(counters, recording);
    }

    /// Charges the remaining time of all threads, if switches are recorded. The recording ended at `time`.
    pub fn finish_switches(&mut self, time: u64, recording: &mut Recording) {
        if let Some(switches) = &mut self.switches {
            switches.finish(time, recording);
        }
    }

    fn read_switches(&mut self, counters: &Counters, recording: &mut Recording) {
        let Some(switches) = &mut self.switches else { return };
        let is_duplicate = |stamp: Stamp| {
            let inherited_from = self.inherited_from.get(&stamp.tid).copied();
            counters.sampled_event(stamp.tid, inherited_from, stamp.id) == SampleOrigin::Duplicate
        };
        for ring in counters.rings.iter().filter_map(|rings| rings.switches.as_ref()) {
            for_each_record(ring, |record| match ring.parse(record) {
                Some((_, Event::Lost(count))) => recording.counts.lost_switches += count,
                Some((stamp, _)) if is_duplicate(stamp) => {}
                Some((stamp, event)) => switches.add_event(stamp, &event),
                None => recording.counts.malformed += 1,
            });
        }
    }

    fn add_sample_record(
        &mut self,
        record: Option<(Stamp, Event<'_>)>,
        counters: &Counters,
        recording: &mut Recording,
    ) {
        match record {
            None => recording.counts.malformed += 1,
            Some((stamp, Event::Sample(sample))) => self.add_sample(stamp, sample, counters, recording),
            Some((_, Event::Lost(count))) => recording.counts.lost += count,
            Some((stamp, event)) => recording.handle_event(stamp, event),
        }
    }

    fn add_sample(&mut self, stamp: Stamp, sample: Sample<'_>, counters: &Counters, recording: &mut Recording) {
        if stamp.time > self.horizon {
            self.read_sideband(counters, recording);
        }
        let inherited_from = self.inherited_from.get(&stamp.tid).copied();
        let event = match counters.sampled_event(stamp.tid, inherited_from, stamp.id) {
            SampleOrigin::Event(event) => event,
            SampleOrigin::Duplicate => return,
            SampleOrigin::Unknown => {
                recording.counts.lost += 1;
                return;
            }
        };
        if !self.is_used(event) {
            recording.keep_sent_names(&sample);
            recording.counts.skipped += 1;
            return;
        }
        // The kernel may drop side-band records too: then `/proc` is asked.
        if !recording.knows_thread(stamp.tid) {
            procfs::load_process(stamp.pid, recording);
            self.note_process(stamp.pid);
        }
        self.note_sample(stamp, &sample, recording);
        let period = counters.sample_weight(event, &sample).saturating_mul(self.sample_divisor.into());
        let sample = Sample { event, period, ..sample };
        match &mut self.switches {
            Some(switches) => switches.add_sample(stamp, &sample, recording),
            None => recording.handle_event(stamp, Event::Sample(sample)),
        }
    }

    /// Adds an event of the BPF program, whose user stack was read before.
    fn add_event_record(
        &mut self,
        stamp: Stamp,
        event: &EventRecord,
        stack: &mut PendingStack,
        counters: &Counters,
        recording: &mut Recording,
    ) {
        if stamp.time > self.horizon {
            self.read_sideband(counters, recording);
        }
        let sample = stack.join(stamp, event.sample());
        let stamp = event.stamp(stamp);
        // Wakers need not be part of the target.
        self.outsiders.update(stamp, event, recording, self.sampler.as_mut());
        self.note_sample(stamp, &sample, recording);
        match (event.kind, &mut self.switches, &mut self.pairs) {
            (EventKind::Waking, Some(switches), _) => switches.add_waking(stamp, event, sample, recording),
            (EventKind::Switch | EventKind::LongBlock, Some(switches), _) => {
                switches.add_switch_stack(stamp, event, sample, recording);
            }
            (EventKind::Killed, Some(switches), _) => switches.add_killed(stamp, event.subject as u32),
            (EventKind::Pair | EventKind::PairBegin | EventKind::PairEnd, _, Some(pairs)) => {
                pairs.add(stamp, event, sample, recording);
            }
            _ => {}
        }
    }

    /// Counts a sample of an event. Returns true for every `sample_divisor`th.
    fn is_used(&mut self, event: u32) -> bool {
        let event = event as usize;
        self.skipped.resize(self.skipped.len().max(event + 1), 0);
        let skipped = &mut self.skipped[event];
        *skipped += 1;
        let is_used = *skipped >= self.sample_divisor;
        *skipped = if is_used { 0 } else { *skipped };
        is_used
    }

    /// Notes a sample of a process whose mappings the BPF program does not know, or knows to be out of date.
    fn note_sample(&mut self, stamp: Stamp, sample: &Sample<'_>, recording: &mut Recording) {
        let record = sample.user.as_ref().and_then(|user| user.record);
        if let Some(sampler) = &mut self.sampler
            && let Some(record) = record
            && record.published == 0
            && !record.has_no_stack()
        {
            sampler.tables.note_sample(stamp, record.is_of_unknown_process(), recording, self.horizon);
        }
    }

    /// Notes that the mappings of a process were read from `/proc`.
    pub fn note_process(&mut self, pid: u32) {
        if let Some(sampler) = &mut self.sampler {
            sampler.tables.note_process(pid);
        }
    }

    /// Forgets a process of which all threads are gone. The records up to their exits have been processed, and its ID is not used
    /// again before the record of a fork.
    fn forget_process(&mut self, pid: u32) {
        if let Some(followed) = &mut self.followed {
            followed.forget(pid);
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.tables.forget_process(pid);
        }
    }

    /// Publishes what the BPF program needs to walk, as far as it has changed. Returns true if it can walk through more
    /// objects now.
    fn publish_tables(&mut self, recording: &mut Recording) -> bool {
        self.sampler.as_mut().is_some_and(|sampler| sampler.tables.publish(recording, self.horizon))
    }
}

fn for_each_record(ring: &Ring, mut process: impl FnMut(&[u8])) {
    let Some(records) = ring.sampler().iter() else { return };
    let mut records = records.into_cow();
    while let Some(record) = records.lending_next() {
        process(record.as_raw().as_bytes());
    }
}
