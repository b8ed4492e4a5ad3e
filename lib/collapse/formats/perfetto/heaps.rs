//! Heap profiles of heapprofd: dumps of heaps, each of which may be in several packets.
//!
//! The values of a stack count from the start of the profile. A dump leaves out stacks whose memory was freed before the
//! dump before it, so the last values of each stack count, from whichever dump they are.

use std::collections::BTreeMap;

use super::interned::{Interned, Symbols};
use super::threads::{Threads, to_id};
use super::values::{Selected, heap_name};
use crate::Error;
use crate::collapse::document_helpers::{add_partial_stack, thread_name};
use crate::collapse::filter::sample::SampleInfo;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::slice_filter::SliceFilter;
use crate::profile::{FrameId, Weight};
use crate::protobuf::{read_messages, read_numbers};

/// A process and the name of its heap.
type Heap = (u64, Vec<u8>);

/// A sequence and the key of a stack in it.
type StackKey = (u64, u64);

/// The heap profiles of a trace.
#[derive(Default)]
pub(super) struct Heaps {
    /// The last values of each stack.
    heaps: BTreeMap<Heap, BTreeMap<StackKey, Sample>>,
}

/// A stack and the values of its allocations.
struct Sample {
    frames: Vec<FrameId>,
    has_root: bool,
    allocated: u64,
    freed: u64,
    count: u64,
    freed_count: u64,
}

impl Heaps {
    /// Adds a packet.
    pub(super) fn add<'a>(
        &mut self,
        sequence: u64,
        message: &'a [u8],
        (interned, symbols): (&mut Interned<'a>, &Symbols<'a>),
        options: &Options,
        sink: &mut Sink,
    ) {
        interned.add_heap_tables(message);
        for dump in read_messages(message, 5) {
            let pid = read_numbers(dump, [1]).map_or(0, |[pid]| pid);
            let heap = heap_name(dump).to_vec();
            let samples = self.heaps.entry((pid, heap)).or_default();
            for sample in read_messages(dump, 2) {
                let numbers = read_numbers(sample, [1, 2, 3, 5, 6, 8, 9]);
                let Some([stack, allocated, freed, count, freed_count, peak, peak_count]) = numbers else { continue };
                let (frames, has_root) = interned.stack(stack, symbols, options, sink);
                // If it says what was in use when the heap was largest, it says nothing else.
                let (allocated, count) = (allocated.max(peak), count.max(peak_count));
                let sample = Sample { frames: frames.to_vec(), has_root, allocated, freed, count, freed_count };
                samples.insert((sequence, stack), sample);
            }
        }
    }

    /// Returns the first of some values that is not 0 everywhere.
    pub(super) fn find_value(&self, values: Vec<Selected>) -> Option<Selected> {
        let has_weight = |selected: &Selected| {
            let heaps = self.heaps.iter().filter(|((_, heap), _)| selected.has_heap(heap));
            heaps.flat_map(|(_, samples)| samples.values()).any(|sample| sample.value(selected.value) > 0)
        };
        values.into_iter().find(has_weight)
    }

    /// Adds the stacks of the selected heaps.
    pub(super) fn add_stacks(
        &self,
        selected: &Selected,
        threads: &Threads<'_>,
        options: &Options,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        if self.heaps.is_empty() {
            return Ok(());
        }
        let filter = SliceFilter::for_sums(options)?;
        for ((pid, _), samples) in self.heaps.iter().filter(|((_, heap), _)| selected.has_heap(heap)) {
            let comm = threads.process(*pid);
            if !filter.accepts(&SampleInfo { comm, pid: to_id(*pid), ..SampleInfo::default() }) {
                sink.note_left_out();
                continue;
            }
            let name = thread_name(threads.process(*pid), pid.to_string().as_bytes(), b"", options);
            let name = name.strip_suffix(b"/").unwrap_or(&name).to_vec();
            let root = sink.intern(&name);
            for sample in samples.values() {
                let weight = Weight::new(sample.value(selected.value));
                add_partial_stack(Some(root), sample.has_root, &sample.frames, weight, sink)?;
            }
        }
        Ok(())
    }
}

impl Sample {
    /// Returns one of the values of heaps by its name.
    fn value(&self, name: &str) -> u64 {
        match name {
            "unreleased-bytes" => self.allocated.saturating_sub(self.freed),
            "allocated-bytes" => self.allocated,
            "unreleased-count" => self.count.saturating_sub(self.freed_count),
            "allocated-count" => self.count,
            _ => 0,
        }
    }
}
