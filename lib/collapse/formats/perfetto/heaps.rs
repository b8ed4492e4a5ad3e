//! Heap profiles of heapprofd: dumps of heaps, each of which may be in several packets.

use std::collections::BTreeMap;

use super::interned::{Interned, Symbols};
use super::threads::Threads;
use crate::Error;
use crate::collapse::document_helpers::{add_partial_stack, thread_name};
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::profile::{FrameId, Weight};
use crate::protobuf::{Fields, read_messages, read_numbers};

/// A process and the name of its heap.
type Heap = (u64, Vec<u8>);

/// The heap profiles of a trace.
#[derive(Default)]
pub(super) struct Heaps {
    /// The last complete dump of each heap.
    dumps: BTreeMap<Heap, Vec<Sample>>,
    /// The dumps that are continued in the next packet of a sequence.
    open: BTreeMap<u64, BTreeMap<Heap, Vec<Sample>>>,
}

/// A stack and the values of its allocations.
struct Sample {
    frames: Vec<FrameId>,
    has_root: bool,
    allocated: u64,
    freed: u64,
    /// The bytes in use when the heap was largest, which replace the others.
    peak: u64,
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
        let open = self.open.entry(sequence).or_default();
        for dump in read_messages(message, 5) {
            let pid = read_numbers(dump, [1]).map_or(0, |[pid]| pid);
            let heap = read_messages(dump, 11).next().unwrap_or_default().to_vec();
            let samples = open.entry((pid, heap)).or_default();
            for sample in read_messages(dump, 2) {
                let numbers = read_numbers(sample, [1, 2, 3, 8, 5, 6]);
                let Some([stack, allocated, freed, peak, count, freed_count]) = numbers else { continue };
                let (frames, has_root) = interned.stack(stack, symbols, options, sink);
                let frames = frames.to_vec();
                samples.push(Sample { frames, has_root, allocated, freed, peak, count, freed_count });
            }
        }
        let is_continued =
            Fields::new(message).flatten().any(|(number, value)| number == 6 && value.number() == Some(1));
        if !is_continued {
            self.dumps.append(&mut std::mem::take(open));
        }
    }

    /// Adds the stacks of the last dump of each heap.
    pub(super) fn add_stacks(
        mut self,
        value: &str,
        threads: &Threads<'_>,
        options: &Options,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        for (_, mut open) in std::mem::take(&mut self.open) {
            self.dumps.append(&mut open);
        }
        for ((pid, _), samples) in &self.dumps {
            let name = thread_name(threads.process(*pid), pid.to_string().as_bytes(), b"", options);
            let name = name.strip_suffix(b"/").unwrap_or(&name).to_vec();
            let root = sink.intern(&name);
            for sample in samples {
                let weight = match value {
                    "unreleased-bytes" => sample.allocated.saturating_sub(sample.freed).max(sample.peak),
                    "allocated-bytes" => sample.allocated,
                    "unreleased-count" => sample.count.saturating_sub(sample.freed_count),
                    "allocated-count" => sample.count,
                    _ => 0,
                };
                add_partial_stack(Some(root), sample.has_root, &sample.frames, Weight::new(weight), sink)?;
            }
        }
        Ok(())
    }
}
