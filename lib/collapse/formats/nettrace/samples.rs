//! The events with a stack: their names and weights, and their sums.

use rustc_hash::FxHashMap;

use super::events::EventType;
use crate::collapse::formats::little_endian::Bytes;
use crate::profile::Weight;

const RUNTIME: &[u8] = b"Microsoft-Windows-DotNETRuntime";
const SAMPLER: &[u8] = b"Microsoft-DotNETCore-SampleProfiler";
const UNIVERSAL: &[u8] = b"Universal.Events";

/// The names of the runtime's events that often have a stack, which traces do not contain.
const RUNTIME_EVENTS: [(u32, &str); 8] = [
    (10, "GCAllocationTick"),
    (80, "ExceptionThrown"),
    (81, "ContentionStart"),
    (85, "ThreadCreated"),
    (91, "ContentionStop"),
    (143, "MethodLoad"),
    (145, "MethodJittingStarted"),
    (159, "R2RGetEntryPoint"),
];

/// The events of which the first that a trace has is the default.
pub(super) const DEFAULTS: [&[u8]; 4] = [b"cpu", b"managed", b"external", b"GCAllocationTick"];

/// The part of an event in a profile.
pub(super) struct Measure {
    /// The name for `--event`.
    pub(super) name: Vec<u8>,
    pub(super) weight: Weight,
    pub(super) unit: &'static str,
}

impl Measure {
    /// Returns the measure of an event that counts as 1.
    fn count(name: &[u8], unit: &'static str) -> Self {
        Self { name: name.to_vec(), weight: Weight::ONE, unit }
    }
}

/// Returns the name, the weight and the unit of an event with a stack.
pub(super) fn measure(event: &EventType, payload: &[u8]) -> Measure {
    match (&event.provider[..], event.id) {
        (SAMPLER, 0) => match Bytes(payload).u32() {
            Some(2) => Measure::count(b"managed", "samples"),
            _ => Measure::count(b"external", "samples"),
        },
        (UNIVERSAL, _) if event.name == b"cpu" => Measure {
            weight: Bytes(payload).varint().map_or(Weight::ONE, Weight::new),
            ..Measure::count(b"cpu", "samples")
        },
        (RUNTIME, 10) => Measure {
            weight: allocated_bytes(payload).map_or(Weight::ZERO, Weight::new),
            ..Measure::count(b"GCAllocationTick", "bytes")
        },
        (RUNTIME, id) => match RUNTIME_EVENTS.iter().find(|(known, _)| *known == id) {
            Some((_, name)) => Measure::count(name.as_bytes(), "events"),
            None => Measure::count(&qualified_name(event), "events"),
        },
        _ => Measure::count(&qualified_name(event), "events"),
    }
}

/// Returns `PROVIDER/NAME`, with the event's number if it has no name.
fn qualified_name(event: &EventType) -> Vec<u8> {
    let number = event.id.to_string();
    let name = if event.name.is_empty() { number.as_bytes() } else { &event.name };
    [&event.provider, &b"/"[..], name].concat()
}

/// Returns the bytes that an `AllocationTick` samples: the number of eight bytes, if it has one, else that of four.
fn allocated_bytes(payload: &[u8]) -> Option<u64> {
    let mut bytes = Bytes(payload);
    let small = bytes.u32()?;
    // The kind and the number of the runtime.
    bytes.take(4 + 2);
    Some(bytes.u64().unwrap_or(small.into()))
}

/// What equal samples have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The index of the event in [`Samples::events`].
    pub(super) event: usize,
    /// The process and the thread.
    pub(super) thread: (u64, u64),
    /// The index of the stack.
    pub(super) stack: usize,
    /// The time in nanoseconds since 1970 and the CPU, if samples are kept apart by them.
    pub(super) time: Option<(u64, u32)>,
}

/// An event with stacks.
pub(super) struct Event {
    pub(super) name: Vec<u8>,
    pub(super) unit: &'static str,
}

