//! The types of events that have a stack, and the values of such an event.

use rustc_hash::FxHashMap;

use super::keys::KeyTable;
use super::metadata::{Field, Layout, Schema, Timespan, Value};
use super::wire::{Cursor, Text};
use crate::collapse::filter::args::EventChoice;

/// Names of groups of events that `--event` accepts, and the kinds of events in them: those of one kind complement each
/// other, and each kind measures the same, so that one of them counts. The first group of which a recording has events is the
/// default.
const GROUPS: [(&str, &[&[&str]]); 7] = [
    ("cpu", &[&["ExecutionSample"], &["CPUTimeSample"]]),
    ("wall", &[&["WallClockSample"]]),
    ("alloc", &[&["ObjectAllocationSample"], &["ObjectAllocationInNewTLAB", "ObjectAllocationOutsideTLAB"]]),
    ("nativemem", &[&["Malloc"]]),
    ("lock", &[&["JavaMonitorEnter", "ThreadPark"]]),
    ("live", &[&["LiveObject"], &["OldObjectSample"]]),
    ("native", &[&["NativeMethodSample"]]),
];

/// The fields that hold the weight of events that are not weighed by their duration, and the units.
const WEIGHTS: [(&str, &str, &str); 10] = [
    ("ObjectAllocationSample", "weight", "bytes"),
    ("ObjectAllocationInNewTLAB", "tlabSize", "bytes"),
    ("ObjectAllocationOutsideTLAB", "allocationSize", "bytes"),
    ("OldObjectSample", "objectSize", "bytes"),
    ("LiveObject", "allocationSize", "bytes"),
    ("Malloc", "size", "bytes"),
    ("WallClockSample", "samples", "samples"),
    ("CPUTimeSample", "samplingPeriod", "nanoseconds"),
    ("SocketRead", "duration", "nanoseconds"),
    ("SocketWrite", "duration", "nanoseconds"),
];

/// The unit of events that are no samples and have no duration.
pub(in crate::collapse::formats) const EVENTS: &str = "events";

/// The types of a chunk whose events have a stack.
pub(super) struct EventTypes {
    list: Vec<EventType>,
    /// The indices in `list`, by the ID of the type.
    indices: KeyTable,
}

/// A type of events with stacks.
pub(super) struct EventType {
    pub(super) name: Vec<u8>,
    pub(super) unit: &'static str,
    layout: Layout,
    /// The positions of the values, if nothing but integers precedes them, and there are no labels.
    positions: Option<Positions>,
    /// The unit of the weight, if it is a duration.
    weight_timespan: Option<Timespan>,
    has_weight: bool,
    /// The types of the labels that are constants.
    label_types: Vec<Option<u64>>,
}

/// Maximum number of integers that [`Positions`] read.
const MAX_INTEGERS: usize = 15;

/// The positions of values among the integers at the start of an event.
#[derive(Clone, Copy, Debug)]
struct Positions {
    /// Number of integers to read.
    count: usize,
    /// Those of the start, the thread and the stack; [`MAX_INTEGERS`] for none.
    wanted: [usize; 3],
    weight: Option<usize>,
}

/// The values of an event.
#[derive(Debug, Default)]
pub(super) struct Event {
    /// The time at which the event began, in ticks of the chunk's clock.
    pub(super) start: u64,
    /// The key of the thread.
    pub(super) thread: u64,
    /// The key of the stack trace.
    pub(super) stack: u64,
    pub(super) weight: Option<u64>,
    pub(super) labels: Vec<Label>,
}

/// The value of a label.
#[derive(Debug)]
pub(super) enum Label {
    Number(u64),
    Text(Vec<u8>),
    /// The key of a string constant.
    String(u64),
    /// The type and the key of a constant.
    Constant(u64, u64),
    Missing,
}

/// Indices of the values of an event; labels follow.
mod slot {
    pub const START: u8 = 0;
    pub const EVENT_THREAD: u8 = 1;
    pub const SAMPLED_THREAD: u8 = 2;
    pub const STACK: u8 = 3;
    pub const WEIGHT: u8 = 4;
    pub const FIRST_LABEL: u8 = 5;
}

