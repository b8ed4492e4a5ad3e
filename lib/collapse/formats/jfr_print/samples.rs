//! The events of a printed recording, added up by type, thread and stack until the type that counts is known.

use rustc_hash::FxHashMap;

use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::document_helpers::{thread_name, uses_input_weights};
use crate::collapse::filter::args::EventChoice;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::formats::java;
use crate::collapse::formats::jfr::{EVENTS, describe_untimed, printed_weight, select_types};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::timed_samples::{TimedSample, TimedSamples};
use crate::markers;
use crate::profile::{FrameId, Weight};

/// Number of frames after which `jfr print` ends a stack unless it is told to print more.
const PRINTED_FRAMES: usize = 5;

/// An event as it was printed.
#[derive(Default)]
pub(in crate::collapse::formats) struct PrintedEvent {
    pub(in crate::collapse::formats) name: Vec<u8>,
    /// The start in nanoseconds, if one is printed.
    pub(in crate::collapse::formats) time: Option<u64>,
    pub(in crate::collapse::formats) thread: Vec<u8>,
    pub(in crate::collapse::formats) tid: Option<u64>,
    pub(in crate::collapse::formats) weight: Option<Weight>,
    /// True if events of this type have a stack, if only an empty one.
    pub(in crate::collapse::formats) has_stack_field: bool,
    /// True if that field has a value, which may be a stack whose frames are all left out.
    pub(in crate::collapse::formats) has_stack: bool,
    pub(in crate::collapse::formats) is_truncated: bool,
    /// The frames of the stack, the leaf first.
    pub(in crate::collapse::formats) frames: Vec<FrameId>,
    pub(in crate::collapse::formats) labels: Vec<(Vec<u8>, Vec<u8>)>,
}

impl PrintedEvent {
    pub(in crate::collapse::formats) fn new(name: &[u8]) -> Self {
        Self { name: name.to_vec(), ..Self::default() }
    }
}

/// The precision of printed weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collapse::formats) enum Printed {
    Exact,
    Rounded,
}

/// Properties by which events are added up: indices of their type, thread and stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    kind: usize,
    thread: usize,
    stack: usize,
    labels: usize,
    time: Option<u64>,
    has_weight: bool,
}

/// A list of distinct values.
struct Table<T> {
    list: Vec<T>,
    indices: FxHashMap<T, usize>,
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    fn new() -> Self {
        Self { list: Vec::new(), indices: FxHashMap::default() }
    }

    /// Returns the index of a value, which is added if it is new.
    fn intern(&mut self, value: T) -> usize {
        if let Some(index) = self.indices.get(&value) {
            return *index;
        }
        self.list.push(value.clone());
        self.indices.insert(value, self.list.len() - 1);
        self.list.len() - 1
    }
}

/// The sums of all events.
pub(in crate::collapse::formats) struct Samples<'a> {
    options: &'a Options,
    timed: TimedSamples,
    keeps_times: bool,
    kinds: Table<Vec<u8>>,
    threads: Table<(Vec<u8>, Option<u64>)>,
    /// Stacks, leaf first, and true if they are truncated.
    stacks: Table<(Vec<FrameId>, bool)>,
    labels: Table<Vec<(Vec<u8>, Vec<u8>)>>,
    keys: Table<Key>,
    /// The number and the weight of the events with each key.
    sums: Vec<(u64, Weight)>,
    /// True for each type if its events have a weight.
    has_weight: Vec<bool>,
    /// True for each type if an event of it has a stack; of one that is named, if it has the field.
    has_stacks: Vec<bool>,
    is_rounded: bool,
}

impl<'a> Samples<'a> {
    pub(in crate::collapse::formats) fn new(options: &'a Options, sink: &Sink) -> Self {
        let timed = TimedSamples::new(options);
        Self {
            options,
            keeps_times: !timed.ignores_times() || sink.needs_times() || sink.is_in_order(),
            timed,
            kinds: Table::new(),
            threads: Table::new(),
            stacks: Table::new(),
            labels: Table::new(),
            keys: Table::new(),
            sums: Vec::new(),
            has_weight: Vec::new(),
            has_stacks: Vec::new(),
            is_rounded: false,
        }
    }

    /// Adds an event.
    pub(in crate::collapse::formats) fn add(&mut self, event: PrintedEvent, printed: Printed) -> Result<(), Error> {
        let weight = match (printed_weight(&event.name).0, event.weight) {
            (None, _) => Weight::ONE,
            // In a type without durations.
            (Some("duration"), None) => Weight::ONE,
            (Some(_), weight) => weight.unwrap_or_default(),
        };
        let has_weight = event.weight.is_some();
        self.is_rounded |= printed == Printed::Rounded && event.weight.is_some();
        let kind = self.kinds.intern(event.name);
        self.has_weight.resize(self.kinds.list.len(), false);
        self.has_weight[kind] |= event.weight.is_some();
        self.has_stacks.resize(self.kinds.list.len(), false);
        let is_named = matches!(self.options.event, EventChoice::Named(_));
        self.has_stacks[kind] |= if is_named { event.has_stack_field } else { event.has_stack };
        let key = Key {
            kind,
            thread: self.threads.intern((event.thread, event.tid)),
            stack: self.stacks.intern((event.frames, event.is_truncated)),
            labels: self.labels.intern(event.labels),
            time: event.time.filter(|_| self.keeps_times),
            has_weight,
        };
        let index = self.keys.intern(key);
        if index == self.sums.len() {
            self.sums.push((0, Weight::ZERO));
        }
        let (count, sum) = &mut self.sums[index];
        *count += 1;
        *sum = sum.checked_add(weight).ok_or(Error::Overflow)?;
        Ok(())
    }

