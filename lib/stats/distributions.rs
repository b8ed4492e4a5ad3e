//! Distributions of test statistics, from the incomplete beta function.

use super::beta;

/// Returns the two-sided p-value of Student's t with `freedom` degrees of freedom, given the square of t.
pub fn student_p_value(square: f64, freedom: f64) -> f64 {
    match square > 0.0 {
        true => beta::regularized(freedom / (freedom + square), freedom / 2.0, 0.5),
        false => 1.0,
    }
}

/// Returns the probability that an F-distributed ratio exceeds a value.
pub fn f_tail(value: f64, freedom_above: f64, freedom_below: f64) -> f64 {
    match value > 0.0 {
        true => {
            let share = freedom_below / (freedom_below + freedom_above * value);
            beta::regularized(share, freedom_below / 2.0, freedom_above / 2.0)
        }
        false => 1.0,
    }
}

/// Density of the F distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct FDensity {
    /// Halves of the degrees of freedom.
    halves: (f64, f64),
    /// Logarithm of the beta function of the halves.
    ln_beta: f64,
}

impl FDensity {
    /// Returns the density of a ratio of variances with these degrees of freedom.
    pub fn new(freedom_above: f64, freedom_below: f64) -> Self {
        let halves = (freedom_above / 2.0, freedom_below / 2.0);
        Self { halves, ln_beta: beta::ln_beta(halves.0, halves.1) }
    }

    /// Returns the density at a positive ratio.
    pub fn at(&self, ratio: f64) -> f64 {
        let (above, below) = self.halves;
        let scaled = ratio * above / below;
        (above * scaled.ln() - (above + below) * scaled.ln_1p() - self.ln_beta).exp() / ratio
    }
}

/// Returns the probability that a chi-square exceeds a value: the limit of [`f_tail`].
pub fn chi_square_tail(value: f64, freedom: f64) -> f64 {
    f_tail(value / freedom, freedom, 1e8)
}

/// Returns the p-value of a two-sided binomial test: twice the smaller tail. `chance` is the probability that a count
/// is one of those after.
pub fn binomial_p_value(before: f64, after: f64, chance: f64) -> f64 {
    let at_least = if after > 0.0 { beta::regularized(chance, after, before + 1.0) } else { 1.0 };
    let at_most = if before > 0.0 { beta::regularized(1.0 - chance, before, after + 1.0) } else { 1.0 };
    (2.0 * at_least.min(at_most)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::{FDensity, binomial_p_value, chi_square_tail, f_tail, student_p_value};

    #[test]
    fn equal_tables() {
        // With 8 degrees of freedom, 5 % of Student's distribution lie beyond 2.306.
        assert!((student_p_value(2.306_f64.powi(2), 8.0) - 0.05).abs() < 1e-5);
        assert_eq!(student_p_value(0.0, 8.0), 1.0);
        // 5 % of F with 2 and 10 degrees of freedom lie beyond 4.103, of the chi-square with 4 beyond 9.488.
        assert!((f_tail(4.103, 2.0, 10.0) - 0.05).abs() < 1e-4);
        assert!((chi_square_tail(9.488, 4.0) - 0.05).abs() < 1e-4);
        assert!((binomial_p_value(0.0, 12.0, 0.5) - 2.0 / 4096.0).abs() < 1e-12);
        assert_eq!(binomial_p_value(10.0, 10.0, 0.5), 1.0);
        // A run twice as long has twice the samples.
        assert!(binomial_p_value(1000.0, 2000.0, 2.0 / 3.0) > 0.9);
        // The density is the slope of the tail.
        let slope = (f_tail(1.999, 4.0, 6.0) - f_tail(2.001, 4.0, 6.0)) / 0.002;
        assert!((FDensity::new(4.0, 6.0).at(2.0) - slope).abs() < 1e-6);
    }
}
