//! Random numbers for simulated runs.

/// A generator of pseudorandom numbers (xorshift64*).
pub struct Random(pub u64);

impl Random {
    /// Returns a number from 0 to 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a normally distributed number.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Returns a number with about Poisson's distribution.
    pub fn count(&mut self, mean: f64) -> u64 {
        if mean > 30.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0) as u64;
        }
        let (end, mut product, mut count) = ((-mean).exp(), self.uniform(), 0);
        while product > end {
            product *= self.uniform();
            count += 1;
        }
        count
    }
}
