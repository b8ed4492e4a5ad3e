//! Keeps and writes the last part of a recording.

use std::os::unix::net::UnixStream;
use std::time::{Duration, SystemTime};

use super::RecordingSession;
use super::parts::seconds_since_1970;
use crate::Error;
use crate::perf::event::Stamp;
use crate::perf::recording::Recording;
use crate::profile::FrameId;
use crate::record::clock;
use crate::record::flight_recorder::{FlightRecorder, RingOptions};
use crate::record::observer::Observer;
use crate::record::off_cpu::switch_pairing::LongBlock;
use crate::record::usage::{Usage, UsageMeter};

impl RecordingSession {
    /// Keeps only the last part of the recording, from now on.
    pub(in crate::record) fn keep_last_part(
        &mut self,
        options: RingOptions,
        requests: UnixStream,
    ) -> Result<(), Error> {
        let Some(meter) = &self.usage else { return Ok(()) };
        let (now, mark) = (clock::now(), meter.mark(&self.counters, self.reader.sampler.as_ref()));
        let length = u64::try_from(options.length.as_nanos()).unwrap_or(u64::MAX);
        self.recording.keep_last(length, now);
        let flight_recorder = FlightRecorder::begin(options, requests, now, mark);
        if let Some(switches) = &mut self.reader.switches {
            switches.keep_slices();
            if let Some(limit) = flight_recorder.block_limit() {
                // The beginning of a longer block leaves the ring.
                switches.watch_blocks(limit, length / 10 * 9);
            }
        }
        self.flight_recorder = Some(flight_recorder);
        Ok(())
    }

    /// Begins a new slice if it is time to, and gives the last slices to the observer if there is a reason to write them.
    /// Returns true if that ends the recording.
    pub(super) fn write_slices(&mut self, observer: &mut dyn Observer) -> Result<bool, Error> {
        let Some(mut flight_recorder) = self.flight_recorder.take() else { return Ok(false) };
        observer.on_wait()?;
        self.note_long_block(&mut flight_recorder);
        flight_recorder.poll()?;
        let reason = flight_recorder.take_reason();
        if reason.is_some() || flight_recorder.is_slice_over() {
            self.end_slice(&mut flight_recorder);
        }
        let goes_on = flight_recorder.goes_on();
        if let (Some(reason), true) = (&reason, goes_on) {
            let (usage, elapsed) = self.measure_slices(&flight_recorder);
            let mut recording = self.copy_slices();
            recording.merge_slices();
            let mut part = self.describe(recording, usage, elapsed);
            part.totals =
                self.reader.switches.as_ref().map(|switches| switches.totals.clone().with_sums_of(&part.recording));
            part.file_time = seconds_since_1970(SystemTime::now());
            part.notes.push(describe_part(elapsed, reason));
            observer.on_part(part)?;
        }
        self.flight_recorder = Some(flight_recorder);
        Ok(reason.is_some() && !goes_on)
    }

    fn note_long_block(&mut self, flight_recorder: &mut FlightRecorder) {
        let Some(switches) = &mut self.reader.switches else { return };
        let blocks = switches.take_long_blocks(clock::now());
        if let Some(block) = flight_recorder.select_block(&blocks, &self.recording) {
            flight_recorder.note(self.describe_block(block));
        }
    }

    /// Returns what was used in the slices that are kept, and how long they are.
    fn measure_slices(&self, flight_recorder: &FlightRecorder) -> (Usage, Duration) {
        let elapsed = Duration::from_nanos(flight_recorder.newest_start() - flight_recorder.oldest_start());
        let Some(meter) = &self.usage else { return (Usage::default(), elapsed) };
        let now = meter.mark(&self.counters, self.reader.sampler.as_ref());
        let mut usage = UsageMeter::between(flight_recorder.oldest_mark(), now, &self.counters);
        usage.cpu_time = usage.cpu_time.filter(|_| meter.can_be_divided());
        (usage, elapsed)
    }

    fn copy_slices(&mut self) -> Recording {
        match &self.reader.switches {
            Some(switches) => switches.copy_slices(&mut self.recording),
            None => self.recording.copy_slices(),
        }
    }

    fn end_slice(&mut self, flight_recorder: &mut FlightRecorder) {
        let now = match &mut self.reader.switches {
            Some(switches) => switches.end_slice(&mut self.recording),
            None => clock::now(),
        };
        self.add_losses();
        self.recording.end_slice(now);
        if let Some(meter) = &self.usage {
            let mark = meter.mark(&self.counters, self.reader.sampler.as_ref());
            flight_recorder.start_slice(now, mark, self.recording.start_of_slices());
        }
        if self.recording.has_too_many_stacks() {
            let switches = &mut self.reader.switches;
            self.recording.forget_unused_stacks(|renumbering| {
                if let Some(switches) = switches {
                    switches.renumber_stacks(renumbering);
                }
            });
        }
    }

    /// Returns what was used in the slices that are kept and how long they are, and if nothing is to be written, the reason.
    /// The recording ended at `end`.
    pub(super) fn finish_slices(&mut self, end: u64) -> (Option<(Usage, Duration)>, Option<String>) {
        let Some(mut flight_recorder) = self.flight_recorder.take() else { return (None, None) };
        // What ends the recording is often what the condition is about.
        self.note_long_block(&mut flight_recorder);
        flight_recorder.poll_last();
        let (usage, _) = self.measure_slices(&flight_recorder);
        let elapsed = Duration::from_nanos(end.saturating_sub(flight_recorder.oldest_start()));
        match flight_recorder.end() {
            Ok(reason) => {
                self.counters.notes.extend(reason.map(|reason| describe_part(elapsed, &reason)));
                (Some((usage, elapsed)), None)
            }
            Err(missed) => (Some((usage, elapsed)), Some(missed)),
        }
    }

    fn describe_block(&mut self, LongBlock { tid, time, nanoseconds, .. }: LongBlock) -> String {
        let name = self.recording.thread_comm(Stamp { tid, time, ..Stamp::default() });
        let name =
            String::from_utf8_lossy(self.recording.comms.name(FrameId::from_index(name.index() as u32))).into_owned();
        format!("{name} (thread {tid}) was blocked for {:.3} s", nanoseconds as f64 / 1e9)
    }
}

fn describe_part(elapsed: Duration, reason: &str) -> String {
    format!("the last {:.1} s: {reason}", elapsed.as_secs_f64())
}
