//! Reading the rings in an order in which every sample finds what it refers to.
//!
//! Rings of different CPUs are not read at the same instant, so records are not taken in the order of their times. Two
//! rules suffice. Of the side-band, only what is older than the moment at which its reading began (the horizon) is taken
//! in, sorted by time; the rest waits: a record was published before whatever it caused was even stamped, so nothing is
//! taken in before its cause. And a sample newer than the horizon first moves the horizon to now and has the side-band
//! read again: what the sample refers to was published before it.
//!
//! Samples are copied out of their rings before any of them is taken in: where a thread was later tells what can still be
//! read of it.

pub mod epoll;

use std::ops::Range;

use crate::perf::event::{Event, Sample, Stamp};
use crate::perf::recording::Recording;
use crate::record::counters::{Counters, CpuRings, Ring};
use crate::record::off_cpu::Switches;
use crate::record::{clock, procfs};

/// How far behind the present a sample may still turn up that was stamped before its ring was read.
const STRAGGLERS_NS: u64 = 100_000_000;

/// Reads all rings again and again into a recording.
#[derive(Debug)]
pub struct Reader {
    /// What becomes of switches, where they are wanted.
    pub switches: Option<Switches>,
    /// One sample in so many is taken in, and stands for all of them.
    pub keep_one_in: u32,
    /// How many of each event were passed over since.
    skipped: Vec<u32>,
    /// Since when it may still be asked what stood where; of late always.
    pub asked_since: u64,
    horizon: u64,
    /// Up to when was forgotten what nobody will ask for.
    forgotten: u64,
    /// Records of samples that are to be taken in.
    batch: Batch,
    /// Side-band records that are newer than the horizon: when they were written, into which of the rings.
    waiting: Vec<(u64, usize, Vec<u8>)>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            switches: None,
            keep_one_in: 1,
            skipped: Vec::new(),
            asked_since: u64::MAX,
            horizon: 0,
            forgotten: 0,
            batch: Batch::default(),
            waiting: Vec::new(),
        }
    }
}

impl Reader {
    /// Reads all that stands in the rings, but of each ring no more than one record that came meanwhile: who writes faster
    /// than we read would keep us from hearing of anything else. Says whether something stood in those of samples.
    pub fn read(&mut self, counters: &Counters, recording: &mut Recording) -> bool {
        self.read_all(false, counters, recording)
    }

    fn read_all(&mut self, is_last: bool, counters: &Counters, recording: &mut Recording) -> bool {
        let past = clock::now().saturating_sub(STRAGGLERS_NS).min(self.asked_since);
        // Now: whoever runs no more has no sample but those that are about to be read.
        let is_due = past > self.forgotten + STRAGGLERS_NS;
        let over = is_due.then(|| recording.over_before(past, procfs::thread_exists));
        let begin = clock::now();
        let until = if is_last { u64::MAX } else { begin };
        self.read_side_band(counters, recording);
        let mut batch = std::mem::take(&mut self.batch);
        batch.read(until, counters, recording);
        let found = !batch.records.is_empty();
        for (ring, record) in &batch.records {
            let record = counters.rings[*ring].samples.parse(&batch.bytes[record.clone()]);
            self.take_sample(record, counters, recording);
        }
        self.batch = batch;
        recording.forget_sightings();
        self.read_switches(counters, recording);
        if let Some(switches) = &mut self.switches {
            switches.settle(begin, recording);
            if !is_last
                && let (Some(counter), Some(every)) =
                    (switches.dense_counter(), switches.change(begin, recording.counts.lost))
            {
                counters.let_count(counter, every);
            }
        }
        if let Some(over) = over {
            recording.forget_before(past, over);
            self.forgotten = past;
        }
        found
    }

    /// Reads all that is left, when nothing more will come.
    pub fn finish(&mut self, counters: &Counters, recording: &mut Recording) {
        self.read_all(true, counters, recording);
        self.horizon = u64::MAX;
        self.take_waiting(counters, recording);
    }

    /// Charges what is left, where switches are wanted: the recording ended at `time`.
    pub fn finish_switches(&mut self, time: u64, recording: &mut Recording) {
        if let Some(switches) = &mut self.switches {
            switches.finish(time, recording);
        }
    }

