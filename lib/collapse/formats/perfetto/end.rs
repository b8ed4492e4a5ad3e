//! Finds the end of a trace: packets of another trace, or what are no packets, may follow it.

use rustc_hash::FxHashMap;

use super::packet::{PACKET, field};
use crate::otlp::is_otlp;
use crate::protobuf::{Fields, Value};

/// The field of a heap profile that numbers the packets of its sequence.
const HEAP_INDEX: u32 = 7;

/// The packets of a trace, and what follows them.
pub(super) struct End<'a> {
    pub(super) packets: &'a [u8],
    pub(super) rest: &'a [u8],
    /// True if another trace follows.
    pub(super) is_trace: bool,
}

impl<'a> End<'a> {
    /// Finds the end of the trace that begins with these bytes.
    pub(super) fn find(bytes: &'a [u8]) -> Self {
        let (mut fields, mut seen, mut end) = (Fields::new(bytes), Seen::default(), 0);
        let mut is_trace = false;
        // A trace consists of packets alone.
        while let Some(Some((PACKET, Value::Bytes(packet)))) = fields.next() {
            is_trace = seen.begins_another_trace(packet);
            if is_trace || !has_own_field(packet) && is_otlp(&bytes[end..]) {
                break;
            }
            end = bytes.len() - fields.rest().len();
        }
        let (packets, rest) = bytes.split_at(end);
        Self { packets, rest, is_trace }
    }
}

/// Returns true if a packet has a field that messages of OpenTelemetry profiles do not have.
fn has_own_field(packet: &[u8]) -> bool {
    Fields::new(packet).flatten().any(|(number, _)| number > 3)
}

/// The packets that a trace has only once, and that were read.
#[derive(Default)]
struct Seen {
    has_configuration: bool,
    has_uuid: bool,
    /// The number of the last heap profile of each sequence.
    heaps: FxHashMap<u64, u64>,
}

impl Seen {
    /// Returns true if a packet is the first one of another trace.
    fn begins_another_trace(&mut self, packet: &[u8]) -> bool {
        let (mut sequence, mut heap, mut recurs) = (0, None, false);
        for (number, value) in Fields::new(packet).flatten() {
            match (number, value) {
                (field::SEQUENCE, Value::Number(number)) => sequence = number,
                (field::HEAP_PROFILE, Value::Bytes(message)) => heap = heap_index(message),
                (field::CONFIGURATION, _) => recurs |= std::mem::replace(&mut self.has_configuration, true),
                (field::UUID, _) => recurs |= std::mem::replace(&mut self.has_uuid, true),
                _ => {}
            }
        }
        let last = heap.and_then(|index| self.heaps.insert(sequence, index).map(|last| (last, index)));
        recurs || last.is_some_and(|(last, index)| index <= last)
    }
}

/// Returns the number of a heap profile, if it has one.
fn heap_index(message: &[u8]) -> Option<u64> {
    let index = Fields::new(message).flatten().find(|(number, _)| *number == HEAP_INDEX);
    index.and_then(|(_, value)| value.number())
}

#[cfg(test)]
mod tests {
    use super::{End, HEAP_INDEX, field};
    use crate::protobuf::{put_bytes, put_number};

    /// Returns a packet of a sequence with a field that is a number or, if it is 0, an empty message.
    fn packet(sequence: u64, number: u32, value: u64) -> Vec<u8> {
        let (mut message, mut trace) = (Vec::new(), Vec::new());
        put_number(&mut message, field::SEQUENCE, sequence);
        match value {
            0 => put_bytes(&mut message, number, b""),
            _ => put_number(&mut message, number, value),
        }
        put_bytes(&mut trace, super::PACKET, &message);
        trace
    }

    fn heap(sequence: u64, index: u64) -> Vec<u8> {
        let (mut heap, mut message, mut trace) = (Vec::new(), Vec::new(), Vec::new());
        put_number(&mut heap, HEAP_INDEX, index);
        put_number(&mut message, field::SEQUENCE, sequence);
        put_bytes(&mut message, field::HEAP_PROFILE, &heap);
        put_bytes(&mut trace, super::PACKET, &message);
        trace
    }

    #[test]
    fn another_trace_repeats_what_a_trace_has_once() {
        for repeated in [packet(0, field::UUID, 0), packet(0, field::CONFIGURATION, 0), heap(2, 4)] {
            let trace = [&repeated[..], &packet(2, field::TIMESTAMP, 7), &heap(3, 9)].concat();
            let bytes = trace.repeat(2);
            let end = End::find(&bytes);
            assert_eq!((end.packets, end.rest, end.is_trace), (&trace[..], &trace[..], true), "{repeated:?}");
        }
    }

    #[test]
    fn packets_of_one_trace_follow_each_other() {
        let trace = [heap(2, 4), heap(3, 4), heap(2, 5), packet(2, field::TIMESTAMP, 7).repeat(2)].concat();
        let bytes = [&trace[..], b"\x0a\x7fcut"].concat();
        let end = End::find(&bytes);
        assert_eq!((end.packets, end.rest, end.is_trace), (&trace[..], &b"\x0a\x7fcut"[..], false));
    }
}
