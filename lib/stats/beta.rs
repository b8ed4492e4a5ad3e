//! The incomplete beta function, from which binomial and Student's distributions follow.

/// Most terms of the continued fraction; it needs about the square root of the larger argument.
const STEPS: usize = 20_000;

/// Relative change between two terms at which the continued fraction ends.
const ACCURACY: f64 = 1e-13;

/// Returns the regularized incomplete beta function `I_x(a, b)`, for positive `a` and `b` and `x` from 0 to 1.
pub fn regularized(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b)).exp();
    // The continued fraction converges fast below the mean; above it, the symmetry I_x(a, b) = 1 - I_(1-x)(b, a) helps.
    match x < (a + 1.0) / (a + b + 2.0) {
        true => front * fraction(x, a, b) / a,
        false => 1.0 - front * fraction(1.0 - x, b, a) / b,
    }
}

/// Evaluates the continued fraction by Lentz's method (Numerical Recipes, section 6.4).
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in 1..STEPS {
        let m = step as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            result *= c * d;
        }
        if (c * d - 1.0).abs() < ACCURACY {
            break;
        }
    }
    result
}

/// Returns the value, or a tiny number if it is too close to zero to divide by.
fn away_from_zero(value: f64) -> f64 {
    if value.abs() < 1e-300 { 1e-300 } else { value }
}

/// Returns the logarithm of the beta function of positive numbers.
pub fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Returns the logarithm of the gamma function of a positive number, by Stirling's series after shifting it beyond 10.
fn ln_gamma(x: f64) -> f64 {
    let mut shift = 0.0;
    let mut z = x;
    while z < 10.0 {
        shift += z.ln();
        z += 1.0;
    }
    let square = z * z;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / z;
    (z - 0.5) * z.ln() - z + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::regularized;

    /// Sums up `P(X >= b)` for `n` trials with probability `q`.
    fn tail(n: u32, b: u32, q: f64) -> f64 {
        let mut term = (1.0 - q).powi(n as i32);
        let mut sum = 0.0;
        for k in 0..=n {
            if k >= b {
                sum += term;
            }
            term *= f64::from(n - k) / f64::from(k + 1) * q / (1.0 - q);
        }
        sum
    }

    #[test]
    fn equals_the_binomial_tail() {
        for (n, b, q) in [(10, 3, 0.5), (12, 12, 0.5), (100, 70, 0.5), (50, 1, 0.03), (200, 20, 0.1), (40, 39, 0.9)] {
            let (exact, found) = (tail(n, b, q), regularized(q, f64::from(b), f64::from(n - b + 1)));
            assert!((exact - found).abs() < 1e-10 * exact, "{n} {b} {q}: {exact} {found}");
        }
    }

    #[test]
    fn is_exact_for_large_counts() {
        // The median of a symmetric distribution.
        let found = regularized(0.5, 1e6, 1e6);
        assert!((found - 0.5).abs() < 1e-9, "{found}");
    }
}
