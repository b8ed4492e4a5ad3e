//! Ends of a recording and of its parts.

use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::RecordingSession;
use crate::perf::recording::Recording;
use crate::record::clock;
use crate::record::observer::FinishedRecording;
use crate::record::overhead::Overhead;
use crate::record::pairs::PairTotals;
use crate::record::pairs::tracker::PairTracker;
use crate::record::rings::reader::RingReader;
use crate::record::usage::Usage;

impl RecordingSession {
    /// Returns what the target has used since the previous part.
    pub(super) fn measure_usage(&mut self) -> Usage {
        let sampler = self.reader.sampler.as_ref();
        self.usage.as_mut().map_or_else(Usage::default, |usage| usage.take(&self.counters, sampler))
    }

    /// Returns what was recorded since the previous part, and begins a new one.
    pub(super) fn finish_part(&mut self, usage: Usage) -> FinishedRecording {
        if let Some(pairs) = &mut self.reader.pairs {
            pairs.finish(None, &mut self.recording);
        }
        self.add_losses();
        self.recording.merge_slices();
        let recording = self.recording.rotate();
        let elapsed = self.part_start.elapsed();
        self.part_start = Instant::now();
        self.describe(recording, usage, elapsed)
    }

    /// Describes a recording that ends now.
    pub(super) fn describe(&mut self, recording: Recording, usage: Usage, elapsed: Duration) -> FinishedRecording {
        let start = SystemTime::now().checked_sub(elapsed);
        FinishedRecording {
            recording,
            events: self.events.clone(),
            stack_copies: self.counters.stack_copies,
            copy_reason: self.copy_reason.clone(),
            totals: None,
            pairs: None,
            usage,
            file_time: start.map_or(0, seconds_since_1970),
            elapsed,
            command: None,
            notes: self.counters.notes.drain(..).collect(),
            missed: None,
            has_ring: self.flight_recorder.is_some(),
        }
    }

    /// Adds the losses that the counters know of since the last call. A ring only reports losses before its next record.
    pub(super) fn add_losses(&mut self) {
        if let Some(lost) = self.counters.lost_sideband_records() {
            let before = std::mem::replace(&mut self.reported.lost_sideband_records, lost);
            self.recording.counts.lost_sideband = lost - before;
        }
        self.recording.set_lost(self.counters.lost_samples().map(|lost| {
            let before = std::mem::replace(&mut self.reported.lost_samples, lost.clone());
            lost.iter().enumerate().map(|(event, lost)| lost - before.get(event).unwrap_or(&0)).collect()
        }));
    }

    /// Disables the counters, and reads all that is left.
    pub(in crate::record) fn finish(mut self) -> FinishedRecording {
        let end = clock::now();
        let elapsed = self.part_start.elapsed();
        // The program counts pairs on CPUs that have no ring, too.
        let cpus = (!self.counters.counts_on_all_cpus()).then(|| self.counters.cpus());
        let pair_sums = self.reader.sampler.as_mut().and_then(|sampler| sampler.finish_pairs(cpus.as_deref()));
        self.counters.disable();
        let usage = self.measure_usage();
        self.reader.finish(&self.counters, &mut self.recording);
        self.reader.finish_switches(end, &mut self.recording);
        if let Some(pairs) = &mut self.reader.pairs {
            pairs.finish(pair_sums, &mut self.recording);
        }
        let mut totals = None;
        if let Some(aggregation) = self.aggregation.take() {
            let (aggregated, notes) = aggregation.finish(end, &mut self.recording);
            self.counters.notes.extend(notes);
            totals = Some(aggregated);
        }
        self.counters.notes.extend(self.overhead.as_ref().and_then(Overhead::note));
        let keeps_last_part = self.flight_recorder.is_some();
        let (kept, missed) = self.finish_slices(end);
        let (usage, elapsed) = kept.unwrap_or((usage, elapsed));
        let part = self.finish_part(usage);
        let file_time = if keeps_last_part { seconds_since_1970(SystemTime::now()) } else { part.file_time };
        let RingReader { switches, pairs, sampler, .. } = self.reader;
        let over = self.pair_threshold;
        let pairs = pairs.zip(pair_sums).map(|(PairTracker { represented, unmatched, .. }, sums)| PairTotals {
            sums,
            over,
            represented,
            unmatched,
        });
        close_in_background((self.counters, sampler));
        let totals = switches.map(|switches| switches.totals.with_sums_of(&part.recording)).or(totals);
        FinishedRecording {
            elapsed,
            file_time,
            missed: missed.or_else(|| totals.as_ref()?.missing_path.clone()),
            has_ring: keeps_last_part,
            pairs,
            totals,
            ..part
        }
    }
}

/// Drops counters and BPF programs on another thread: the kernel waits for all CPUs before it frees them, meanwhile
/// functions can be named. It took 12 ms of the 80 ms from Ctrl-C to the exit of a recorder (`strace -f -T -e close`).
fn close_in_background(files: impl Send + 'static) {
    // If there is no thread, they are dropped here.
    let _ = Builder::new().spawn(move || drop(files));
}

pub(super) fn seconds_since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
