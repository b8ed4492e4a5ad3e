//! A limit to the recorder's own share of the CPU: above it fewer samples are taken, below it more again.

use std::time::{Duration, Instant};

/// How often the share is looked at.
const EVERY: Duration = Duration::from_millis(500);
/// No fewer samples are taken than one in so many.
const FEWEST: u32 = 4096;

/// What keeps the share low.
#[derive(Debug)]
pub struct Overhead {
    /// The share of one CPU that is allowed.
    limit: f64,
    /// One sample in so many is taken, and at worst was.
    one_in: u32,
    worst: u32,
    /// When the share was last looked at, and what had been spent by then.
    looked: Option<(Instant, Duration)>,
}

impl Overhead {
    /// With a limit in percent of one CPU.
    pub fn new(percent: f64) -> Self {
        Self { limit: percent / 100.0, one_in: 1, worst: 1, looked: None }
    }

    /// Looks at the time that was spent, and says in how many samples one is to be taken from now on if that changes.
    pub fn look(&mut self, now: Instant, spent: Duration) -> Option<u32> {
        let Some((looked, before)) = self.looked else {
            self.looked = Some((now, spent));
            return None;
        };
        let passed = now.saturating_duration_since(looked);
        if passed < EVERY {
            return None;
        }
        self.looked = Some((now, spent));
        let share = spent.saturating_sub(before).as_secs_f64() / passed.as_secs_f64();
        let next = next(self.one_in, share / self.limit);
        self.worst = self.worst.max(next);
        (next != std::mem::replace(&mut self.one_in, next)).then_some(next)
    }

    /// What the user should know.
    pub fn note(&self) -> Option<String> {
        let (limit, worst) = (self.limit * 100.0, self.worst);
        (worst > 1).then(|| {
            format!("samples were taken more rarely, at worst one in {worst}, to stay below {limit} % of a CPU")
        })
    }
}

/// What the user should know where samples stand for less than half of what was counted.
pub fn sparse(sampled: u128, counted: u64) -> Option<String> {
    let share = sampled as f64 / counted as f64;
    (share < 0.5).then(|| format!("samples stand for {:.1} % of what was counted: the rest is missing", share * 100.0))
}

/// The next rate, where the share is so many times the limit: down at once, up by steps that do not overshoot.
fn next(one_in: u32, times: f64) -> u32 {
    if times > 1.0 {
        let wanted = (f64::from(one_in) * times.min(8.0) * 1.1).ceil() as u32;
        return wanted.min(FEWEST);
    }
    if times < 0.7 { one_in - one_in / 4 - u32::from((2..4).contains(&one_in)) } else { one_in }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{FEWEST, Overhead, next, sparse};

    #[test]
    fn fewer_samples_are_taken_above_the_limit_and_more_below_it() {
        assert_eq!(next(1, 4.0), 5);
        assert_eq!(next(FEWEST, 9.0), FEWEST);
        assert_eq!(next(8, 0.9), 8);
        assert_eq!(next(8, 0.5), 6);
        let mut one_in = 100;
        for _ in 0..20 {
            one_in = next(one_in, 0.1);
        }
        assert_eq!(one_in, 1);
    }

    #[test]
    fn the_share_is_that_of_the_time_since_the_last_look() {
        let (begin, mut overhead) = (Instant::now(), Overhead::new(2.0));
        let mut look = |at, spent| overhead.look(begin + Duration::from_millis(at), Duration::from_millis(spent));
        assert_eq!(look(0, 500), None);
        assert_eq!(look(100, 600), None);
        assert_eq!(look(1000, 540), Some(3));
        assert_eq!(look(2000, 545), Some(2));
        assert_eq!(look(3000, 562), None);
        assert!(overhead.note().unwrap().contains("one in 3, to stay below 2 %"));
    }

    #[test]
    fn samples_that_stand_for_little_are_told_of() {
        assert!(sparse(3, 200).unwrap().contains("1.5 %"));
        assert_eq!(sparse(150, 200), None);
        assert_eq!(sparse(0, 0), None);
    }
}
