//! Decides whether every switch collects its stack, or only every Nth.

/// The time over which the rate of switches is measured.
const WINDOW_NS: u64 = 40_000_000;
/// The rate must be low for this long before every switch collects its stack again.
const CALM_NS: u64 = 2_000_000_000;

/// Measures the rate of switches.
#[derive(Debug)]
pub struct RateControl {
    /// Above this many events a second, not every one collects its stack.
    max_per_second: u64,
    /// Start of the window, once there is one.
    window_start: Option<u64>,
    /// Events in the window.
    count: u64,
    /// True if every event collects its stack now.
    every_event: bool,
    lost_samples: u64,
    /// True if samples were lost in the window.
    lost_any: bool,
    /// Start of the first window of the current run of windows with a low rate.
    calm_since: Option<u64>,
}

impl RateControl {
    /// Begins with every event.
    pub fn new(max_per_second: u64) -> Self {
        Self {
            max_per_second,
            window_start: None,
            count: 0,
            every_event: true,
            lost_samples: 0,
            lost_any: false,
            calm_since: None,
        }
    }

    /// Counts events of the current interval.
    pub fn count(&mut self, events: u64) {
        self.count += events;
    }

    /// Sets the total number of lost samples. If it has grown, samples come faster than they can be read.
    pub fn set_lost_samples(&mut self, lost: u64) {
        self.lost_any |= lost > self.lost_samples;
        self.lost_samples = lost;
    }

    /// Ends the window if it is over. Returns whether every event collects its stack from now on, if that changes.
    pub fn update(&mut self, now: u64) -> Option<bool> {
        let window_start = *self.window_start.get_or_insert(now);
        let elapsed = now.saturating_sub(window_start);
        if elapsed < WINDOW_NS {
            return None;
        }
        let per_second = u128::from(self.count) * 1_000_000_000 / u128::from(elapsed);
        (self.window_start, self.count) = (Some(now), 0);
        if std::mem::take(&mut self.lost_any) || per_second > u128::from(self.max_per_second) {
            self.calm_since = None;
            return std::mem::take(&mut self.every_event).then_some(false);
        }
        let calm_since = *self.calm_since.get_or_insert(window_start);
        if self.every_event || now.saturating_sub(calm_since) < CALM_NS {
            return None;
        }
        self.every_event = true;
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::RateControl;

    #[test]
    fn a_high_rate_takes_effect_at_once_and_a_low_one_after_a_while() {
        let mut control = RateControl::new(1000);
        let mut changes = Vec::new();
        for tick in 0..60u64 {
            let busy = (10..20).contains(&tick);
            control.count(if busy { 101 } else { 10 });
            if let Some(every_event) = control.update(tick * 100_000_000) {
                changes.push((tick, every_event));
            }
        }
        assert_eq!(changes, [(10, false), (39, true)]);
    }

    #[test]
    fn lost_samples_have_the_effect_of_a_high_rate() {
        let mut control = RateControl::new(1000);
        let mut changes = Vec::new();
        for (tick, lost) in [0, 0, 5, 5].into_iter().enumerate() {
            control.set_lost_samples(lost);
            changes.push(control.update(tick as u64 * 100_000_000));
        }
        assert_eq!(changes, [None, None, Some(false), None]);
    }
}
