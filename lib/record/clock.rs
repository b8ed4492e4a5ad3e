//! The clocks of a recording. Counters stamp their records with the monotonic clock, `CLOCK_MONOTONIC`.

use rustix::time::ClockId;

use crate::perf::export::perf_script::Clock;

/// Returns the time of the counters' clock, in nanoseconds.
pub fn now() -> u64 {
    read_clock(ClockId::Monotonic)
}

/// Returns how many nanoseconds a clock is ahead of the counters' clock. Both run at the same rate, so the difference
/// only changes when the time of day is set.
pub fn offset_from_monotonic(clock: Clock) -> u64 {
    match clock {
        Clock::Monotonic => 0,
        Clock::Realtime => {
            // If we are delayed between the readings, the midpoint of the outer two is wrong by at most half the delay.
            let (before, realtime, after) = (now(), read_clock(ClockId::Realtime), now());
            realtime.saturating_sub(before + (after - before) / 2)
        }
    }
}

fn read_clock(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
