//! The difference of two profiles: every stack of either with its weight before and after.

use crate::Error;
use crate::filter::rename;
use crate::profile::{Profile, Weight, Weights};

/// How two profiles are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Scale the profile before to the total of the one after.
    pub normalize: bool,
    /// Make every `0x` address in a frame `0x...`, so that stacks which differ by an address meet.
    pub strip_hex: bool,
}

/// A differential profile with the stacks of both; one that stands in one profile only weighs nothing in the other.
///
/// # Errors
/// [`Error::Overflow`] if a sum does not fit.
///
/// # Example
/// ```
/// use fgkit::{diff, folded, profile::{Profile, Weight, Weights}};
/// let (mut before, mut after) = (Profile::new(false), Profile::new(false));
/// let main = [before.frames.intern(b"main")];
/// before.add(&main, Weights::plain(Weight::new(5)))?;
/// let main = [after.frames.intern(b"main")];
/// after.add(&main, Weights::plain(Weight::new(7)))?;
/// let mut text = Vec::new();
/// folded::write(&diff::diff(&before, &after, diff::Options::default())?, &mut text).expect("memory does not fail");
/// assert_eq!(text, b"main 5 7\n");
/// # Ok::<(), fgkit::Error>(())
/// ```
pub fn diff(before: &Profile, after: &Profile, options: Options) -> Result<Profile, Error> {
    if options.strip_hex {
        let before = rename::frames(before, rename::strip_hex)?;
        let after = rename::frames(after, rename::strip_hex)?;
        return join(&before, &after, options.normalize);
    }
    join(before, after, options.normalize)
}

fn join(before: &Profile, after: &Profile, normalize: bool) -> Result<Profile, Error> {
    let mut both = Profile::new(true);
    let mut scale = normalize.then(|| Scale::between(before, after)).flatten();
    let mut stack = Vec::new();
    before.for_each_sorted(|line| {
        let weight = line.weights.after;
        let weight = scale.as_mut().map_or(Some(weight), |scale| scale.apply(weight)).ok_or(Error::Overflow)?;
        stack.clear();
        stack.extend(line.frames.iter().map(|frame| both.frames.intern(before.frames.name(*frame))));
        both.add(&stack, Weights { before: weight, after: Weight::ZERO })
    })?;
    both.merge(after)?;
    Ok(both)
}

/// A scaling that keeps sums: what rounding takes from one weight is carried to the next, so that the scaled weights
/// add up to the new total, and each part of the sorted profile to its share within one unit.
#[derive(Clone, Copy, Debug)]
struct Scale {
    numerator: u128,
    denominator: u128,
    /// The unit that results are rounded to, in millionths: one where all weights are whole numbers.
    unit: u128,
    carried: u128,
}

impl Scale {
    /// Scales one profile's total to the other's; none where either weighs nothing, for nothing can be scaled to it.
    fn between(before: &Profile, after: &Profile) -> Option<Self> {
        let (from, to) = (before.total().after, after.total().after);
        let unit = if is_whole(before) && is_whole(after) { Weight::ONE.millionths() } else { 1 };
        let (numerator, denominator) = (to.millionths() / unit, from.millionths() / unit);
        (numerator > 0 && denominator > 0 && numerator != denominator).then_some(Self {
            numerator,
            denominator,
            unit,
            // A half, so that what is rounded are nearest numbers and not the ones below.
            carried: denominator / 2,
        })
    }

    /// The scaled weight; `None` if it does not fit.
    fn apply(&mut self, weight: Weight) -> Option<Weight> {
        let (scaled, carried) =
            multiply_divide(weight.millionths() / self.unit, self.numerator, self.denominator, self.carried)?;
        self.carried = carried;
        scaled.checked_mul(self.unit).map(Weight::from_millionths)
    }
}

fn is_whole(profile: &Profile) -> bool {
    let unit = Weight::ONE.millionths();
    let each = |_: &[_], weights: Weights| match weights.after.millionths().is_multiple_of(unit) {
        true => Ok(()),
        false => Err(()),
    };
    profile.for_each(each).is_ok()
}

/// Quotient and remainder of `(a * b + carried) / divisor`, whose product may be longer than 128 bits. `None` if the
/// quotient is, or if the divisor leaves no bit to spare.
fn multiply_divide(a: u128, b: u128, divisor: u128, carried: u128) -> Option<(u128, u128)> {
    if let Some(sum) = a.checked_mul(b).and_then(|product| product.checked_add(carried)) {
        return Some((sum / divisor, sum % divisor));
    }
    if divisor > u128::MAX / 2 {
        return None;
    }
    let (whole, part) = (b / divisor, b % divisor);
    let (mut quotient, mut remainder) = (0u128, 0u128);
    for bit in (0..u128::BITS).rev() {
        quotient = quotient.checked_mul(2)?;
        remainder *= 2;
        if a >> bit & 1 == 1 {
            quotient = quotient.checked_add(whole)?;
            quotient = quotient.checked_add(remainder / divisor)?;
            remainder = remainder % divisor + part;
        }
        quotient = quotient.checked_add(remainder / divisor)?;
        remainder %= divisor;
    }
    remainder += carried;
    Some((quotient.checked_add(remainder / divisor)?, remainder % divisor))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Options, diff, multiply_divide};
    use crate::profile::{Profile, Weight, Weights};

    fn profile(weights: &[u64]) -> Profile {
        let mut profile = Profile::new(false);
        for (number, weight) in weights.iter().enumerate() {
            let frame = profile.frames.intern(format!("f{number}").as_bytes());
            profile.add(&[frame], Weights::plain(Weight::new(*weight))).unwrap();
        }
        profile
    }

    proptest! {
        #[test]
        fn normalizing_gives_both_sides_the_same_total(
            before in prop::collection::vec(0u64..1_000_000, 1..40),
            after in prop::collection::vec(0u64..1_000_000, 1..40),
        ) {
            let (before, after) = (profile(&before), profile(&after));
            prop_assume!(!before.total().after.is_zero() && !after.total().after.is_zero());
            let both = diff(&before, &after, Options { normalize: true, strip_hex: false }).unwrap();
            prop_assert_eq!(both.total().before, both.total().after);
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
    fn a_profile_does_not_differ_from_itself() {
        let a = profile(&[3, 1, 2]);
        for normalize in [false, true] {
            let both = diff(&a, &a, Options { normalize, strip_hex: false }).unwrap();
            both.for_each(|_, weights| (weights.before == weights.after).then_some(()).ok_or(())).unwrap();
        }
    }

    #[test]
    fn what_rounding_takes_from_one_is_given_to_the_next() {
        let both =
            diff(&profile(&[1, 1, 1, 1]), &profile(&[6]), Options { normalize: true, strip_hex: false }).unwrap();
        let mut before = Vec::new();
        both.for_each_sorted::<()>(|stack| {
            before.push(stack.weights.before.to_string());
            Ok(())
        })
        .unwrap();
        assert_eq!(before, ["2", "1", "2", "1"]);
    }
}
