//! The weight of a stack: a non-negative decimal with up to six decimal places.

use std::fmt;

use crate::Error;

const SCALE: u128 = 1_000_000;
const DECIMALS: usize = 6;

/// The weight of a stack: samples, nanoseconds, microseconds, bytes. A profile does not record which.
///
/// It is stored as a whole number of millionths, so that a sum does not depend on the order of its terms or on the
/// number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u128);

impl Weight {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// One unit: the weight of a sample that is counted.
    pub const ONE: Self = Self(SCALE);

    /// Creates a weight of a whole number of units.
    pub const fn new(units: u64) -> Self {
        Self(units as u128 * SCALE)
    }

    /// Creates a weight from millionths of a unit.
    pub const fn from_millionths(millionths: u128) -> Self {
        Self(millionths)
    }

    /// Returns the weight in millionths of a unit.
    pub const fn millionths(self) -> u128 {
        self.0
    }

    /// Parses `digits[.[digits]][e[+-]digits]`, with nothing before or after.
    ///
    /// More than six decimal places are rounded to the nearest. `None` for a number above zero that would be rounded to
    /// zero. awk and Python print large numbers with an exponent, like `4e+09`.
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
        let (mantissa, exponent) = split_exponent(text)?;
        let dot = memchr::memchr(b'.', mantissa).unwrap_or(mantissa.len());
        let (whole, fraction) = (&mantissa[..dot], mantissa.get(dot + 1..).unwrap_or(b""));
        let is_number = !whole.is_empty() && whole.iter().chain(fraction).all(u8::is_ascii_digit);
        // Number of digits above the last decimal place that is stored.
        let used = i64::try_from(whole.len() + DECIMALS).ok()?.checked_add(exponent).filter(|_| is_number)?;
        let is_below = used < 0;
        let used = usize::try_from(used.max(0)).ok()?;
        let mut digits = whole.iter().chain(fraction).map(|byte| u128::from(byte - b'0'));
        let mut millionths = 0u128;
        for digit in digits.clone().chain(std::iter::repeat(0)).take(used) {
            millionths = millionths.checked_mul(10)?.checked_add(digit)?;
        }
        let round_up = !is_below && digits.clone().nth(used).is_some_and(|digit| digit >= 5);
        let rounded = millionths.checked_add(u128::from(round_up))?;
        (rounded > 0 || digits.all(|digit| digit == 0)).then_some(Self(rounded))
    }

    /// Returns the sum, or `None` if it does not fit.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Returns the sum, or the largest weight if that does not fit.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference, or zero if `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// True for zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// True for a whole number of units.
    #[inline]
    pub fn is_whole(self) -> bool {
        match u64::try_from(self.0) {
            Ok(short) => short.is_multiple_of(SCALE as u64),
            Err(_) => self.0.is_multiple_of(SCALE),
        }
    }

    /// Returns the nearest floating-point number, for shares and coordinates.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / SCALE as f64
    }

    /// Appends the shortest decimal that [`parse`](Self::parse) reads as this weight.
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

/// Number of digits of the longest exponent that is read: a larger number does not fit.
const MAX_EXPONENT_DIGITS: usize = 3;

/// Splits a number into its mantissa and its exponent, which is zero if there is none.
fn split_exponent(text: &[u8]) -> Option<(&[u8], i64)> {
    let Some(at) = memchr::memchr2(b'e', b'E', text) else { return Some((text, 0)) };
    let exponent = &text[at + 1..];
    let digits = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
    if digits.is_empty() || digits.len() > MAX_EXPONENT_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some((&text[..at], if exponent.starts_with(b"-") { -value } else { value }))
}

/// The weights of one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// The weight before; zero in a profile that is not differential.
    pub before: Weight,
    /// The weight, or the weight after in a differential profile.
    pub after: Weight,
}

impl Weights {
    /// Creates the weights of a stack in a profile that is not differential.
    pub const fn plain(weight: Weight) -> Self {
        Self { before: Weight::ZERO, after: weight }
    }

    /// True if both weights are whole numbers.
    pub fn are_whole(self) -> bool {
        self.before.is_whole() && self.after.is_whole()
    }

    /// Returns the weight of which shares of a comparison are taken: that before or, if it is 0, the one after.
    pub const fn base(self) -> Weight {
        if self.before.is_zero() { self.after } else { self.before }
    }

    /// Returns the absolute difference of the two weights.
    pub fn difference(self) -> Weight {
        self.after.saturating_sub(self.before).max(self.before.saturating_sub(self.after))
    }

    /// Returns the differences, or zero where `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        let before = self.before.saturating_sub(other.before);
        Self { before, after: self.after.saturating_sub(other.after) }
    }

    /// Adds other weights.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit; the weights are unchanged then.
    pub fn add(&mut self, other: Self) -> Result<(), Error> {
        let sums = (self.before.checked_add(other.before), self.after.checked_add(other.after));
        let (Some(before), Some(after)) = sums else { return Err(Error::Overflow) };
        *self = Self { before, after };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Weight;

    #[test]
    fn parses_and_formats_decimals() {
        for (text, shown) in [
            ("0", "0"),
            ("007", "7"),
            ("12.5", "12.5"),
            ("0.000001", "0.000001"),
            ("1.0000005", "1.000001"),
            ("3.10", "3.1"),
            ("18446744073709551616", "18446744073709551616"),
            ("5.", "5"),
            ("4e+09", "4000000000"),
            ("2.14748e+09", "2147480000"),
            ("1.5E3", "1500"),
            ("125e-3", "0.125"),
            ("4e-7", ""),
            ("6e-7", "0.000001"),
            ("0e999", "0"),
            ("0e-999", "0"),
        ] {
            let parsed = Weight::parse(text.as_bytes()).map(|weight| weight.to_string());
            assert_eq!(parsed.unwrap_or_default(), shown, "{text}");
        }
    }

    #[test]
    fn rejects_other_notations() {
        for text in [
            "",
            ".",
            ".5",
            "-1",
            "+1",
            "e3",
            "1e",
            "1e+",
            "1e1.5",
            "1e99",
            "1e9999",
            "1.2.3",
            "1 ",
            "0x1",
            "1.0000000x",
        ] {
            assert_eq!(Weight::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(Weight::parse(&[b'9'; 60]), None);
    }
}