/// The sums of the samples of a trace.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) events: Vec<Event>,
    /// Addresses, leaf first.
    pub(super) stacks: Vec<Box<[u64]>>,
    /// Numbers and weights of samples, in the order of their first occurrence.
    pub(super) sums: Vec<(Key, u64, Weight)>,
    numbers: FxHashMap<Key, usize>,
    stack_numbers: FxHashMap<Box<[u64]>, usize>,
}

impl Samples {
    /// Returns the index of an event.
    pub(super) fn event(&mut self, measure: &Measure) -> usize {
        let known = self.events.iter().position(|event| event.name == measure.name);
        known.unwrap_or_else(|| {
            self.events.push(Event { name: measure.name.clone(), unit: measure.unit });
            self.events.len() - 1
        })
    }

    /// Returns the index of a stack.
    pub(super) fn stack(&mut self, addresses: &[u64]) -> usize {
        if let Some(known) = self.stack_numbers.get(addresses) {
            return *known;
        }
        let stack: Box<[u64]> = addresses.into();
        self.stack_numbers.insert(stack.clone(), self.stacks.len());
        self.stacks.push(stack);
        self.stacks.len() - 1
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, key: Key, weight: Weight) {
        match self.numbers.get(&key).and_then(|number| self.sums.get_mut(*number)) {
            Some((_, count, sum)) => {
                *count += 1;
                *sum = sum.checked_add(weight).unwrap_or(*sum);
            }
            None => {
                self.numbers.insert(key.clone(), self.sums.len());
                self.sums.push((key, 1, weight));
            }
        }
    }

    /// Returns the name of the default event: the first of [`DEFAULTS`], else the one with the most samples.
    pub(super) fn default_event(&self) -> Option<&[u8]> {
        let default = DEFAULTS.iter().find(|name| self.events.iter().any(|event| event.name == **name)).copied();
        default.or_else(|| self.largest_event())
    }

    fn largest_event(&self) -> Option<&[u8]> {
        let largest = (0..self.events.len()).max_by_key(|index| {
            let sums = self.sums.iter().filter(|(key, ..)| key.event == *index);
            sums.map(|(_, count, ..)| count).sum::<u64>()
        });
        largest.map(|index| &self.events[index].name[..])
    }
}

#[cfg(test)]
mod tests {
    use super::{EventType, RUNTIME, SAMPLER, Samples, measure};

    fn event(provider: &[u8], id: u32) -> EventType {
        EventType { provider: provider.to_vec(), id, name: Vec::new(), version: 0 }
    }

    #[test]
    fn weighs_allocations_by_their_bytes() {
        let tick = [&[1, 0, 0, 0, 0, 0, 0, 0, 9, 0][..], &(1u64 << 40).to_le_bytes()].concat();
        let weights = [&tick[..], &tick[..8], &[]].map(|payload| measure(&event(RUNTIME, 10), payload).weight);
        assert_eq!(weights.map(|weight| weight.to_string()), ["1099511627776", "1", "0"]);
    }

    fn name(event: EventType, payload: &[u8]) -> String {
        String::from_utf8(measure(&event, payload).name).unwrap()
    }

    #[test]
    fn names_samples_by_their_kind() {
        assert_eq!(name(event(SAMPLER, 0), &[2, 0, 0, 0]), "managed");
        assert_eq!(name(event(SAMPLER, 0), &[1, 0, 0, 0]), "external");
        assert_eq!(name(event(RUNTIME, 81), &[]), "ContentionStart");
        assert_eq!(name(event(b"P", 3), &[]), "P/3");
    }

    #[test]
    fn numbers_equal_stacks_once() {
        let mut samples = Samples::default();
        assert_eq!((samples.stack(&[1, 2]), samples.stack(&[1]), samples.stack(&[1, 2])), (0, 1, 0));
    }
}
