//! The events of a recording: the layout of their records, and their names.

use rustc_hash::FxHashMap;

use crate::perf::event::{Layout, record_type, sample_type as bit};

/// An event: the fields of its `perf_event_attr` that a profile needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    /// The layout of its records.
    pub layout: Layout,
    /// Maximum number of addresses in a callchain that the kernel wrote.
    pub max_stack: usize,
    /// The period of samples that do not contain one.
    pub period: u64,
    /// The name that the user gave, or else the name that `perf` uses.
    pub name: Vec<u8>,
    time_offset: FieldOffset,
}

/// The offset of a field in a record; `None` if the record does not have the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldOffset {
    /// In samples, from the start of the record.
    in_sample: Option<usize>,
    /// In other records, from the end of the record.
    in_other: Option<usize>,
}

impl FieldOffset {
    /// Returns the field of a record, as 8 bytes.
    #[inline]
    fn read(self, record: &[u8]) -> Option<u64> {
        // No type needs more than the lowest byte.
        let start = match u32::from(*record.first()?) {
            record_type::SAMPLE => self.in_sample?,
            _ => record.len().checked_sub(self.in_other?)?,
        };
        Some(u64::from_le_bytes(record.get(start..start.checked_add(8)?)?.try_into().ok()?))
    }
}

/// Returns the size of the fields that a `sample_type` has, out of `bits`.
fn fields_size(sample_type: u64, bits: &[u64]) -> usize {
    bits.iter().filter(|bit| sample_type & **bit != 0).count() * 8
}

/// Returns the offset of the time in records of a layout.
fn time_offset(Layout { sample_type, sample_id_all, .. }: Layout) -> FieldOffset {
    if sample_type & bit::TIME == 0 {
        return FieldOffset { in_sample: None, in_other: None };
    }
    let in_sample = 8 + fields_size(sample_type, &[bit::IDENTIFIER, bit::IP, bit::TID]);
    let in_other = 8 + fields_size(sample_type, &[bit::ID, bit::STREAM_ID, bit::CPU, bit::IDENTIFIER]);
    FieldOffset { in_sample: Some(in_sample), in_other: sample_id_all.then_some(in_other) }
}

/// Returns the 8-byte field at an offset; 0 if the attributes are of a version that does not have it.
fn word(attr: &[u8], offset: usize) -> u64 {
    let bytes = attr.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// The size of the first version of `perf_event_attr`. Later versions are longer.
const FIRST_VERSION: usize = 64;
/// The default of `kernel.perf_event_max_stack`.
const DEFAULT_MAX_STACK: u16 = 127;

impl Attr {
    /// Parses a `perf_event_attr`. `None` if its size is wrong.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if !(FIRST_VERSION..=bytes.len()).contains(&Self::size(bytes)?) {
            return None;
        }
        let (kind, config, flags) = (word(bytes, 0) as u32, word(bytes, 8), word(bytes, 40));
        let layout = Layout {
            sample_type: word(bytes, 24),
            user_registers: word(bytes, 80),
            read_format: word(bytes, 32),
            branch_sample_type: word(bytes, 72),
            sample_id_all: flags & (1 << 18) != 0,
        };
        let max_stack = match (word(bytes, 104) >> 32) as u16 {
            0 => DEFAULT_MAX_STACK,
            max_stack => max_stack,
        };
        let is_by_frequency = flags & (1 << 10) != 0;
        let period = if is_by_frequency { 1 } else { word(bytes, 16).max(1) };
        let name = default_name(kind, config, flags).into_bytes();
        Some(Self { layout, max_stack: max_stack.into(), period, name, time_offset: time_offset(layout) })
    }

    /// Returns the size that a `perf_event_attr` says it has.
    pub(super) fn size(bytes: &[u8]) -> Option<usize> {
        let size = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?) as usize;
        // The first kernels did not set it.
        Some(if size == 0 { FIRST_VERSION } else { size })
    }

    /// True if the event is a tracepoint whose name the recording does not have.
    pub fn is_unnamed_tracepoint(&self) -> bool {
        self.name.starts_with(UNNAMED_TRACEPOINT.as_bytes())
    }

    /// True if a bit of `sample_type` is set.
    pub const fn has(&self, bit: u64) -> bool {
        self.layout.sample_type & bit != 0
    }
}

/// `PERF_TYPE_HARDWARE`, `PERF_TYPE_SOFTWARE` and `PERF_TYPE_TRACEPOINT`.
const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;

/// The name of a tracepoint before its number, if the recording does not have its name.
const UNNAMED_TRACEPOINT: &str = "tracepoint-";

const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// Returns the name of an event that has no name in the recording, with `:k` or `:u` if it excludes user or kernel
/// code.
fn default_name(kind: u32, config: u64, flags: u64) -> String {
    let known = match kind {
        TYPE_HARDWARE => HARDWARE.get(config as usize & 0xff),
        TYPE_SOFTWARE => SOFTWARE.get(config as usize),
        _ => None,
    };
    let name = match (known, kind) {
        (Some(name), _) => (*name).to_owned(),
        (None, TYPE_TRACEPOINT) => format!("{UNNAMED_TRACEPOINT}{config}"),
        _ => format!("raw-{kind}-{config:#x}"),
    };
    // The bits exclude_user and exclude_kernel.
    match (flags >> 4) & 3 {
        1 => name + ":k",
        2 => name + ":u",
        _ => name,
    }
}

