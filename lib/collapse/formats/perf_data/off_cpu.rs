//! The time that threads are off their CPU, from samples of `sched:sched_switch`.

use rustc_hash::FxHashMap;

use crate::Error;
use crate::collapse::document::Document;
use crate::perf::event::{Fields, Stamp};
use crate::profile::{SampleWeight, Weight};

/// The name of the event of a switch.
pub(in crate::collapse::formats) const SWITCH_EVENT: &[u8] = b"sched:sched_switch";

/// Bits of a thread's state: those that mean anything but runnable, and those of a thread that exits.
const NOT_RUNNABLE: u64 = 0xff;
const EXITING: u64 = 0x30;

/// A context switch (`struct trace_event_raw_sched_switch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switch {
    prev_pid: u32,
    prev_state: u64,
    next_pid: u32,
}

/// A wait of a thread, from its switch-out to its switch-in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wait {
    pub(super) nanoseconds: u64,
    /// True if the thread could have run on.
    pub(super) is_runnable: bool,
}

/// Returns the weight of a wait: its microseconds, or 1 if waits are counted. That of a wait of no length is zero.
pub(in crate::collapse::formats) fn wait_weight(nanoseconds: u64, weight: SampleWeight) -> Weight {
    match weight {
        SampleWeight::Samples => Weight::new(u64::from(nanoseconds > 0)),
        SampleWeight::Period | SampleWeight::Microseconds => Weight::from_millionths(u128::from(nanoseconds) * 1000),
    }
}

/// The waits of all threads.
#[derive(Debug, Default)]
pub(super) struct OffCpu {
    /// The time of the switch-out and the index of its wait, by thread.
    switched_out: FxHashMap<u32, (u64, usize)>,
    /// The waits, in the order of the kept samples.
    pub(super) waits: Vec<Wait>,
    /// The time of the last switch.
    last_time: u64,
    /// Number of waits whose end was recorded.
    ended: u64,
    /// Number of waits whose end was not recorded.
    unended: u64,
    /// Number of switches whose fields are not those of the thread that was sampled.
    malformed: u64,
}

impl Switch {
    /// Parses the fields of the tracepoint, which begin with eight bytes that all tracepoints have.
    fn parse(raw: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(raw);
        let (_common, _prev_comm) = (fields.take(8)?, fields.take(16)?);
        let (prev_pid, _prev_priority, prev_state) = (fields.u32()?, fields.u32()?, fields.u64()?);
        let _next_comm = fields.take(16)?;
        Some(Self { prev_pid, prev_state, next_pid: fields.u32()? })
    }

    /// Returns true if a sample with this stamp can be the switch. The tracepoint is hit by the thread that is switched
    /// out. At its last switch, a thread that exits has no ID any more.
    fn is_of(&self, stamp: Stamp) -> bool {
        stamp.tid == u32::MAX || self.prev_pid == stamp.tid
    }
}

/// Returns true if the fields of a tracepoint without a name are those of a switch. The file of a recording ends with the
/// names, so that they are missing if it is cut short.
pub(super) fn is_switch(stamp: Stamp, raw: &[u8]) -> bool {
    // perf pads the fields to a multiple of eight bytes, less the four of their length.
    const LENGTHS: std::ops::RangeInclusive<usize> = 64..=68;
    LENGTHS.contains(&raw.len()) && Switch::parse(raw).is_some_and(|switch| switch.is_of(stamp))
}

impl OffCpu {
    /// Adds a switch: ends the wait of the thread that is switched in, and begins that of the thread that is switched
    /// out, if the options select it. Returns true if the sample of the switch is to be kept.
    pub(super) fn add(&mut self, stamp: Stamp, raw: &[u8], is_selected: bool) -> bool {
        let Some(switch) = Switch::parse(raw).filter(|switch| switch.is_of(stamp)) else {
            self.malformed += 1;
            return false;
        };
        self.last_time = self.last_time.max(stamp.time);
        if let Some((start, index)) = self.switched_out.remove(&switch.next_pid) {
            self.ended += 1;
            self.waits[index].nanoseconds = stamp.time.saturating_sub(start);
        }
        // A thread that is switched out has run: the end of its wait was not recorded.
        self.unended += u64::from(self.switched_out.remove(&switch.prev_pid).is_some());
        // Thread 0 is the idle thread.
        if !is_selected || switch.prev_pid == 0 || stamp.tid == u32::MAX || switch.prev_state & EXITING != 0 {
            return false;
        }
        let is_runnable = switch.prev_state & NOT_RUNNABLE == 0;
        self.switched_out.insert(switch.prev_pid, (stamp.time, self.waits.len()));
        self.waits.push(Wait { nanoseconds: 0, is_runnable });
        true
    }

