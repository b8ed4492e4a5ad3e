//! Sequences of packets: each has tables and defaults of its own.

use super::interned::Interned;
use super::packet::{Packet, field};
use super::threads::parse_thread;
use crate::protobuf::{Fields, Value, read_numbers};

/// The state of a sequence of packets.
#[derive(Default)]
pub(super) struct Sequence<'a> {
    pub(super) interned: Interned<'a>,
    pub(super) thread: (u64, u64),
    /// The track of events that name none.
    pub(super) track: Option<u64>,
    /// The clock of packets that name none.
    pub(super) clock: Option<u64>,
    /// The time in microseconds from which the times of old events count.
    pub(super) reference: u64,
}

impl<'a> Sequence<'a> {
    /// Takes over what a packet says of the sequence.
    pub(super) fn update(&mut self, packet: &Packet<'a>) {
        if packet.is_cleared {
            self.interned = Interned::default();
            (self.track, self.clock) = (None, None);
        }
        packet.interned.iter().for_each(|message| self.interned.add(message));
        if let Some(message) = packet.defaults {
            for (number, value) in Fields::new(message).flatten() {
                match (number, value) {
                    (11, Value::Bytes(inner)) => {
                        let track = Fields::new(inner).flatten().find(|(number, _)| *number == 11);
                        self.track = track.and_then(|(_, value)| value.number());
                    }
                    (field::CLOCK, value) => self.clock = value.number(),
                    _ => {}
                }
            }
        }
        if let Some(message) = packet.thread {
            self.thread = parse_thread(message);
            self.reference = read_numbers(message, [6]).map_or(0, |[reference]| reference);
        }
    }
}