/// Returns the part of a type's name after its package.
pub(super) fn short_name(name: &[u8]) -> &[u8] {
    name.rsplit(|byte| *byte == b'.').next().unwrap_or(name)
}

/// Returns the field that holds the weight of an event of this type if it has that field, and its unit.
pub(in crate::collapse::formats) fn printed_weight(name: &[u8]) -> (Option<&'static str>, &'static str) {
    let short = short_name(name);
    match WEIGHTS.iter().find(|(name, ..)| name.as_bytes() == short) {
        Some((_, field, unit)) => (Some(*field), *unit),
        None if is_unweighted(short) => (None, "samples"),
        None => (Some("duration"), "nanoseconds"),
    }
}

/// Returns true if an event with this short name is a sample that weighs 1.
fn is_unweighted(short: &[u8]) -> bool {
    matches!(short, b"ExecutionSample" | b"NativeMethodSample")
}

/// Returns the names of the events that count in a recording with these events, or `None` if all do.
pub(in crate::collapse::formats) fn select_types(
    choice: &EventChoice,
    counts: &FxHashMap<Vec<u8>, u64>,
) -> Option<Vec<Vec<u8>>> {
    match choice {
        EventChoice::All => None,
        EventChoice::First => Some(select_default(counts)),
        EventChoice::Named(wanted) => {
            let found = match find_group(wanted) {
                Some(kinds) => select_kind(kinds, counts),
                None => select_by_name(wanted, counts),
            };
            Some(if found.is_empty() { vec![wanted.clone()] } else { found })
        }
    }
}

/// Returns the kinds of events in the group of this name.
fn find_group(name: &[u8]) -> Option<&'static [&'static [&'static str]]> {
    GROUPS.iter().find(|(group, _)| group.as_bytes() == name).map(|(_, kinds)| *kinds)
}

/// Returns true if a name is that of a group of events.
pub(super) fn is_group(name: &[u8]) -> bool {
    find_group(name).is_some()
}

/// Returns true if a name is that of the group of events of CPU time.
pub(super) fn is_cpu_group(name: &[u8]) -> bool {
    name == GROUPS[0].0.as_bytes()
}

/// Returns the names of the events that have this name, with or without their package.
fn select_by_name(wanted: &[u8], counts: &FxHashMap<Vec<u8>, u64>) -> Vec<Vec<u8>> {
    counts.keys().filter(|name| *name == wanted || short_name(name) == wanted).cloned().collect()
}

/// Returns the names of the events of the first of these kinds that the recording has.
fn select_kind(kinds: &[&[&str]], counts: &FxHashMap<Vec<u8>, u64>) -> Vec<Vec<u8>> {
    let of_kind = |events: &&[&str]| -> Vec<Vec<u8>> {
        let is_of_kind = |name: &&Vec<u8>| events.iter().any(|event| event.as_bytes() == short_name(name));
        counts.keys().filter(is_of_kind).cloned().collect()
    };
    kinds.iter().map(of_kind).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Returns the names of the default events: those of the first group of which the recording has events, else the first
/// event by name.
fn select_default(counts: &FxHashMap<Vec<u8>, u64>) -> Vec<Vec<u8>> {
    let of_groups = GROUPS.iter().map(|(_, kinds)| select_kind(kinds, counts));
    of_groups
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_else(|| counts.keys().min().cloned().into_iter().collect())
}

/// Returns true if no event comes before this one as a default.
pub(super) fn is_first_default(name: &[u8]) -> bool {
    GROUPS[0].1[0].iter().any(|first| first.as_bytes() == short_name(name))
}

impl EventTypes {
    pub(super) fn new(schema: &Schema, labels: &[Vec<u8>]) -> Self {
        let (mut list, mut indices) = (Vec::new(), KeyTable::default());
        for (id, _) in schema.types() {
            if let Some(class) = EventType::new(schema, id, labels)
                && indices.intern(id).is_some()
            {
                list.push(class);
            }
        }
        Self { list, indices }
    }

    /// Returns the index of a type, by its ID.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Option<usize> {
        self.indices.get(id).map(|index| index as usize)
    }

    /// Returns all types, in the order of their indices.
    pub(super) fn list(&self) -> &[EventType] {
        &self.list
    }
}

