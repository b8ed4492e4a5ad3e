//! The last part of a recording, in slices of time: the oldest slice is forgotten when it is too old.
//!
//! All slices share the stacks and locations of the recording. A block that lasts from one slice into another is divided between
//! them once it is over.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{ChargedTime, Counts, Recording, SampleRecord, Tally};
use crate::perf::objects::object::ObjectId;

/// The slices of a recording before the present one, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// Slices that ended this many nanoseconds ago are forgotten.
    length: u64,
    slices: VecDeque<Slice>,
    /// The start of the present slice.
    present: u64,
    /// The number of stacks from which on those that are not in use are forgotten.
    max_stacks: usize,
}

/// The part of the recording in a span of time.
#[derive(Clone, Debug, Default)]
struct Slice {
    start: u64,
    end: u64,
    /// The sums of the stacks that were recorded, by ID.
    tallies: FxHashMap<u32, Tally>,
    sample_records: Vec<SampleRecord>,
    counts: Counts,
    lost: Vec<u64>,
    unwind_gaps: FxHashMap<ObjectId, u64>,
}

/// At least this many stacks are kept.
const MIN_STACKS: usize = 16_384;

impl History {
    /// Creates the history of a recording that begins at `start` and keeps `length` nanoseconds.
    pub(super) fn new(length: u64, start: u64) -> Self {
        Self { length, slices: VecDeque::new(), present: start, max_stacks: MIN_STACKS }
    }

    /// Returns the start of the oldest slice.
    fn start(&self) -> u64 {
        self.slices.front().map_or(self.present, |slice| slice.start)
    }

    /// Iterates over the IDs of all stacks in use.
    fn stacks_mut(&mut self) -> impl Iterator<Item = (&mut FxHashMap<u32, Tally>, &mut Vec<SampleRecord>)> {
        self.slices.iter_mut().map(|slice| (&mut slice.tallies, &mut slice.sample_records))
    }
}

impl Recording {
    /// Keeps only the last `length` nanoseconds, from `start` on.
    pub fn keep_last(&mut self, length: u64, start: u64) {
        self.history = Some(History::new(length, start));
    }

    /// Returns the start of the oldest slice that is kept.
    pub fn start_of_slices(&self) -> u64 {
        self.history.as_ref().map_or(0, History::start)
    }

    /// Ends the present slice at `time`, and forgets those that are too old.
    pub fn end_slice(&mut self, time: u64) {
        self.finish();
        let Some(mut history) = self.history.take() else { return };
        let mut tallies = FxHashMap::default();
        for (stack, tally) in self.tallies.drain(..).enumerate() {
            if tally.samples > 0 || tally.period > 0 {
                tallies.insert(stack as u32, tally);
            }
        }
        history.slices.push_back(Slice {
            start: history.present,
            end: time,
            tallies,
            sample_records: std::mem::take(&mut self.sample_records),
            counts: std::mem::take(&mut self.counts),
            lost: std::mem::take(&mut self.lost),
            unwind_gaps: std::mem::take(&mut self.unwind_gaps),
        });
        history.present = time;
        let oldest = time.saturating_sub(history.length);
        while history.slices.front().is_some_and(|slice| slice.end <= oldest) {
            history.slices.pop_front();
        }
        self.history = Some(history);
    }

    /// True if most stacks are unused, and should be forgotten. Only between slices.
    pub fn has_too_many_stacks(&self) -> bool {
        self.history.as_ref().is_some_and(|history| self.stacks.len() > history.max_stacks)
    }

    /// Renumbers the stacks of the slices.
    pub(super) fn renumber_history(&mut self, mut renumber: impl FnMut(u32) -> u32) {
        let Some(history) = &mut self.history else { return };
        let mut used = 0;
        for (tallies, records) in history.stacks_mut() {
            *tallies = tallies.drain().map(|(stack, tally)| (renumber(stack), tally)).collect();
            records.iter_mut().for_each(|record| record.stack = renumber(record.stack));
            used += tallies.len() + records.len();
        }
        history.max_stacks = MIN_STACKS.max(2 * used);
    }

    /// Charges the part of a time that was in slices that have ended. Returns the nanoseconds of the present slice. What
    /// was before the oldest slice is left out.
    pub(super) fn charge_past_slices(&mut self, stack: u32, time: ChargedTime) -> u64 {
        let (Some(history), Some(start)) = (&mut self.history, time.start) else { return time.nanoseconds };
        let end = start.saturating_add(time.nanoseconds);
        for slice in history.slices.iter_mut().rev() {
            if slice.end <= start {
                break;
            }
            let nanoseconds = slice.end.min(end).saturating_sub(slice.start.max(start));
            if nanoseconds > 0 {
                slice.tallies.entry(stack).or_default().period += u128::from(nanoseconds);
            }
        }
        end.saturating_sub(start.max(history.present))
    }

    /// Returns a copy of what was recorded in all slices, whose stacks have the same IDs.
    pub fn copy_slices(&mut self) -> Self {
        self.finish();
        Self {
            options: self.options.clone(),
            processes: Default::default(),
            last_exits: Default::default(),
            objects: self.objects.copy_for_symbols(self.objects.script_frames.clone()),
            comms: self.comms.clone(),
            locations: self.locations.clone(),
            stacks: self.stacks.clone(),
            unwinder: Default::default(),
            tallies: self.tallies.clone(),
            sample_records: self.sample_records.clone(),
            counts: self.counts,
            lost: self.lost.clone(),
            pending: Default::default(),
            scratch: Vec::new(),
            location_cache: Default::default(),
            sparse_objects: Default::default(),
            unwind_gaps: self.unwind_gaps.clone(),
            runtimes: self.find_runtimes(),
            removed_objects: Default::default(),
            interpreters: self.interpreters.to_report(),
            cgroups: Default::default(),
            thread_contexts: self.thread_contexts.to_report(),
            history: self.history.clone(),
        }
    }

    /// Adds all slices to the present one, and keeps no more slices. Then all stacks are known, and those that need others are
    /// completed.
    pub fn merge_slices(&mut self) {
        if let Some(history) = self.history.take() {
            self.add_slices(history);
        }
        self.complete_sleepers();
    }

    fn add_slices(&mut self, history: History) {
        let mut records = Vec::new();
        for slice in history.slices {
            for (stack, tally) in slice.tallies {
                self.add_to_tally(stack, 0, 0);
                let sum = &mut self.tallies[stack as usize];
                sum.samples += tally.samples;
                sum.period += tally.period;
            }
            records.extend(slice.sample_records);
            self.counts += slice.counts;
            self.lost.resize(self.lost.len().max(slice.lost.len()), 0);
            self.lost.iter_mut().zip(slice.lost).for_each(|(sum, lost)| *sum += lost);
            for (object, gaps) in slice.unwind_gaps {
                *self.unwind_gaps.entry(object).or_default() += gaps;
            }
        }
        records.append(&mut self.sample_records);
        self.sample_records = records;
        self.counts.lost = self.lost.iter().sum();
    }
}
