//! Multiplies and divides with an intermediate product of more than 128 bits.

/// Returns the quotient and the remainder of `(a * b + carried) / divisor`.
///
/// The product may exceed 128 bits. `None` if the quotient does, or if the product does and `divisor` is 2¹²⁷ or more.
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

    use super::multiply_divide;

    proptest! {
        #[test]
        fn long_products_give_the_quotients_of_short_ones(a in any::<u64>(), b in any::<u64>(), d in 1u64.., c in any::<u64>()) {
            let (a, b, d, c) = (u128::from(a), u128::from(b), u128::from(d), u128::from(c % d));
            let short = ((a * b + c) / d, (a * b + c) % d);
            prop_assert_eq!(multiply_divide(a, b, d, c), Some(short));
            // The same fraction, expanded so that its product does not fit.
            let (a, wide) = (a % d, 1u128 << 62);
            let quotient = multiply_divide(a * wide, b * wide, d * wide, 0).map(|(quotient, _)| quotient / wide);
            prop_assert_eq!(quotient, Some(a * b / d));
        }
    }
}
