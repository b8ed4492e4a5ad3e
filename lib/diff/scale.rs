//! Scales weights without losing what rounding takes.

use std::str::FromStr;

use crate::Error;
use crate::profile::{Weight, multiply_divide};

/// The scaling of weights before that makes them comparable with those after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// By the number of runs; unchanged if both sides have the same number.
    #[default]
    Runs,
    /// To the total weight after, without lost samples on either side.
    Totals,
    /// By this factor.
    Factor(Weight),
    /// To the same median of the functions' weights, relative to their means.
    Median,
}

impl FromStr for Scaling {
    type Err = &'static str;

    /// Parses `median`, or a positive factor.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text == "median" {
            return Ok(Self::Median);
        }
        let factor = Weight::parse(text.as_bytes()).filter(|factor| !factor.is_zero());
        factor.map(Self::Factor).ok_or("expected a positive number, or median")
    }
}

/// A factor as an exact fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u128,
    denominator: u128,
}

impl Ratio {
    /// The factor 1.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// Returns the fraction, or [`Ratio::ONE`] if numerator or denominator is zero, since nothing can be scaled to an
    /// empty side.
    pub const fn new(numerator: u128, denominator: u128) -> Self {
        match numerator == denominator || numerator == 0 || denominator == 0 {
            true => Self::ONE,
            false => Self { numerator, denominator },
        }
    }

    /// Returns the nearest floating-point number.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// Scales a sequence of weights and carries the rounding error of each to the next.
///
/// The scaled weights add up to the scaled total, and those of any contiguous part of a sorted profile to its share
/// within one unit.
#[derive(Clone, Copy, Debug)]
pub struct Scaler {
    ratio: Ratio,
    unit: u128,
    carried: u128,
}

impl Scaler {
    /// Returns a scaler that rounds to multiples of `unit`.
    pub const fn new(ratio: Ratio, unit: Weight) -> Self {
        // Starting with one half rounds to the nearest unit instead of down.
        Self { ratio, unit: unit.millionths(), carried: ratio.denominator / 2 }
    }

    /// Scales the next weight.
    ///
    /// # Errors
    /// [`Error::Overflow`] if it does not fit.
    pub fn scale_next(&mut self, weight: Weight) -> Result<Weight, Error> {
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

/// Returns the unit to which scaled weights are rounded: 1 if all weights are whole numbers, else the smallest weight.
pub fn rounding_unit(are_whole: bool) -> Weight {
    if are_whole { Weight::ONE } else { Weight::from_millionths(1) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Ratio, Scaler};
    use crate::profile::Weight;

    proptest! {
        #[test]
        fn scaled_weights_add_up_to_the_new_total(
            weights in prop::collection::vec(0u64..1_000_000, 1..40),
            total in 1u64..1_000_000,
        ) {
            let sum: u64 = weights.iter().sum();
            prop_assume!(sum > 0);
            let mut scale = Scaler::new(Ratio::new(total.into(), sum.into()), Weight::ONE);
            let scaled = weights.iter().map(|weight| scale.scale_next(Weight::new(*weight)).unwrap());
            let scaled = scaled.fold(Weight::ZERO, |sum, weight| sum.checked_add(weight).unwrap());
            prop_assert_eq!(scaled, Weight::new(total));
        }
    }

    #[test]
    fn carries_the_rounding_error_to_the_next_weight() {
        let mut scale = Scaler::new(Ratio::new(6, 4), Weight::ONE);
        let scaled = [1, 1, 1, 1].map(|weight| scale.scale_next(Weight::new(weight)).unwrap().to_string());
        assert_eq!(scaled, ["2", "1", "2", "1"]);
    }
}
