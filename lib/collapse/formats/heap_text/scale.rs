//! The heading of a profile, and how its values are scaled to all allocations or contentions.

use crate::collapse::line_helpers::{parse_number, split_once};

/// The sampling of a profile.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sampling {
    pub(super) is_contention: bool,
    /// The mean number of bytes between sampled allocations, of a Poisson process; 0 if all are in the profile.
    period: u64,
    /// The number of contentions that each one in the profile represents.
    contention_period: u64,
    cycles_per_second: u64,
}

impl Sampling {
    /// Parses the first line of a profile.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii();
        if let Some(period) = line.strip_prefix(b"heap_v2/") {
            return Some(Self { period: parse_number(period)?, ..Self::default() });
        }
        if line.starts_with(b"--- contention:") || line.starts_with(b"--- mutex:") {
            return Some(Self { is_contention: true, ..Self::default() });
        }
        let (_, kind) = split_once(line.strip_prefix(b"heap profile:")?, " @ ")?;
        let (kind, period) = split_once(kind, "/").unwrap_or((kind, b"0"));
        let period = parse_number(period)?;
        // Go states twice its period.
        Some(Self { period: if kind == b"heap" { period / 2 } else { period }, ..Self::default() })
    }

    /// Adds a line like `cycles/second = 2000000000`. Returns false if it is none.
    pub(super) fn add_setting(&mut self, line: &[u8]) -> bool {
        let Some((name, value)) = split_once(line, "=") else { return false };
        let number = parse_number(value.trim_ascii());
        match (name.trim_ascii(), number) {
            (b"cycles/second", Some(number)) => self.cycles_per_second = number,
            (b"sampling period", Some(number)) => self.contention_period = number,
            (name, _) => return name.starts_with(b"ms since reset") || name.starts_with(b"discarded samples"),
        }
        true
    }

    /// Returns values of all allocations or contentions.
    pub(super) fn scale(&self, values: [u64; 4]) -> [u64; 4] {
        if self.is_contention {
            let period = self.contention_period.max(1);
            let cycles = u128::from(values[0].saturating_mul(period));
            let delay = match self.cycles_per_second {
                0 => cycles,
                rate => cycles * 1_000_000_000 / u128::from(rate),
            };
            return [u64::try_from(delay).unwrap_or(u64::MAX), values[1].saturating_mul(period), 0, 0];
        }
        let [size, count, all_size, all_count] = values;
        let (size, count) = self.scale_pair(size, count);
        let (all_size, all_count) = self.scale_pair(all_size, all_count);
        [size, count, all_size, all_count]
    }

    /// Scales the size and the number of allocations by the probability that one of their mean size is sampled.
    fn scale_pair(&self, size: u64, count: u64) -> (u64, u64) {
        if count == 0 || size == 0 || self.period <= 1 {
            return (size, count);
        }
        let mean = size as f64 / count as f64;
        let factor = 1.0 / (1.0 - (-mean / self.period as f64).exp());
        ((size as f64 * factor) as u64, (count as f64 * factor) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::Sampling;

    #[test]
    fn scales_sampled_allocations_and_contentions() {
        let sampling = Sampling::parse(b"heap profile: 1: 2 [3: 4] @ heap/1048576").unwrap();
        assert_eq!(sampling.period, 524_288);
        // 512 KiB have the probability 1 - 1/e.
        assert_eq!(sampling.scale([524_288, 1, 0, 0]), [829_411, 1, 0, 0]);
        assert_eq!(Sampling::parse(b"heap_v2/1").unwrap().scale([7, 1, 9, 2]), [7, 1, 9, 2]);
        let mut sampling = Sampling::parse(b"--- contention:").unwrap();
        assert!(sampling.add_setting(b"cycles/second=2000000000") && sampling.add_setting(b"sampling period = 10"));
        assert_eq!(sampling.scale([4_000, 3, 0, 0]), [20_000, 30, 0, 0]);
        assert!(Sampling::parse(b"heap profile").is_none() && Sampling::parse(b"a;b 1").is_none());
    }
}
