//! Scaling weights so that their sum is kept.

use crate::Error;
use crate::profile::Weight;

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

/// Quotient and remainder of `(a * b + carried) / divisor`, whose product may be longer than 128 bits. `None` if the
/// quotient is, or if the divisor leaves no bit to spare.
pub fn multiply_divide(a: u128, b: u128, divisor: u128, carried: u128) -> Option<(u128, u128)> {
    if let Some(sum) = a.checked_mul(b).and_then(|product| product.checked_add(carried)) {
        return Some((sum / divisor, sum % divisor));
    }
    if divisor > u128::MAX / 2 {
        return None;
    }
    let (whole, part) = (b / divisor, b % divisor);
    let (mut quotient, mut remainder) = (0u128, 0u128);
    for bit in (0..u128::BITS).rev() {
        let added = u128::from(a >> bit & 1 == 1);
        let sum = remainder * 2;
        quotient = quotient.checked_mul(2)?.checked_add(whole * added)?.checked_add(sum / divisor)?;
        let sum = sum % divisor + part * added;
        quotient = quotient.checked_add(sum / divisor)?;
        remainder = sum % divisor;
    }
    let sum = remainder + carried;
    Some((quotient.checked_add(sum / divisor)?, sum % divisor))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Ratio, Scale, multiply_divide};
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

        #[test]
        fn long_products_divide_as_short_ones_do(a in any::<u64>(), b in any::<u64>(), d in 1u64.., c in any::<u64>()) {
            let (a, b, d, c) = (u128::from(a), u128::from(b), u128::from(d), u128::from(c % d));
            let short = ((a * b + c) / d, (a * b + c) % d);
            prop_assert_eq!(multiply_divide(a, b, d, c), Some(short));
            // The same fraction, so enlarged that its product does not fit.
            let (a, wide) = (a % d, 1u128 << 62);
            let quotient = multiply_divide(a * wide, b * wide, d * wide, 0).map(|(quotient, _)| quotient / wide);
            prop_assert_eq!(quotient, Some(a * b / d));
        }
    }

    #[test]
    fn what_rounding_takes_from_one_is_given_to_the_next() {
        let mut scale = Scale::new(Ratio::new(6, 4), Weight::ONE);
        let scaled = [1, 1, 1, 1].map(|weight| scale.apply(Weight::new(weight)).unwrap().to_string());
        assert_eq!(scaled, ["2", "1", "2", "1"]);
    }
}