impl EventType {
    /// Returns the type if it is that of events with a stack.
    fn new(schema: &Schema, id: u64, labels: &[Vec<u8>]) -> Option<Self> {
        let class = schema.get(id)?;
        class.find_field(b"stackTrace").filter(|field| {
            field.is_constant && schema.get(field.kind).is_some_and(|kind| short_name(&kind.name) == b"StackTrace")
        })?;
        class.find_field(b"startTime")?;
        let short = short_name(&class.name);
        let listed = WEIGHTS.iter().find(|(name, ..)| name.as_bytes() == short);
        let is_sample = is_unweighted(short);
        let weight = match listed {
            Some((_, field, unit)) => class.find_field(field.as_bytes()).map(|field| (field, *unit)),
            None if is_sample => None,
            None => class.find_field(b"duration").map(|field| (field, "nanoseconds")),
        };
        let weight_name = weight.map_or(&b""[..], |(field, _)| &field.name);
        let mut wanted: Vec<&[u8]> = vec![b"startTime", b"eventThread", b"sampledThread", b"stackTrace", weight_name];
        let label_fields: Vec<Option<&Field>> = labels.iter().map(|label| class.find_field(label)).collect();
        let labels: Vec<&[u8]> =
            labels.iter().map(|label| if wanted.contains(&&label[..]) { &b"\0"[..] } else { label }).collect();
        wanted.extend(labels);
        let layout = Layout::new(schema, id, &wanted)?;
        Some(Self {
            name: class.name.clone(),
            unit: weight.map_or(if is_sample { "samples" } else { EVENTS }, |(_, unit)| unit),
            positions: Positions::new(&layout).filter(|_| label_fields.is_empty()),
            layout,
            weight_timespan: weight.and_then(|(field, _)| field.timespan),
            has_weight: weight.is_some(),
            label_types: label_fields
                .iter()
                .map(|field| field.filter(|field| field.is_constant).map(|field| field.kind))
                .collect(),
        })
    }

    /// Decodes an event, whose size and type precede `cursor`. Returns `None` if it is malformed.
    #[inline]
    pub(super) fn decode(&self, cursor: &mut Cursor<'_>) -> Option<Event> {
        match self.positions.filter(|_| cursor.has_varints()) {
            Some(positions) => positions.decode(cursor),
            None => self.decode_all(cursor),
        }
    }

    fn decode_all(&self, cursor: &mut Cursor<'_>) -> Option<Event> {
        let mut event = Event::default();
        event.labels.resize_with(self.label_types.len(), || Label::Missing);
        self.layout.visit(cursor, &mut |slot, value| match (slot, value) {
            (slot::START, Value::Number(start)) => event.start = start,
            (slot::EVENT_THREAD | slot::SAMPLED_THREAD, Value::Number(thread)) => event.thread = thread,
            (slot::STACK, Value::Number(stack)) => event.stack = stack,
            (slot::WEIGHT, Value::Number(weight)) => event.weight = Some(weight),
            (slot, value) => {
                let index = usize::from(slot.wrapping_sub(slot::FIRST_LABEL));
                if let Some(label) = event.labels.get_mut(index) {
                    *label = Label::new(value, self.label_types[index]);
                }
            }
        })?;
        Some(event)
    }

    /// Returns the weight of an event. `ticks_per_second` is the frequency of the chunk's clock.
    pub(super) fn weight(&self, event: &Event, ticks_per_second: u64) -> u64 {
        match (event.weight, self.weight_timespan) {
            (Some(weight), Some(Timespan::Ticks)) => ticks_to_nanoseconds(weight, ticks_per_second),
            (Some(weight), Some(Timespan::Nanoseconds(size))) => weight.saturating_mul(size),
            (Some(weight), None) => weight,
            (None, _) => u64::from(!self.has_weight),
        }
    }
}

