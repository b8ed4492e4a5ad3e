//! The sum of weights of each stack.

use super::weight::Weight;

/// Sums of weights by stack number, 8 bytes each as long as all of them fit, else 16.
#[derive(Debug)]
pub(super) enum WeightSums {
    /// Sums in millionths, below 2⁶⁴: up to five hours in nanoseconds.
    Narrow(Vec<u64>),
    Wide(Vec<Weight>),
}

impl WeightSums {
    /// Creates `count` sums of zero.
    pub(super) fn zeros(count: usize) -> Self {
        Self::Narrow(vec![0; count])
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Narrow(sums) => sums.len(),
            Self::Wide(sums) => sums.len(),
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<Weight> {
        match self {
            Self::Narrow(sums) => sums.get(number).map(|sum| Weight::from_millionths((*sum).into())),
            Self::Wide(sums) => sums.get(number).copied(),
        }
    }

    /// Sets a sum, or appends one if `number` is the number of sums.
    pub(super) fn set(&mut self, number: usize, weight: Weight) {
        match (&mut *self, u64::try_from(weight.millionths())) {
            (Self::Narrow(sums), Ok(sum)) => set_or_push(sums, number, sum),
            (Self::Wide(sums), _) => set_or_push(sums, number, weight),
            (Self::Narrow(sums), Err(_)) => {
                *self = Self::Wide(sums.iter().map(|sum| Weight::from_millionths((*sum).into())).collect());
                self.set(number, weight);
            }
        }
    }

    /// Adds to a sum, or appends one if `number` is the number of sums. `None` if the sum overflows.
    #[inline]
    pub(super) fn add(&mut self, number: usize, weight: Weight) -> Option<()> {
        if let (Self::Narrow(sums), Ok(more)) = (&mut *self, u64::try_from(weight.millionths()))
            && let Some(sum) = sums.get_mut(number)
            && let Some(larger) = sum.checked_add(more)
        {
            *sum = larger;
            return Some(());
        }
        let sum = self.get(number).unwrap_or_default().checked_add(weight)?;
        self.set(number, sum);
        Some(())
    }
}

fn set_or_push<T>(list: &mut Vec<T>, number: usize, value: T) {
    match list.get_mut(number) {
        Some(slot) => *slot = value,
        None => list.push(value),
    }
}

impl Default for WeightSums {
    fn default() -> Self {
        Self::zeros(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Weight, WeightSums};

    #[test]
    fn widens_sums_without_changing_them() {
        let (mut sums, large) = (WeightSums::zeros(1), Weight::from_millionths(u64::MAX.into()));
        for (number, weight) in [(0, Weight::ONE), (1, large), (0, Weight::from_millionths(1))] {
            sums.add(number, weight).unwrap();
        }
        assert!(matches!(sums, WeightSums::Narrow(_)));
        assert_eq!(sums.get(1), Some(large));
        sums.add(1, Weight::from_millionths(1)).unwrap();
        sums.add(2, Weight::ONE).unwrap();
        assert!(matches!(sums, WeightSums::Wide(_)));
        let millionths: Vec<u128> = (0..3).map(|number| sums.get(number).unwrap().millionths()).collect();
        assert_eq!(millionths, [1_000_001, 1 << 64, 1_000_000]);
        assert_eq!((sums.len(), sums.get(3)), (3, None));
        assert_eq!(sums.add(0, Weight::from_millionths(u128::MAX)), None);
        sums.set(0, Weight::ZERO);
        assert_eq!(sums.get(0), Some(Weight::ZERO));
    }
}
