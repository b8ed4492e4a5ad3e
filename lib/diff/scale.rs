//! Scaling weights so that their sum is kept.

use crate::Error;
use crate::profile::{Weight, multiply_divide};

/// How the weights before are made comparable with those after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// They are, if each side has as many runs; else by the number of runs.
    #[default]
    Runs,
    /// To the total after.
    Totals,
    /// By a factor.
    By(Weight),
}

/// A factor, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u128,
    denominator: u128,
}

impl Ratio {
    /// Nothing is changed.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// The fraction; [`Ratio::ONE`] if a side is nothing, for nothing can be scaled to it.
    pub const fn new(numerator: u128, denominator: u128) -> Self {
        match numerator == denominator || numerator == 0 || denominator == 0 {
            true => Self::ONE,
            false => Self { numerator, denominator },
        }
    }

    /// The nearest floating-point number.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// Scales one weight after the other. What rounding takes from one is carried to the next, so that the scaled weights
/// add up to the scaled total, and each part of a sorted profile to its share within one unit.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    ratio: Ratio,
    unit: u128,
    carried: u128,
}

impl Scale {
    /// Rounds to multiples of `unit`.
    pub const fn new(ratio: Ratio, unit: Weight) -> Self {
        // A half, so that what is rounded are nearest numbers and not the ones below.
        Self { ratio, unit: unit.millionths(), carried: ratio.denominator / 2 }
    }

    /// The scaled weight.
    ///
    /// # Errors
    /// [`Error::Overflow`] if it does not fit.
    pub fn apply(&mut self, weight: Weight) -> Result<Weight, Error> {
        if self.ratio == Ratio::ONE {
            return Ok(weight);
        }
        let units = weight.millionths() / self.unit;
        let Ratio { numerator, denominator } = self.ratio;
        let (scaled, carried) = multiply_divide(units, numerator, denominator, self.carried).ok_or(Error::Overflow)?;
        self.carried = carried;
        scaled.checked_mul(self.unit).map(Weight::from_millionths).ok_or(Error::Overflow)
    }
}

/// The unit that scaled weights are rounded to: one where all weights are whole numbers, else the smallest there is.
pub fn unit(are_whole: bool) -> Weight {
    if are_whole { Weight::ONE } else { Weight::from_millionths(1) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Ratio, Scale};
    use crate::profile::Weight;

    proptest! {
        #[test]
        fn the_scaled_weights_add_up_to_the_new_total(
            weights in prop::collection::vec(0u64..1_000_000, 1..40),
            total in 1u64..1_000_000,
        ) {
            let sum: u64 = weights.iter().sum();
            prop_assume!(sum > 0);
            let mut scale = Scale::new(Ratio::new(total.into(), sum.into()), Weight::ONE);
            let scaled = weights.iter().map(|weight| scale.apply(Weight::new(*weight)).unwrap());
            let scaled = scaled.fold(Weight::ZERO, |sum, weight| sum.checked_add(weight).unwrap());
            prop_assert_eq!(scaled, Weight::new(total));
        }
    }

    #[test]
    fn what_rounding_takes_from_one_is_given_to_the_next() {
        let mut scale = Scale::new(Ratio::new(6, 4), Weight::ONE);
        let scaled = [1, 1, 1, 1].map(|weight| scale.apply(Weight::new(weight)).unwrap().to_string());
        assert_eq!(scaled, ["2", "1", "2", "1"]);
    }
}
