//! What a stack weighs: a non-negative decimal, exact to six places.

use std::fmt;

const SCALE: u128 = 1_000_000;
const DECIMALS: usize = 6;

/// The weight of a stack: samples, nanoseconds, microseconds, bytes; the profile does not say which.
///
/// Held as a whole number of millionths, so that sums are the same whatever their order and the number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u128);

impl Weight {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// One sample.
    pub const ONE: Self = Self(SCALE);

    /// A whole number of units.
    pub const fn new(units: u64) -> Self {
        Self(units as u128 * SCALE)
    }

    /// A number of millionths of a unit.
    pub const fn from_millionths(millionths: u128) -> Self {
        Self(millionths)
    }

    /// The weight in millionths of a unit.
    pub const fn millionths(self) -> u128 {
        self.0
    }

    /// Reads `digits[.digits]`, nothing before or after. Places beyond the sixth are rounded to the nearest; what would
    /// become nothing by that is no weight.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        if text.len() <= 19 {
            let mut whole = 0u64;
            if text.iter().all(|byte| byte.is_ascii_digit()) {
                for byte in text {
                    whole = whole * 10 + u64::from(byte - b'0');
                }
                return Some(Self::new(whole));
            }
        }
        Self::parse_decimal(text)
    }

    fn parse_decimal(text: &[u8]) -> Option<Self> {
        let dot = memchr::memchr(b'.', text).unwrap_or(text.len());
        let (whole, fraction) = (&text[..dot], text.get(dot + 1..).unwrap_or(b""));
        if whole.is_empty() || (dot < text.len() && fraction.is_empty()) {
            return None;
        }
        let kept = &fraction[..fraction.len().min(DECIMALS)];
        let mut millionths = 0u128;
        for byte in whole.iter().chain(kept) {
            millionths = millionths.checked_mul(10)?.checked_add(u128::from(digit(*byte)?))?;
        }
        for _ in kept.len()..DECIMALS {
            millionths = millionths.checked_mul(10)?;
        }
        let rest = &fraction[kept.len()..];
        if !rest.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let round_up = u128::from(rest.first().is_some_and(|byte| *byte >= b'5'));
        let rounded = millionths.checked_add(round_up)?;
        (rounded > 0 || rest.iter().all(|byte| *byte == b'0')).then_some(Self(rounded))
    }

    /// The sum, or `None` if it does not fit.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The difference, or zero where `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Whether it weighs nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether it is a whole number of units.
    #[inline]
    pub fn is_whole(self) -> bool {
        match u64::try_from(self.0) {
            Ok(short) => short.is_multiple_of(SCALE as u64),
            Err(_) => self.0.is_multiple_of(SCALE),
        }
    }

    /// The nearest floating-point number, for shares and coordinates.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / SCALE as f64
    }

    /// Appends the shortest decimal that reads back as this weight.
    pub fn write_to(self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        let fraction = match u64::try_from(self.0) {
            Ok(short) => {
                out.extend_from_slice(digits.format(short / SCALE as u64).as_bytes());
                short % SCALE as u64
            }
            Err(_) => {
                out.extend_from_slice(digits.format(self.0 / SCALE).as_bytes());
                (self.0 % SCALE) as u64
            }
        };
        if fraction != 0 {
            let digits = format!(".{fraction:06}");
            out.extend_from_slice(digits.trim_end_matches('0').as_bytes());
        }
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_to(&mut text);
        f.pad(&String::from_utf8_lossy(&text))
    }
}

fn digit(byte: u8) -> Option<u8> {
    byte.is_ascii_digit().then(|| byte - b'0')
}

#[cfg(test)]
mod tests {
    use super::Weight;

    #[test]
    fn reads_and_writes_decimals() {
        for (text, shown) in [
            ("0", "0"),
            ("007", "7"),
            ("12.5", "12.5"),
            ("0.000001", "0.000001"),
            ("1.0000005", "1.000001"),
            ("3.10", "3.1"),
            ("18446744073709551616", "18446744073709551616"),
        ] {
            assert_eq!(Weight::parse(text.as_bytes()).expect(text).to_string(), shown);
        }
    }

    #[test]
    fn refuses_what_is_not_a_plain_decimal() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1.2.3", "1 ", "0x1", "1.0000000x"] {
            assert_eq!(Weight::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(Weight::parse(&[b'9'; 60]), None);
    }
}