    /// Takes stacks for truncated that have as many frames as are printed by default, if none has more: JSON does not tell.
    pub(in crate::collapse::formats) fn mark_cut_stacks(&mut self) {
        let depth = |(frames, _): &(Vec<FrameId>, bool)| frames.len();
        if self.stacks.list.iter().map(depth).max() == Some(PRINTED_FRAMES) {
            for (frames, is_truncated) in &mut self.stacks.list {
                *is_truncated |= frames.len() == PRINTED_FRAMES;
            }
        }
    }

    /// Adds the events that count to the sink. Those of types without stacks are no samples.
    pub(in crate::collapse::formats) fn finish(
        mut self,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let mut counts: FxHashMap<Vec<u8>, u64> = FxHashMap::default();
        for (key, (count, _)) in self.keys.list.iter().zip(&self.sums).filter(|(key, _)| self.has_stacks[key.kind]) {
            *counts.entry(self.kinds.list[key.kind].clone()).or_default() += count;
        }
        if let Some(names) = select_types(&document.options.event, &counts) {
            document.events = EventFilter::for_names(names);
        }
        let (mut unit, mut truncated, mut without_weight) = (None, 0, 0);
        let keys = std::mem::take(&mut self.keys.list);
        let with_stack = keys.iter().filter(|key| !self.stacks.list[key.stack].0.is_empty());
        sink.note_time(with_stack.filter_map(|key| key.time).min());
        for (key, (count, weight)) in keys.iter().zip(std::mem::take(&mut self.sums)) {
            if self.has_stacks[key.kind] && document.events.accept_many(&self.kinds.list[key.kind], count) {
                if self.has_weight[key.kind] && !key.has_weight && uses_input_weights(self.options) {
                    without_weight += count;
                    continue;
                }
                self.check_unit(key, &mut unit, document)?;
                truncated += u64::from(self.stacks.list[key.stack].1);
                // In a type whose events have no size here.
                let weight = if self.has_weight[key.kind] { weight } else { Weight::new(count) };
                self.add_sum(key, count, weight, document, sink)?;
            }
        }
        let is_rounded = self.is_rounded && matches!(unit, Some("bytes" | "nanoseconds"));
        document.report_problems(without_weight, "event", "left out: without the duration or size that others have")?;
        if is_rounded {
            document.warn("sizes and durations are rounded; give the recording, or the output of `jfr print --json --stack-depth 2048`");
        }
        if truncated > 0 {
            document.warn("stacks are cut; give the recording, or the output of `jfr print --stack-depth 2048`");
        }
        Ok(())
    }

    /// Sets the unit of the weights.
    ///
    /// # Errors
    /// [`Error::Invalid`] if events were counted whose weights have another unit.
    fn check_unit(
        &self,
        key: &Key,
        known: &mut Option<&'static str>,
        document: &mut Document<'_>,
    ) -> Result<(), Error> {
        let unit = match printed_weight(&self.kinds.list[key.kind]) {
            _ if !uses_input_weights(self.options) => "samples",
            (Some(_), _) if !self.has_weight[key.kind] => EVENTS,
            (_, unit) => unit,
        };
        match known.replace(unit) {
            Some(other) if other != unit => Err(Error::Invalid(format!(
                "{}: weights of the events are {other} and {unit}, which cannot be added up; name one of them with \
                 --event, or use --weight samples",
                document.name()
            ))),
            Some(_) => Ok(()),
            None => {
                document.set_unit(unit);
                if unit == EVENTS {
                    document.warn(&describe_untimed(&self.kinds.list[key.kind]));
                }
                Ok(())
            }
        }
    }

    fn add_sum(
        &mut self,
        key: &Key,
        count: u64,
        weight: Weight,
        document: &mut Document<'_>,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let (thread, tid) = &self.threads.list[key.thread];
        let tid = tid.and_then(|tid| u32::try_from(tid).ok());
        let info = SampleInfo { time: key.time, comm: thread, tid, ..SampleInfo::default() };
        if !self.timed.accept(&info, sink)? {
            return Ok(());
        }
        let weight = if uses_input_weights(self.options) { weight } else { Weight::new(count) };
        document.events.add_weights(count, weight);
        let mut roots: Vec<FrameId> = Vec::new();
        for label in &self.options.labels {
            let values = self.labels.list[key.labels].iter().filter(|(name, value)| name == label && !value.is_empty());
            roots.extend(values.map(|(name, value)| sink.intern(&[&name[..], b"=", value].concat())));
        }
        let name = java::pool_name(thread, self.options);
        let name = if name.is_empty() { markers::UNKNOWN } else { name };
        let id = tid.map_or_else(String::new, |tid| tid.to_string());
        roots.push(sink.intern(&thread_name(name, b"", id.as_bytes(), self.options)));
        let (frames, is_truncated) = &self.stacks.list[key.stack];
        let frames: Vec<FrameId> = frames.iter().rev().copied().collect();
        let sample = TimedSample { info, roots: &roots, is_truncated: *is_truncated, frames: &frames, weight };
        self.timed.add(&sample, sink)
    }
}
