//! The tables of a generation: strings, stacks and samples of CPU time.

use rustc_hash::FxHashMap;

use super::batches::Table;
use crate::collapse::document_helpers::function_with_source;
use crate::collapse::formats::little_endian::Bytes;
use crate::collapse::options::Options;
use crate::collapse::sink::Sink;
use crate::collapse::stack::intern_frame;
use crate::profile::FrameId;

/// Types of events within tables.
const STACK: u8 = 3;
const STRING: u8 = 5;
const CPU_SAMPLE: u8 = 7;

/// Maximum number of frames of a stack. The runtime writes up to 128.
const MAX_FRAMES: u64 = 1024;

/// The tables of a generation.
pub(super) struct Tables<'a> {
    options: &'a Options,
    strings: FxHashMap<u64, Vec<u8>>,
    stacks: FxHashMap<u64, Vec<Frame>>,
    /// The times and stacks of the samples of CPU time.
    cpu_samples: Vec<(u64, u64)>,
    /// The units of the trace's clock per second.
    pub(super) frequency: u64,
}

/// A frame of a stack. Names are keys of strings.
#[derive(Clone, Copy)]
struct Frame {
    function: u64,
    file: u64,
    line: u64,
}

impl<'a> Tables<'a> {
    /// Reads the tables. `malformed` counts those that end early.
    pub(super) fn read<'t>(
        batches: impl Iterator<Item = Table<'t>>,
        options: &'a Options,
        malformed: &mut u64,
    ) -> Self {
        let mut tables = Self {
            options,
            strings: FxHashMap::default(),
            stacks: FxHashMap::default(),
            cpu_samples: Vec::new(),
            frequency: 0,
        };
        for batch in batches {
            let read = match batch {
                Table::Strings(bytes) => tables.read_entries(bytes, STRING, Self::read_string),
                Table::Stacks(bytes) => tables.read_entries(bytes, STACK, Self::read_stack),
                Table::CpuSamples(bytes) => tables.read_entries(bytes, CPU_SAMPLE, Self::read_cpu_sample),
                Table::Frequency(mut bytes) => bytes.varint().map(|frequency| tables.frequency = frequency),
            };
            *malformed += u64::from(read.is_none());
        }
        tables
    }

    /// Reads the entries of a table, which all have one type.
    fn read_entries<'t>(
        &mut self,
        mut bytes: Bytes<'t>,
        kind: u8,
        read: impl Fn(&mut Self, &mut Bytes<'t>) -> Option<()>,
    ) -> Option<()> {
        while !bytes.is_empty() {
            (bytes.u8()? == kind).then_some(())?;
            read(self, &mut bytes)?;
        }
        Some(())
    }

    fn read_string(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let (key, length) = (bytes.varint()?, bytes.varint()?);
        self.strings.insert(key, bytes.take(usize::try_from(length).ok()?)?.to_vec());
        Some(())
    }

    fn read_stack(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let (key, count) = (bytes.varint()?, bytes.varint()?);
        (count <= MAX_FRAMES).then_some(())?;
        let mut frames = Vec::new();
        for _ in 0..count {
            let _address = bytes.varint()?;
            frames.push(Frame { function: bytes.varint()?, file: bytes.varint()?, line: bytes.varint()? });
        }
        self.stacks.insert(key, frames);
        Some(())
    }

    fn read_cpu_sample(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let time = bytes.varint()?;
        // The thread, the processor and the goroutine.
        (0..3).try_for_each(|_| bytes.varint().map(drop))?;
        self.cpu_samples.push((time, bytes.varint()?));
        Some(())
    }

    /// Returns true if there are strings and stacks.
    pub(super) fn has_entries(&self) -> bool {
        !self.strings.is_empty() && !self.stacks.is_empty()
    }

    /// Returns true if there is a stack with this key. Key 0 is no stack.
    pub(super) fn has_stack(&self, key: u64) -> bool {
        key == 0 || self.stacks.contains_key(&key)
    }

    /// Takes the samples of CPU time: of each its time, in units of the trace's clock, and the key of its stack.
    pub(super) fn take_cpu_samples(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.cpu_samples)
    }

    /// Returns a string, or an empty one if there is none.
    pub(super) fn string(&self, key: u64) -> &[u8] {
        self.strings.get(&key).map_or(b"", |text| text)
    }

    /// Returns the frames of a stack, leaf first. A stack that is missing is one `[unknown]` frame.
    pub(super) fn frames(&self, stack: u64, sink: &mut Sink) -> Vec<FrameId> {
        match self.stacks.get(&stack).filter(|frames| !frames.is_empty()) {
            Some(frames) => frames.iter().map(|frame| self.name(frame, sink)).collect(),
            None => vec![intern_frame(b"", sink)],
        }
    }

    fn name(&self, frame: &Frame, sink: &mut Sink) -> FrameId {
        let (file, line) = (self.string(frame.file), i64::try_from(frame.line).ok());
        intern_frame(&function_with_source(self.string(frame.function), file, line, self.options), sink)
    }
}