impl Positions {
    /// Returns the positions in the values of an event, or `None` if others than integers precede them.
    fn new(layout: &Layout) -> Option<Self> {
        let thread = layout.position(slot::EVENT_THREAD).max(layout.position(slot::SAMPLED_THREAD));
        let (start, stack) = (layout.position(slot::START), layout.position(slot::STACK));
        let weight = layout.position(slot::WEIGHT);
        let count = [start, thread, stack, weight].into_iter().flatten().max()? + 1;
        let wanted = [start, thread, stack].map(|position| position.unwrap_or(MAX_INTEGERS));
        (count <= MAX_INTEGERS && layout.begins_with_integers(count)).then_some(Self { count, wanted, weight })
    }

    #[inline]
    fn decode(&self, cursor: &mut Cursor<'_>) -> Option<Event> {
        let mut integers = [0; MAX_INTEGERS + 1];
        for integer in &mut integers[..self.count] {
            *integer = cursor.read_long()?;
        }
        let [start, thread, stack] = self.wanted.map(|position| integers[position]);
        let weight = self.weight.map(|position| integers[position]);
        Some(Event { start, thread, stack, weight, labels: Vec::new() })
    }
}

/// Converts ticks of a clock to nanoseconds. Negative numbers become 0.
pub(super) fn ticks_to_nanoseconds(ticks: u64, ticks_per_second: u64) -> u64 {
    let ticks = u128::from(ticks.min(i64::MAX as u64) * u64::from(ticks <= i64::MAX as u64));
    u64::try_from(ticks * 1_000_000_000 / u128::from(ticks_per_second.max(1))).unwrap_or(u64::MAX)
}

impl Label {
    fn new(value: Value<'_>, constant_type: Option<u64>) -> Self {
        match (value, constant_type) {
            (Value::Number(key), Some(kind)) => Self::Constant(kind, key),
            (Value::Number(number), None) => Self::Number(number),
            (Value::Text(Text::Bytes(text)), _) => Self::Text(text.into_owned()),
            (Value::Text(Text::Constant(key)), _) => Self::String(key),
            (Value::Text(Text::Null) | Value::End, _) => Self::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashMap;

    use super::{select_default, select_types};
    use crate::collapse::filter::args::EventChoice;

    /// Returns the counts of events of which there is one each.
    fn counts(names: &[&str]) -> FxHashMap<Vec<u8>, u64> {
        names.iter().map(|name| (name.as_bytes().to_vec(), 1)).collect()
    }

    #[test]
    fn selects_one_kind_of_a_group() {
        let both = counts(&["jdk.CPUTimeSample", "jdk.ExecutionSample", "jdk.ThreadPark"]);
        assert_eq!(select_default(&both), [b"jdk.ExecutionSample"]);
        let named = |name: &[u8], counts: &FxHashMap<Vec<u8>, u64>| {
            let mut found = select_types(&EventChoice::Named(name.to_vec()), counts).unwrap();
            found.sort();
            found
        };
        assert_eq!(named(b"cpu", &both), [b"jdk.ExecutionSample"]);
        assert_eq!(named(b"cpu", &counts(&["jdk.CPUTimeSample"])), [b"jdk.CPUTimeSample"]);
        assert_eq!(named(b"cpu", &counts(&["jdk.ThreadPark"])), [b"cpu"]);
        let buffers = ["jdk.ObjectAllocationInNewTLAB", "jdk.ObjectAllocationOutsideTLAB"];
        let all = counts(&["jdk.ObjectAllocationSample", buffers[0], buffers[1]]);
        assert_eq!(named(b"alloc", &all), [b"jdk.ObjectAllocationSample"]);
        assert_eq!(named(b"alloc", &counts(&buffers)), buffers.map(str::as_bytes));
        assert_eq!(named(b"ThreadPark", &both), [b"jdk.ThreadPark"]);
    }
}
