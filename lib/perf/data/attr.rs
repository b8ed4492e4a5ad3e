//! The events of a recording: how their records are laid out, and what they are called.

use rustc_hash::FxHashMap;

use crate::perf::event::{Layout, sample_type as bit};

/// An event, as `perf_event_open(2)` was asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    /// How its records are laid out.
    pub layout: Layout,
    /// How many addresses the kernel wrote of a stack at most.
    pub max_stack: usize,
    /// What a sample counts for that does not say it.
    pub period: u64,
    /// Its name, as it was asked for; or as `perf` would call it.
    pub name: Vec<u8>,
    time_place: TimePlace,
}

/// Where a record has its time, if it has one: from its beginning in samples, from its end in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimePlace {
    sample: Option<usize>,
    other: Option<usize>,
}

impl TimePlace {
    fn of(Layout { sample_type, stamps_all, .. }: Layout) -> Self {
        let words = |bits: &[u64]| 8 + bits.iter().filter(|bit| sample_type & **bit != 0).count() * 8;
        let has_time = sample_type & bit::TIME != 0;
        let sample = has_time.then(|| words(&[bit::IDENTIFIER, bit::IP, bit::TID]));
        let other = (has_time && stamps_all).then(|| words(&[bit::ID, bit::STREAM_ID, bit::CPU, bit::IDENTIFIER]));
        Self { sample, other }
    }
}

/// The bytes of the first version of `perf_event_attr`; later ones only add to it.
const FIRST_VERSION: usize = 64;
/// `kernel.perf_event_max_stack`, unless it was changed.
const USUAL_MAX_STACK: u16 = 127;

impl Attr {
    /// Reads a `perf_event_attr`. `None` if it is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if !(FIRST_VERSION..=bytes.len()).contains(&Self::size(bytes)?) {
            return None;
        }
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let (kind, config, flags) = (word(0) as u32, word(8), word(40));
        let layout = Layout {
            sample_type: word(24),
            user_registers: word(80),
            read_format: word(32),
            branches: word(72),
            stamps_all: flags & (1 << 18) != 0,
        };
        let max_stack = match (word(104) >> 32) as u16 {
            0 => USUAL_MAX_STACK,
            asked => asked,
        };
        let by_frequency = flags & (1 << 10) != 0;
        let period = if by_frequency { 1 } else { word(16).max(1) };
        let name = usual_name(kind, config, flags).into_bytes();
        Some(Self { layout, max_stack: max_stack.into(), period, name, time_place: TimePlace::of(layout) })
    }

    /// The size that a `perf_event_attr` says it has.
    pub(super) fn size(bytes: &[u8]) -> Option<usize> {
        let size = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?) as usize;
        // The first kernels left it out.
        Some(if size == 0 { FIRST_VERSION } else { size })
    }

    /// Whether a bit of `sample_type` is set.
    pub const fn has(&self, bit: u64) -> bool {
        self.layout.sample_type & bit != 0
    }
}

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

/// What an event is called that nobody named.
fn usual_name(kind: u32, config: u64, flags: u64) -> String {
    let known = match kind {
        0 => HARDWARE.get(config as usize & 0xff),
        1 => SOFTWARE.get(config as usize),
        _ => None,
    };
    let name = match (known, kind) {
        (Some(name), _) => (*name).to_owned(),
        (None, 2) => format!("tracepoint-{config}"),
        _ => format!("raw-{kind}-{config:#x}"),
    };
    // exclude_user, exclude_kernel
    match (flags >> 4) & 3 {
        1 => name + ":k",
        2 => name + ":u",
        _ => name,
    }
}

/// All events of a recording, and which of them a record belongs to.
#[derive(Clone, Debug, Default)]
pub struct Attrs {
    list: Vec<Attr>,
    by_id: FxHashMap<u64, u32>,
    id_place: Option<IdPlace>,
}

/// Where a record has the id of its counter: from its beginning in samples, from its end in others.
#[derive(Clone, Copy, Debug)]
struct IdPlace {
    sample: usize,
    other: usize,
    stamps_all: bool,
}

/// The kernel's number of a sample.
const RECORD_SAMPLE: u8 = 9;
/// More counters than any machine has.
const MOST_IDS: usize = 1 << 22;
/// More events than anybody asks for.
const MOST_EVENTS: usize = 1 << 12;

impl Attrs {
    /// All of them.
    pub fn list(&self) -> &[Attr] {
        &self.list
    }