    /// Adds the threads that are still off their CPU, with the time until the last switch; unless more than half of all
    /// ends were not recorded, so that they may have run.
    pub(super) fn finish(&mut self, document: &mut Document<'_>) -> Result<(), Error> {
        if self.unended > 0 {
            let (unended, all) = (self.unended, self.ended.saturating_add(self.unended));
            document.warn(&format!(
                "left out {unended} of {all} waits, whose end was not recorded; record all CPUs (perf record -a)"
            ));
        }
        if self.unended <= self.ended {
            for (start, index) in self.switched_out.values() {
                self.waits[*index].nanoseconds = self.last_time.saturating_sub(*start);
            }
        }
        document.report_problems(self.malformed, "switch", "left out: its fields are not those of its thread")
    }
}

#[cfg(test)]
mod tests {
    use super::{OffCpu, Switch};
    use crate::perf::event::Stamp;

    fn raw(prev_pid: u32, prev_state: u64, next_pid: u32) -> Vec<u8> {
        let (prev, next) = (prev_pid.to_le_bytes(), next_pid.to_le_bytes());
        [&[0; 24][..], &prev, &[0; 4], &prev_state.to_le_bytes(), &[0; 16], &next, &[0; 4]].concat()
    }

    #[test]
    fn pairs_switches_of_each_thread() {
        let mut threads = OffCpu::default();
        let switches = [(10, 7, 1, 8), (15, 8, 0x100, 0), (30, 0, 0, 7), (40, 7, 0x10, 8)];
        let begin = switches.map(|(time, prev, state, next)| {
            threads.add(Stamp { tid: prev, time, ..Stamp::default() }, &raw(prev, state, next), true)
        });
        assert_eq!(begin, [true, true, false, false], "no wait of the idle thread, nor of one that exits");
        let waits: Vec<_> = threads.waits.iter().map(|wait| (wait.nanoseconds, wait.is_runnable)).collect();
        assert_eq!((waits, threads.ended, threads.unended), (vec![(20, false), (25, true)], 2, 0));
        // The last switch of a thread ends the wait of the one that joins it.
        assert!(threads.add(Stamp { tid: 5, time: 50, ..Stamp::default() }, &raw(5, 1, 6), true));
        assert!(!threads.add(Stamp { tid: u32::MAX, time: 80, ..Stamp::default() }, &raw(6, 0x10, 5), true));
        assert_eq!((threads.waits[2].nanoseconds, threads.malformed), (30, 0));
        // A wait that is not selected is neither kept nor counted, but its thread ends the wait of another.
        assert!(!threads.add(Stamp { tid: 5, time: 90, ..Stamp::default() }, &raw(5, 1, 6), false));
        assert!(!threads.add(Stamp { tid: 5, time: 95, ..Stamp::default() }, &raw(5, 1, 7), false));
        assert_eq!((threads.waits.len(), threads.unended), (3, 0));
        // That thread 8 ran between 96 and 97 was not recorded; its second wait is not selected.
        assert!(threads.add(Stamp { tid: 8, time: 96, ..Stamp::default() }, &raw(8, 1, 5), true));
        assert!(!threads.add(Stamp { tid: 8, time: 97, ..Stamp::default() }, &raw(8, 1, 5), false));
        assert!(threads.unended == 1 && !threads.switched_out.contains_key(&8));
        assert!(Switch::parse(&raw(1, 0, 2)[..58]).is_none());
        assert!(!threads.add(Stamp { tid: 3, ..Stamp::default() }, &raw(1, 0, 2), true) && threads.malformed == 1);
    }
}
