//! The counters of a CPU that sample a clock together.
//!
//! The timer of a single counter fires at equal intervals, and the threads that it samples stay in phase with it: in its interrupt
//! the kernel also wakes threads whose sleep is nearly over (their timer slack, 50 µs by default), and they have gone to sleep again
//! when it fires next. Of a thread that works for 100 µs and sleeps for 200, a counter at 4999 Hz saw an eighth of the CPU time,
//! and twice as much of its first half as of its second. Timers whose periods have no small common multiple fire at times that no
//! thread stays in phase with.
//!
//! One error is left: a timer wakes a thread early only if no other one is due until the end of its sleep, so no sample is taken
//! up to then. It is as large as the share of sleeps that the timers end: timer slack times the rate, 5 % at 997 Hz and 25 % at
//! 4999 Hz of what threads do in the first 50 µs. Counters of threads, whose timers stop while the thread sleeps, do not have it.

use std::array;
use std::time::Duration;

/// The number of counters.
pub(in crate::record) const COUNTERS: usize = 4;

/// The share of the samples that each counter takes.
const SHARES: [f64; COUNTERS] = [0.2075, 0.235, 0.2675, 0.29];

/// The longest interval between samples that is divided: up to four times as long passes before the recording starts.
pub(super) const MAX_INTERVAL: u64 = 10_200_000;

/// One of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockPart {
    /// The time between its samples, in nanoseconds.
    pub(super) period: u64,
    /// The time before the recording starts at which it is enabled. The first samples of the counters come at different parts of
    /// their periods, so that a short recording has as many samples as its time is worth.
    pub(super) lead: Duration,
}

/// Returns the counters that take a sample every `interval` nanoseconds on average.
pub(super) fn divide(interval: u64) -> [ClockPart; COUNTERS] {
    array::from_fn(|index| {
        let share = SHARES[index];
        let period = interval as f64 / share;
        let first_sample = period * (index as f64 + 0.5) / COUNTERS as f64;
        ClockPart { period: period.round() as u64, lead: Duration::from_nanos((period - first_sample) as u64) }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::divide;

    #[test]
    fn the_parts_take_as_many_samples_as_one_counter() {
        for (interval, seconds) in [(1_003_009, 1), (10_101_010, 10), (200_040, 1)] {
            let time = seconds * 1_000_000_000;
            let samples = divide(interval).map(|part| {
                let first = part.period - part.lead.as_nanos() as u64;
                1 + (time - first) / part.period
            });
            let difference = samples.iter().sum::<u64>().abs_diff(time / interval);
            assert!(difference <= 2, "{interval}: {difference}");
        }
    }

    #[test]
    fn the_first_samples_are_spread() {
        let mut first = divide(1_000_000).map(|part| (Duration::from_nanos(part.period) - part.lead).as_micros());
        first.sort_unstable();
        assert_eq!(first, [602, 1595, 2336, 3017]);
    }
}