    /// Adds an event with the ids of its counters. `false` if there are too many of them.
    pub(super) fn push(&mut self, attr: Attr, ids: impl Iterator<Item = u64>) -> bool {
        let number = self.list.len() as u32;
        if self.list.len() >= MOST_EVENTS {
            return false;
        }
        for id in ids {
            if self.by_id.len() >= MOST_IDS {
                return false;
            }
            self.by_id.insert(id, number);
        }
        self.list.push(attr);
        self.id_place = self.find_id_place();
        true
    }

    /// The event of a counter.
    pub(super) fn of_id(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).map(|number| *number as usize)
    }

    /// Names an event.
    pub(super) fn name(&mut self, number: usize, name: &[u8]) {
        if let Some(attr) = self.list.get_mut(number).filter(|_| !name.is_empty()) {
            attr.name = name.to_vec();
        }
    }

    fn find_id_place(&self) -> Option<IdPlace> {
        let first = self.list.first()?;
        let (kind, stamps_all) = (first.layout.sample_type, first.layout.stamps_all);
        if self.list.iter().all(|attr| attr.has(bit::IDENTIFIER)) {
            return Some(IdPlace { sample: 8, other: 8, stamps_all });
        }
        if kind & bit::ID == 0 || self.list.iter().any(|attr| attr.layout.sample_type != kind) {
            return None;
        }
        let words = |bits: &[u64]| bits.iter().filter(|bit| kind & **bit != 0).count() * 8;
        let sample = 8 + words(&[bit::IDENTIFIER, bit::IP, bit::TID, bit::TIME, bit::ADDR]);
        let other = 8 + words(&[bit::STREAM_ID, bit::CPU, bit::IDENTIFIER]);
        Some(IdPlace { sample, other, stamps_all })
    }

    /// The number of the event that a record belongs to; the first where that cannot be told.
    #[inline]
    pub fn of_record(&self, record: &[u8]) -> usize {
        let Some(place) = self.id_place.filter(|_| self.list.len() > 1) else { return 0 };
        let start = match record.first() {
            Some(&RECORD_SAMPLE) => place.sample,
            _ if !place.stamps_all => return 0,
            _ => record.len().wrapping_sub(place.other),
        };
        let id = record.get(start..start.saturating_add(8)).and_then(|bytes| bytes.try_into().ok());
        id.and_then(|id| self.of_id(u64::from_le_bytes(id))).unwrap_or(0)
    }

    /// When a record was written; 0 if it does not say.
    #[inline]
    pub(super) fn time_of(&self, record: &[u8]) -> u64 {
        let time = || {
            let place = self.list.get(self.of_record(record))?.time_place;
            let start = match *record.first()? {
                RECORD_SAMPLE => place.sample?,
                _ => record.len().checked_sub(place.other?)?,
            };
            Some(u64::from_le_bytes(record.get(start..start.checked_add(8)?)?.try_into().ok()?))
        };
        time().unwrap_or(0)
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

    #[test]
    fn an_event_without_a_name_has_its_usual_one() {
        let name = |kind, config, flags| String::from_utf8(attr(kind, config, 0, flags).name).unwrap();
        assert_eq!(name(0, 0, 1 << 5), "cycles:u");
        assert_eq!(name(1, 2, 0), "page-faults");
        assert_eq!(name(2, 300, 0), "tracepoint-300");
        assert_eq!(name(4, 0x1c2, 1 << 4), "raw-4-0x1c2:k");
    }

    #[test]
    fn a_record_belongs_to_the_event_of_its_id() {
        let kind = bit::IP | bit::TID | bit::TIME | bit::ID | bit::CPU;
        let mut attrs = Attrs::default();
        attrs.push(attr(0, 0, kind, 1 << 18), [5].into_iter());
        attrs.push(attr(0, 1, kind, 1 << 18), [6, 7].into_iter());
        let record = |head: u64, words: &[u64]| -> Vec<u8> {
            [&[head], words].concat().iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let sample = record(9, &[0x4000, 1, 99, 7, 0]);
        assert_eq!((attrs.of_record(&sample), attrs.time_of(&sample)), (1, 99));
        let exit = record(4, &[1, 1, 50, 1, 99, 5, 0]);
        assert_eq!((attrs.of_record(&exit), attrs.time_of(&exit)), (0, 99));
        assert_eq!((attrs.of_record(&exit[..9]), attrs.time_of(&exit[..9])), (0, 0));
    }
}