    fn read_switches(&mut self, counters: &Counters, recording: &mut Recording) {
        let Some(switches) = &mut self.switches else { return };
        for ring in counters.rings.iter().filter_map(|rings| rings.switches.as_ref()) {
            each_record(ring, |record| match ring.parse(record) {
                Some((_, Event::Lost(count))) => recording.counts.lost_switches += count,
                Some((stamp, event)) if counters.event(stamp.tid, stamp.id).is_some() => switches.see(stamp, &event),
                Some(_) => {}
                None => recording.counts.malformed += 1,
            });
        }
    }

    fn take_sample(&mut self, record: Option<(Stamp, Event<'_>)>, counters: &Counters, recording: &mut Recording) {
        let Some((stamp, event)) = record else {
            recording.counts.malformed += 1;
            return;
        };
        match event {
            Event::Sample(sample) => {
                let number = counters.event(stamp.tid, stamp.id);
                let kept = number.filter(|event| self.is_kept(*event));
                recording.counts.passed_over += u64::from(number.is_some() && kept.is_none());
                if let Some(number) = kept {
                    if stamp.time > self.horizon {
                        self.read_side_band(counters, recording);
                    }
                    // Of whom nothing was heard, though it should have been: the kernel may drop that too.
                    if !recording.knows_thread(stamp.tid) {
                        procfs::load_process(stamp.pid, recording);
                    }
                    let period = counters.measure(number, &sample).saturating_mul(self.keep_one_in.into());
                    let sample = Sample { event: number, period, ..sample };
                    match &mut self.switches {
                        Some(switches) => switches.sample(stamp, &sample, recording),
                        None => recording.take(stamp, Event::Sample(sample)),
                    }
                }
            }
            Event::Lost(count) => recording.counts.lost += count,
            _ => recording.take(stamp, event),
        }
    }

    fn is_kept(&mut self, event: u32) -> bool {
        let event = event as usize;
        self.skipped.resize(self.skipped.len().max(event + 1), 0);
        let skipped = &mut self.skipped[event];
        *skipped += 1;
        let is_kept = *skipped >= self.keep_one_in;
        *skipped = if is_kept { 0 } else { *skipped };
        is_kept
    }

    fn read_side_band(&mut self, counters: &Counters, recording: &mut Recording) {
        self.horizon = clock::now();
        recording.look_again(self.horizon);
        for (number, CpuRings { side, .. }) in counters.rings.iter().enumerate() {
            each_record(side, |bytes| match side.parse(bytes) {
                Some((_, Event::Lost(count))) => recording.counts.lost_side_band += count,
                Some((stamp, _)) => self.waiting.push((stamp.time, number, bytes.to_vec())),
                None => recording.counts.malformed += 1,
            });
        }
        self.take_waiting(counters, recording);
    }

    fn take_waiting(&mut self, counters: &Counters, recording: &mut Recording) {
        if self.waiting.is_empty() {
            return;
        }
        self.waiting.sort_by_key(|(time, ..)| *time);
        let ready = self.waiting.partition_point(|(time, ..)| *time <= self.horizon);
        for (_, number, record) in self.waiting.drain(..ready) {
            if let Some((stamp, event)) = counters.rings[number].side.parse(&record) {
                if let Some(switches) = &mut self.switches {
                    switches.see(stamp, &event);
                }
                recording.take(stamp, event);
            }
        }
    }
}

/// Records that were copied out of the rings of samples.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    /// For each the ring that it is from, and where its bytes are.
    records: Vec<(usize, Range<usize>)>,
}

impl Batch {
    /// Reads the rings, of each no more than one record that was written after a time.
    fn read(&mut self, until: u64, counters: &Counters, recording: &mut Recording) {
        self.bytes.clear();
        self.records.clear();
        for (number, rings) in counters.rings.iter().enumerate() {
            let Some(records) = rings.samples.sampler().iter() else { continue };
            let mut records = records.into_cow();
            while let Some(record) = records.lending_next() {
                let bytes = record.as_raw().as_bytes();
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                self.records.push((number, start..self.bytes.len()));
                let Some((stamp, event)) = rings.samples.parse(bytes) else { continue };
                if let Event::Sample(sample) = &event {
                    recording.foresee(stamp, sample);
                }
                if stamp.time > until {
                    break;
                }
            }
        }
    }
}

fn each_record(ring: &Ring, mut take: impl FnMut(&[u8])) {
    let Some(records) = ring.sampler().iter() else { return };
    let mut records = records.into_cow();
    while let Some(record) = records.lending_next() {
        take(record.as_raw().as_bytes());
    }
}
