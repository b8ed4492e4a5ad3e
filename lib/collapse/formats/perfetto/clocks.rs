//! The clocks of a trace. A sequence of packets can have clocks of its own, with coarse units or with times that count from
//! the packet before.

use rustc_hash::FxHashMap;

use crate::protobuf::{read_messages, read_numbers};

/// The clock of the trace's time.
const BOOTTIME: u64 = 6;

/// The IDs of clocks that each sequence has for itself. Those below are clocks of the system.
const CLOCKS_OF_SEQUENCES: std::ops::Range<u64> = 64..128;

/// The clocks that have been compared with the clock of the trace, by their sequence and ID.
#[derive(Default)]
pub(super) struct Clocks(FxHashMap<(u64, u64), Clock>);

/// A clock of a trace, and how to convert its times.
struct Clock {
    /// The unit of its times, in nanoseconds.
    unit: u64,
    /// The last time, if each time counts from the one before.
    last: Option<u64>,
    /// The nanoseconds that are added to its times to get those of the trace.
    offset: i128,
}

impl Clocks {
    /// Adds a snapshot, which has the times of several clocks at one moment. One of them must be the clock of the trace, or
    /// a clock of the system: if it has not been compared with that of the trace, it is taken for it.
    pub(super) fn add_snapshot(&mut self, sequence: u64, message: &[u8]) {
        let clocks: Vec<[u64; 4]> =
            read_messages(message, 1).filter_map(|clock| read_numbers(clock, [1, 2, 3, 4])).collect();
        let of_trace = clocks.iter().find(|[id, ..]| *id == BOOTTIME);
        let reference = of_trace.or_else(|| clocks.iter().find(|[id, ..]| *id < CLOCKS_OF_SEQUENCES.start));
        let Some(reference) = reference else { return };
        let known = self.0.get(&key(sequence, reference[0])).filter(|_| reference[0] != BOOTTIME);
        let now = time(reference) + known.map_or(0, |clock| clock.offset);
        for clock in &clocks {
            let [id, last, is_incremental, unit] = *clock;
            let last = (is_incremental != 0).then_some(last);
            self.0.insert(key(sequence, id), Clock { unit: unit.max(1), last, offset: now - time(clock) });
        }
    }

    /// Returns the time of the trace, in nanoseconds, for a timestamp of a packet. The time of an unknown clock is
    /// returned as it is.
    pub(super) fn convert(&mut self, sequence: u64, id: Option<u64>, timestamp: u64) -> u64 {
        let Some(clock) = self.0.get_mut(&key(sequence, id.unwrap_or(BOOTTIME))) else { return timestamp };
        let mut time = timestamp;
        if let Some(last) = &mut clock.last {
            *last = last.wrapping_add(timestamp);
            time = *last;
        }
        u64::try_from(i128::from(time) * i128::from(clock.unit) + clock.offset).unwrap_or(0)
    }
}

/// Returns the time of a clock in a snapshot, in nanoseconds.
fn time([_, time, _, unit]: &[u64; 4]) -> i128 {
    i128::from(*time) * i128::from((*unit).max(1))
}

fn key(sequence: u64, id: u64) -> (u64, u64) {
    (if CLOCKS_OF_SEQUENCES.contains(&id) { sequence } else { 0 }, id)
}

#[cfg(test)]
mod tests {
    use super::Clocks;
    use crate::protobuf::{put_bytes, put_number};

    fn snapshot(clocks: &[[u64; 4]]) -> Vec<u8> {
        let mut message = Vec::new();
        for clock in clocks {
            let mut inner = Vec::new();
            (1..).zip(clock).for_each(|(field, number)| put_number(&mut inner, field, *number));
            put_bytes(&mut message, 1, &inner);
        }
        message
    }

    #[test]
    fn converts_times_of_clocks_of_sequences() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.convert(1, Some(64), 7), 7);
        clocks.add_snapshot(1, &snapshot(&[[6, 5_000_000, 0, 0], [3, 2_000_000, 0, 0], [64, 1000, 1, 1000]]));
        assert_eq!((clocks.convert(1, None, 7), clocks.convert(2, Some(6), 8)), (7, 8));
        assert_eq!(clocks.convert(2, Some(3), 2_000_001), 5_000_001);
        assert_eq!((clocks.convert(1, Some(64), 5), clocks.convert(1, Some(64), 5)), (5_005_000, 5_010_000));
        assert_eq!(clocks.convert(2, Some(64), 5), 5);
        // Chrome compares the clocks of a sequence with the monotonic clock only.
        clocks.add_snapshot(2, &snapshot(&[[3, 2_500_000, 0, 0], [64, 10, 1, 1000]]));
        assert_eq!((clocks.convert(2, Some(64), 5), clocks.convert(2, Some(3), 0)), (5_505_000, 3_000_000));
    }
}
