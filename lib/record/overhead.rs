//! Limits the CPU time that the recorder itself uses (`--max-overhead`): above the limit it takes fewer samples, below
//! it more again.

use std::time::{Duration, Instant};

/// Time between two measurements.
const INTERVAL: Duration = Duration::from_millis(500);
/// The largest divisor: at least one sample in this many is taken.
const MAX_DIVISOR: u32 = 4096;

/// The divisor of the sample rate that keeps the recorder's CPU usage below a limit.
#[derive(Debug)]
pub struct Overhead {
    /// The allowed share of one CPU, 0 to 1.
    limit: f64,
    /// One sample in this many is taken now.
    divisor: u32,
    /// The largest divisor that was used.
    max_divisor: u32,
    /// Time of the last measurement, and the CPU time that had been used by then.
    last: Option<(Instant, Duration)>,
}

impl Overhead {
    /// Creates a limit, in percent of one CPU.
    pub fn new(percent: f64) -> Self {
        Self { limit: percent / 100.0, divisor: 1, max_divisor: 1, last: None }
    }

    /// Measures the share of a CPU that was used since the last measurement. Returns the new divisor if it changes.
    pub fn update(&mut self, now: Instant, cpu_time: Duration) -> Option<u32> {
        let Some((last, cpu_time_before)) = self.last else {
            self.last = Some((now, cpu_time));
            return None;
        };
        let elapsed = now.saturating_duration_since(last);
        if elapsed < INTERVAL {
            return None;
        }
        self.last = Some((now, cpu_time));
        let share = cpu_time.saturating_sub(cpu_time_before).as_secs_f64() / elapsed.as_secs_f64();
        let divisor = next_divisor(self.divisor, share / self.limit);
        self.max_divisor = self.max_divisor.max(divisor);
        (divisor != std::mem::replace(&mut self.divisor, divisor)).then_some(divisor)
    }

    /// Returns a note for the user if samples were left out.
    pub fn note(&self) -> Option<String> {
        let (limit, divisor) = (self.limit * 100.0, self.max_divisor);
        (divisor > 1)
            .then(|| format!("--max-overhead {limit}: samples were taken at a reduced rate, at worst one in {divisor}"))
    }
}

/// Returns the next divisor, given the used share as a multiple of the limit. It rises at once, and falls in steps that
/// do not overshoot.
fn next_divisor(divisor: u32, usage: f64) -> u32 {
    if usage > 1.0 {
        let wanted = (f64::from(divisor) * usage.min(8.0) * 1.1).ceil() as u32;
        return wanted.min(MAX_DIVISOR);
    }
    if usage < 0.7 { divisor - divisor / 4 - u32::from((2..4).contains(&divisor)) } else { divisor }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{MAX_DIVISOR, Overhead, next_divisor};

    #[test]
    fn takes_fewer_samples_above_the_limit_and_more_below_it() {
        assert_eq!(next_divisor(1, 4.0), 5);
        assert_eq!(next_divisor(MAX_DIVISOR, 9.0), MAX_DIVISOR);
        assert_eq!(next_divisor(8, 0.9), 8);
        assert_eq!(next_divisor(8, 0.5), 6);
        let mut divisor = 100;
        for _ in 0..20 {
            divisor = next_divisor(divisor, 0.1);
        }
        assert_eq!(divisor, 1);
    }

    #[test]
    fn measures_the_share_since_the_last_measurement() {
        let (start, mut overhead) = (Instant::now(), Overhead::new(2.0));
        let mut update =
            |time, cpu_time| overhead.update(start + Duration::from_millis(time), Duration::from_millis(cpu_time));
        assert_eq!(update(0, 500), None);
        assert_eq!(update(100, 600), None);
        assert_eq!(update(1000, 540), Some(3));
        assert_eq!(update(2000, 545), Some(2));
        assert_eq!(update(3000, 562), None);
        let note = overhead.note().unwrap();
        assert_eq!(note, "--max-overhead 2: samples were taken at a reduced rate, at worst one in 3");
    }
}
