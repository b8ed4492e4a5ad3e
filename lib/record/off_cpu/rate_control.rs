//! When stacks are taken at every switch, and when only at some.

/// How long switches are counted before their rate is believed.
const WINDOW_NS: u64 = 40_000_000;
/// For how long there must be few again.
const CALM_NS: u64 = 2_000_000_000;

/// Counts switches.
#[derive(Debug)]
pub(super) struct Pace {
    /// So many a second are many.
    many: u64,
    /// The period where there are many.
    pub(super) sparse: u64,
    since: Option<u64>,
    count: u64,
    every: bool,
    known_lost: u64,
    too_fast: bool,
    /// Since when there are few.
    calm: Option<u64>,
}

impl Pace {
    pub(super) fn new(many: u64, sparse: u64) -> Self {
        Self { many, sparse, since: None, count: 0, every: true, known_lost: 0, too_fast: false, calm: None }
    }

    /// One more.
    pub(super) fn count(&mut self) {
        self.count += 1;
    }

    /// So many samples were lost up to now: they come faster than they can be read.
    pub(super) fn lost(&mut self, lost: u64) {
        self.too_fast |= lost > self.known_lost;
        self.known_lost = lost;
    }

    /// Whether each switch is to bring its stack from now on, if that changes.
    pub(super) fn every(&mut self, now: u64) -> Option<bool> {
        let since = *self.since.get_or_insert(now);
        let passed = now.saturating_sub(since);
        if passed < WINDOW_NS {
            return None;
        }
        let rate = u128::from(self.count) * 1_000_000_000 / u128::from(passed);
        (self.since, self.count) = (Some(now), 0);
        if std::mem::take(&mut self.too_fast) || rate > u128::from(self.many) {
            self.calm = None;
            return std::mem::take(&mut self.every).then_some(false);
        }
        let calm = *self.calm.get_or_insert(since);
        if self.every || now.saturating_sub(calm) < CALM_NS {
            return None;
        }
        self.every = true;
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn many_switches_change_the_pace_at_once_and_few_after_a_while() {
        let mut pace = Pace::new(1000, 17);
        let mut changes = Vec::new();
        for tick in 0..60u64 {
            let busy = (10..20).contains(&tick);
            (0..if busy { 101 } else { 10 }).for_each(|_| pace.count());
            if let Some(every) = pace.every(tick * 100_000_000) {
                changes.push((tick, every));
            }
        }
        assert_eq!(changes, [(10, false), (39, true)]);
    }

    #[test]
    fn samples_that_are_lost_are_too_many() {
        let mut pace = Pace::new(1000, 17);
        let tick = |pace: &mut Pace, lost, time: u64| {
            pace.lost(lost);
            pace.every(time * 100_000_000)
        };
        assert_eq!(
            [(0, 0), (0, 1), (5, 2), (5, 3)].map(|(lost, time)| tick(&mut pace, lost, time)),
            [None, None, Some(false), None]
        );
    }
}
