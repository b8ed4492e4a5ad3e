//! Quantities with a unit, as profilers print them.

use super::line_helpers::{multiply_weight, parse_scaled, split_word};
use crate::profile::Weight;

/// Names of units, their size in millionths of the base unit, and the base unit. Byte units are powers of 1024.
const UNITS: [(&str, u64, &str); 25] = [
    ("ns", 1, "milliseconds"),
    ("µs", 1_000, "milliseconds"),
    ("us", 1_000, "milliseconds"),
    ("ms", 1_000_000, "milliseconds"),
    ("s", 1_000_000_000, "milliseconds"),
    ("min", 60_000_000_000, "milliseconds"),
    ("mins", 60_000_000_000, "milliseconds"),
    ("h", 3_600_000_000_000, "milliseconds"),
    ("hrs", 3_600_000_000_000, "milliseconds"),
    ("Bytes", 1_000_000, "bytes"),
    ("B", 1_000_000, "bytes"),
    ("KB", 1_000_000 << 10, "bytes"),
    ("kB", 1_000_000 << 10, "bytes"),
    ("KiB", 1_000_000 << 10, "bytes"),
    ("MB", 1_000_000 << 20, "bytes"),
    ("MiB", 1_000_000 << 20, "bytes"),
    ("GB", 1_000_000 << 30, "bytes"),
    ("GiB", 1_000_000 << 30, "bytes"),
    ("TB", 1_000_000 << 40, "bytes"),
    ("cycles", 1_000_000, "cycles"),
    ("c", 1_000_000, "cycles"),
    ("Kc", 1_000_000_000, "cycles"),
    ("Mc", 1_000_000_000_000, "cycles"),
    ("Gc", 1_000_000_000_000_000, "cycles"),
    ("", 1_000_000, "samples"),
];

/// Parses `7.00 s`, `404.75 Mc` or `1.2kB`; returns the amount in the base unit, and that unit. A dash is zero.
pub(super) fn parse_quantity(text: &[u8]) -> Option<(Weight, &'static str)> {
    if text == b"-" {
        return Some((Weight::ZERO, "samples"));
    }
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && !b".,".contains(byte)).unwrap_or(text.len());
    let number: Vec<u8> = text[..end].iter().copied().filter(|byte| *byte != b',').collect();
    let unit = split_word(&text[end..]).0;
    let (_, millionths, base) = UNITS.iter().find(|(name, ..)| name.as_bytes() == unit)?;
    let exact = multiply_weight(parse_scaled(&number, 6)?, *millionths)?;
    Some((Weight::from_millionths(exact.millionths() / 1_000_000_000_000), base))
}

#[cfg(test)]
mod tests {
    use super::parse_quantity;

    #[test]
    fn converts_to_base_units_exactly() {
        for (text, amount, unit) in [
            ("7.00 s", "7000", "milliseconds"),
            ("140ms", "140", "milliseconds"),
            ("404.75 Mc", "404750000", "cycles"),
            ("1.50kB", "1536", "bytes"),
            ("1,234", "1234", "samples"),
            ("-", "0", "samples"),
        ] {
            let (weight, base) = parse_quantity(text.as_bytes()).unwrap();
            assert_eq!((weight.to_string().as_str(), base), (amount, unit));
        }
        assert!(
            parse_quantity(b"1 parsec").is_none() && parse_quantity(b"x").is_none() && parse_quantity(b"").is_none()
        );
    }
}