/// All events of a recording.
#[derive(Clone, Debug, Default)]
pub struct Attrs {
    list: Vec<Attr>,
    /// The index of the event by the ID of one of its counters.
    by_id: FxHashMap<u64, u32>,
    /// The offset of the counter's ID in a record; `None` if the records do not have one.
    id_offset: Option<FieldOffset>,
}

/// Maximum number of counter IDs. No machine has as many counters.
const MAX_IDS: usize = 1 << 22;
/// Maximum number of events.
const MAX_EVENTS: usize = 1 << 12;

impl Attrs {
    /// The events, in the order of the file.
    pub fn list(&self) -> &[Attr] {
        &self.list
    }

    /// Adds an event with the IDs of its counters. False if there are too many.
    pub(super) fn push(&mut self, attr: Attr, ids: impl Iterator<Item = u64>) -> bool {
        let index = self.list.len() as u32;
        if self.list.len() >= MAX_EVENTS {
            return false;
        }
        for id in ids {
            if self.by_id.len() >= MAX_IDS {
                return false;
            }
            self.by_id.insert(id, index);
        }
        self.list.push(attr);
        self.id_offset = self.find_id_offset();
        true
    }

    /// Returns the index of the event of a counter.
    pub(super) fn index_of_id(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).map(|index| *index as usize)
    }

    /// Names an event, unless the name is empty.
    pub(super) fn set_name(&mut self, index: usize, name: &[u8]) {
        if let Some(attr) = self.list.get_mut(index).filter(|_| !name.is_empty()) {
            attr.name = name.to_vec();
        }
    }

    /// Returns the offset of the counter's ID, which must be the same in all records whatever event they belong to.
    fn find_id_offset(&self) -> Option<FieldOffset> {
        let Layout { sample_type, sample_id_all, .. } = self.list.first()?.layout;
        // IDENTIFIER exists for this: it comes first in samples and last in other records.
        let (in_sample, in_other) = if self.list.iter().all(|attr| attr.has(bit::IDENTIFIER)) {
            (8, 8)
        } else if sample_type & bit::ID != 0 && self.list.iter().all(|attr| attr.layout.sample_type == sample_type) {
            (
                8 + fields_size(sample_type, &[bit::IDENTIFIER, bit::IP, bit::TID, bit::TIME, bit::ADDR]),
                8 + fields_size(sample_type, &[bit::STREAM_ID, bit::CPU, bit::IDENTIFIER]),
            )
        } else {
            return None;
        };
        Some(FieldOffset { in_sample: Some(in_sample), in_other: sample_id_all.then_some(in_other) })
    }

    /// Returns the index of the event that a record belongs to; 0 if the record does not tell.
    #[inline]
    pub fn index_of_record(&self, record: &[u8]) -> usize {
        let Some(offset) = self.id_offset.filter(|_| self.list.len() > 1) else { return 0 };
        offset.read(record).and_then(|id| self.index_of_id(id)).unwrap_or(0)
    }

    /// Returns the time of a record; 0 if the record does not have one.
    #[inline]
    pub(super) fn time_of(&self, record: &[u8]) -> u64 {
        let attr = self.list.get(self.index_of_record(record));
        attr.and_then(|attr| attr.time_offset.read(record)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Attr, Attrs};
    use crate::perf::event::sample_type as bit;

    fn attr(kind: u32, config: u64, sample_type: u64, flags: u64) -> Attr {
        let mut bytes = vec![0; 128];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&config.to_le_bytes());
        bytes[24..32].copy_from_slice(&sample_type.to_le_bytes());
        bytes[40..48].copy_from_slice(&flags.to_le_bytes());
        Attr::parse(&bytes).unwrap()
    }

    /// Returns a record of these words, of which the first is the header.
    fn record(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn gives_an_unnamed_event_the_name_that_perf_uses() {
        for (kind, config, flags, name) in [
            (0, 0, 1 << 5, "cycles:u"),
            (1, 2, 0, "page-faults"),
            (2, 300, 0, "tracepoint-300"),
            (4, 0x1c2, 1 << 4, "raw-4-0x1c2:k"),
        ] {
            assert_eq!(attr(kind, config, 0, flags).name, name.as_bytes());
        }
    }

    #[test]
    fn finds_the_event_of_a_record_by_its_id() {
        let kind = bit::IP | bit::TID | bit::TIME | bit::ID | bit::CPU;
        let mut attrs = Attrs::default();
        attrs.push(attr(0, 0, kind, 1 << 18), [5].into_iter());
        attrs.push(attr(0, 1, kind, 1 << 18), [6, 7].into_iter());
        let sample = record(&[9, 0x4000, 1, 99, 7, 0]);
        assert_eq!((attrs.index_of_record(&sample), attrs.time_of(&sample)), (1, 99));
        let exit = record(&[4, 1, 1, 50, 1, 99, 5, 0]);
        assert_eq!((attrs.index_of_record(&exit), attrs.time_of(&exit)), (0, 99));
        assert_eq!((attrs.index_of_record(&exit[..9]), attrs.time_of(&exit[..9])), (0, 0));
    }
}
