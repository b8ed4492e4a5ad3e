//! Comparisons of a part with a share of the whole.

/// The largest factor of [`is_at_least`]. Products of smaller numbers than this allows do not overflow.
const MAX_FACTOR: u128 = 1 << 16;

/// True if `part` is at least `numerator / denominator` of `whole`, both in millionths of a unit, of any size. The last digits of
/// numbers that are too large for products do not count.
pub(crate) fn is_at_least(part: u128, (numerator, denominator): (u128, u128), whole: u128) -> bool {
    let scale = if part.max(whole) > u128::MAX / MAX_FACTOR { MAX_FACTOR } else { 1 };
    part / scale * denominator >= whole / scale * numerator
}

#[cfg(test)]
mod tests {
    use super::is_at_least;

    #[test]
    fn parts_of_large_weights_are_compared() {
        for unit in [1, 10_u128.pow(36)] {
            assert!(is_at_least(60 * unit, (3, 5), 100 * unit) && !is_at_least(59 * unit, (3, 5), 100 * unit));
        }
        assert!(is_at_least(u128::MAX, (98, 100), u128::MAX) && !is_at_least(u128::MAX / 2, (98, 100), u128::MAX));
    }
}
