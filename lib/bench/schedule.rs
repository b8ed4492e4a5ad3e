//! The order of runs, and the looks at their result.

use super::Side;
use crate::stats::false_discovery::FALSE_DISCOVERY_RATE;

/// Number of pairs before the first look.
const FIRST_LOOK: u32 = 5;

/// Number of pairs before the first look at exact counts: two runs show if counts repeat.
const FIRST_EXACT_LOOK: u32 = 2;

/// Random order of the runs of a pair; each second pair is in the order opposite to the one before.
#[derive(Debug)]
pub struct Order {
    state: u64,
    next: Option<[Side; 2]>,
}

impl Order {
    /// Returns the order for a seed.
    pub fn new(seed: u64) -> Self {
        // A state of zero would stay zero.
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, next: None }
    }

    /// Returns the sides of the next pair in their order.
    pub fn next_pair(&mut self) -> [Side; 2] {
        if let Some(opposite) = self.next.take() {
            return opposite;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let [first, second] = [[Side::Before, Side::After], [Side::After, Side::Before]];
        let (pair, opposite) = if self.state >> 63 == 0 { (first, second) } else { (second, first) };
        self.next = Some(opposite);
        pair
    }
}

/// The looks at the result while runs are made. However many there are, their levels add up to the error rate: the k-th
/// has `6 / (pi k)²` of it (alpha spending; Lan and DeMets, Biometrika 70, 1983).
#[derive(Debug, Default)]
pub struct Looks {
    done: u32,
}

impl Looks {
    /// Returns the level of the look that is due after this number of pairs, if one is: after 5, 10, 20 and so on.
    pub fn level_after(&mut self, pairs: u32, is_exact: impl FnOnce() -> bool) -> Option<f64> {
        let is_due = pairs.is_multiple_of(FIRST_LOOK) && (pairs / FIRST_LOOK).is_power_of_two();
        (is_due || pairs == FIRST_EXACT_LOOK && is_exact()).then(|| self.next_level())
    }

    /// Returns the level of the last look, the whole error rate if it is the only one that was planned.
    pub fn last_level(&mut self, is_only: bool) -> f64 {
        if is_only { FALSE_DISCOVERY_RATE } else { self.next_level() }
    }

    fn next_level(&mut self) -> f64 {
        self.done += 1;
        FALSE_DISCOVERY_RATE * 6.0 / (std::f64::consts::PI * f64::from(self.done)).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::{Looks, Order, Side};

    #[test]
    fn alternates_in_random_blocks() {
        let mut order = Order::new(7);
        let firsts: Vec<Side> = (0..40).map(|_| order.next_pair()[0]).collect();
        assert!(firsts.chunks(2).all(|block| block[0] != block[1]));
        assert!(firsts.chunks(2).any(|block| block[0] == Side::Before));
        assert!(firsts.chunks(2).any(|block| block[0] == Side::After));
    }

    #[test]
    fn levels_add_up_to_the_error_rate() {
        let mut looks = Looks::default();
        let levels: Vec<f64> = (1..=10_000).filter_map(|pairs| looks.level_after(pairs, || false)).collect();
        assert_eq!(levels.len(), 11);
        let sum: f64 = levels.iter().sum::<f64>() + looks.last_level(false);
        assert!(sum < 0.05 && levels[0] > 0.03, "{levels:?}");
        assert_eq!(Looks::default().last_level(true), 0.05);
        assert!(Looks::default().level_after(2, || true).is_some());
    }
}
