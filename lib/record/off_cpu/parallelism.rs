//! Time that is shared among the threads that run at the same moment (`--latency`).

use rustc_hash::FxHashMap;

/// Bits behind the binary point of shared time.
const FRACTION_BITS: u32 = 32;

/// A clock that advances by the elapsed time divided by the number of running threads, while any runs.
#[derive(Clone, Debug, Default)]
pub struct SharedClock {
    /// Number of threads that run.
    running: u64,
    /// The time up to which the clock has advanced.
    updated: u64,
    /// Shared nanoseconds, with [`FRACTION_BITS`].
    now: u128,
}

/// The shared time of a thread while it ran, by its samples.
#[derive(Clone, Debug, Default)]
pub struct SharedTime {
    is_running: bool,
    /// The shared time up to which its time is accounted.
    accounted: u128,
    /// The last stack since it came onto its CPU.
    last_stack: Option<u32>,
    by_stack: FxHashMap<u32, StackTime>,
    /// The time of runs without a sample.
    unsampled: u128,
}

/// The time of a stack.
#[derive(Clone, Copy, Debug, Default)]
struct StackTime {
    samples: u64,
    time: u128,
}

/// A share of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeShare {
    /// The stack; `None` if the thread was never sampled.
    pub stack: Option<u32>,
    /// Number of samples.
    pub samples: u64,
    /// The shared time.
    pub nanoseconds: u64,
}

impl SharedClock {
    /// Advances the clock up to `time`, which is not less than before.
    pub fn advance(&mut self, time: u64) {
        let elapsed = u128::from(time.saturating_sub(self.updated));
        if let Some(time) = (elapsed << FRACTION_BITS).checked_div(u128::from(self.running)) {
            self.now += time;
        }
        self.updated = self.updated.max(time);
    }

    /// Notes that a thread runs, or that it does not.
    pub fn set_running(&mut self, thread: &mut SharedTime, is_running: bool) {
        match (thread.is_running, is_running) {
            (false, true) => {
                self.running += 1;
                thread.accounted = self.now;
            }
            (true, false) => {
                self.running -= 1;
                let time = self.now - thread.accounted;
                match thread.last_stack.take() {
                    Some(stack) => thread.by_stack.entry(stack).or_default().time += time,
                    None => thread.unsampled += time,
                }
            }
            _ => {}
        }
        thread.is_running = is_running;
    }

    /// Notes a sample of a thread. It represents the time since the previous one, or since the thread came onto its CPU.
    pub fn add_sample(&self, thread: &mut SharedTime, stack: u32) {
        if !thread.is_running {
            return;
        }
        let entry = thread.by_stack.entry(stack).or_default();
        entry.samples += 1;
        entry.time += self.now - thread.accounted;
        thread.accounted = self.now;
        thread.last_stack = Some(stack);
    }
}

impl SharedTime {
    /// Returns the shares of all stacks. The time of runs without a sample is shared among them.
    pub fn shares(&self) -> Vec<TimeShare> {
        let sampled: u128 = self.by_stack.values().map(|stack| stack.time).sum();
        if sampled == 0 {
            let nanoseconds = to_nanoseconds(self.unsampled);
            return (nanoseconds > 0)
                .then_some(TimeShare { stack: None, samples: 1, nanoseconds })
                .into_iter()
                .collect();
        }
        let shares = self.by_stack.iter().map(|(stack, StackTime { samples, time })| {
            // Nanoseconds are precise enough for the ratio, and their product fits.
            let unsampled =
                (self.unsampled >> FRACTION_BITS) * (time >> FRACTION_BITS) / (sampled >> FRACTION_BITS).max(1);
            let nanoseconds = to_nanoseconds(time + (unsampled << FRACTION_BITS));
            TimeShare { stack: Some(*stack), samples: *samples, nanoseconds }
        });
        let mut shares: Vec<TimeShare> = shares.collect();
        shares.sort_unstable_by_key(|share| share.stack);
        shares
    }
}

fn to_nanoseconds(time: u128) -> u64 {
    u64::try_from(time >> FRACTION_BITS).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{SharedClock, SharedTime, TimeShare};

    fn share(stack: u32, samples: u64, nanoseconds: u64) -> TimeShare {
        TimeShare { stack: Some(stack), samples, nanoseconds }
    }

    #[test]
    fn time_is_shared_by_those_that_run_at_the_same_moment() {
        let (mut clock, mut one, mut two) = (SharedClock::default(), SharedTime::default(), SharedTime::default());
        clock.advance(1000);
        clock.set_running(&mut one, true);
        clock.advance(1100);
        clock.add_sample(&mut one, 7);
        clock.set_running(&mut two, true);
        clock.advance(1300);
        clock.add_sample(&mut one, 8);
        clock.add_sample(&mut two, 9);
        clock.advance(1400);
        clock.set_running(&mut one, false);
        clock.advance(1500);
        clock.set_running(&mut two, false);
        // Nothing runs.
        clock.advance(9000);
        assert_eq!(one.shares(), [share(7, 1, 100), share(8, 1, 100 + 50)]);
        assert_eq!(two.shares(), [share(9, 1, 100 + 50 + 100)]);
    }

    #[test]
    fn runs_without_a_sample_are_shared_among_the_samples() {
        let (mut clock, mut thread) = (SharedClock::default(), SharedTime::default());
        for (start, stacks) in [(0, &[1][..]), (1000, &[]), (2000, &[2, 2, 2])] {
            clock.advance(start);
            clock.set_running(&mut thread, true);
            for (index, stack) in stacks.iter().enumerate() {
                clock.advance(start + 100 * (index as u64 + 1));
                clock.add_sample(&mut thread, *stack);
            }
            clock.advance(start + 400);
            clock.set_running(&mut thread, false);
        }
        assert_eq!(thread.shares(), [share(1, 1, 600), share(2, 3, 600)]);
        let mut thread = SharedTime::default();
        clock.set_running(&mut thread, true);
        clock.add_sample(&mut SharedTime::default(), 5);
        clock.advance(3000);
        clock.set_running(&mut thread, false);
        assert_eq!(thread.shares(), [TimeShare { stack: None, samples: 1, nanoseconds: 600 }]);
    }
}
