//! Parses values as `jfr print` writes them: times, durations, sizes.

use bstr::ByteSlice as _;

use crate::collapse::calendar::days_since_1970;
use crate::collapse::filter::args::parse_seconds;
use crate::collapse::line_helpers::{multiply_weight, parse_number, parse_scaled, split_once, split_words};
use crate::profile::Weight;

/// Units of durations, as powers of ten of a nanosecond and a factor; and of sizes.
const UNITS: [(&[u8], u32, u64); 15] = [
    (b"ns", 0, 1),
    (b"us", 3, 1),
    (b"\xc2\xb5s", 3, 1),
    (b"\xce\xbcs", 3, 1),
    (b"ms", 6, 1),
    (b"s", 9, 1),
    (b"m", 9, 60),
    (b"h", 9, 3600),
    (b"d", 9, 86_400),
    (b"bytes", 0, 1),
    (b"byte", 0, 1),
    (b"kB", 0, 1 << 10),
    (b"MB", 0, 1 << 20),
    (b"GB", 0, 1 << 30),
    (b"TB", 0, 1 << 40),
];

/// Parses `30.1 ms`, `1 m 3 s`, `1.9 MB` or a number. Durations are in nanoseconds, sizes in bytes. A missing or infinite
/// value is 0.
pub(in crate::collapse::formats) fn parse_amount(text: &[u8]) -> Option<Weight> {
    if matches!(text, b"N/A" | b"Forever" | b"null") || text.starts_with(b"-") {
        return Some(Weight::ZERO);
    }
    let mut words = split_words(text).peekable();
    let mut sum = Weight::ZERO;
    words.peek()?;
    while let Some(number) = words.next() {
        // The unit follows a blank, or the number itself: `20ms`.
        let end = number.iter().position(|byte| byte.is_ascii_alphabetic()).unwrap_or(number.len());
        let (number, unit) = (to_ascii(&number[..end]), Some(&number[end..]).filter(|unit| !unit.is_empty()));
        let (_, places, factor) = match unit.or_else(|| words.next()) {
            Some(unit) => UNITS.iter().find(|(name, ..)| *name == unit)?,
            None => &UNITS[0],
        };
        sum = sum.checked_add(multiply_weight(parse_scaled(&number, *places)?, *factor)?)?;
    }
    Some(sum)
}

/// The zeros of scripts in which Java writes numbers; nine digits follow each.
const ZEROS: [char; 5] = ['\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{1040}'];

/// Replaces the digits of other scripts, and a decimal comma, as the JVM's language has them.
fn to_ascii(number: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(number) {
        Ok(text) if !text.is_ascii() => text.chars().map(to_ascii_digit).collect::<String>().into_bytes(),
        _ => number.replace(b",", b"."),
    }
}

fn to_ascii_digit(character: char) -> char {
    let mut distances = ZEROS.iter().filter_map(|zero| (character as u32).checked_sub(*zero as u32));
    match distances.find(|digit| *digit < 10) {
        Some(digit) => char::from_digit(digit, 10).unwrap_or(character),
        None if matches!(character, ',' | '\u{66b}') => '.',
        None => character,
    }
}

/// Parses a duration of ISO 8601: `PT1H2M0.030080913S`. Returns nanoseconds; a negative one is 0.
pub(in crate::collapse::formats) fn parse_iso_duration(text: &[u8]) -> Option<Weight> {
    let mut rest = text.strip_prefix(b"PT")?;
    let mut sum = Weight::ZERO;
    while !rest.is_empty() {
        let end = rest.iter().position(u8::is_ascii_alphabetic)?;
        let factor = match rest[end] {
            b'H' => 3600,
            b'M' => 60,
            b'S' => 1,
            _ => return None,
        };
        if rest[0] == b'-' {
            return Some(Weight::ZERO);
        }
        sum = sum.checked_add(multiply_weight(parse_scaled(&rest[..end], 9)?, factor)?)?;
        rest = &rest[end + 1..];
    }
    Some(sum)
}

/// Parses `23:49:17.712` or `23:49:17.712 (2026-11-23)`; returns nanoseconds since midnight or since 1970.
pub(in crate::collapse::formats) fn parse_time(text: &[u8]) -> Option<u64> {
    let (clock, date) = split_once(text, " (").unwrap_or((text, b""));
    let days = if date.is_empty() { 0 } else { parse_date(date.strip_suffix(b")")?)? };
    days.checked_mul(86_400_000_000_000)?.checked_add(parse_clock(clock)?)
}

/// Parses `2026-11-23T23:49:17.712183881Z`, or with a zone such as `+01:00`; returns nanoseconds since 1970.
pub(in crate::collapse::formats) fn parse_iso_time(text: &[u8]) -> Option<u64> {
    let (date, clock) = split_once(text, "T")?;
    let zone = clock.iter().position(|byte| matches!(byte, b'Z' | b'+' | b'-'))?;
    let (clock, zone) = clock.split_at(zone);
    let local = parse_date(date)?.checked_mul(86_400_000_000_000)?.checked_add(parse_clock(clock)?)?;
    if zone == b"Z" {
        return Some(local);
    }
    let (hours, minutes) = split_once(&zone[1..], ":")?;
    let minutes = parse_number(hours)?.checked_mul(60)?.checked_add(parse_number(minutes)?)?;
    let offset = minutes.checked_mul(60_000_000_000)?;
    if zone[0] == b'+' { local.checked_sub(offset) } else { local.checked_add(offset) }
}

fn parse_date(text: &[u8]) -> Option<u64> {
    let mut parts = text.splitn(3, |byte| *byte == b'-').map(parse_number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let is_date = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    // A year with many digits has no number of days.
    is_date.then_some(())?;
    u64::try_from(days_since_1970(year.cast_signed(), month.cast_signed(), day.cast_signed())).ok()
}

fn parse_clock(text: &[u8]) -> Option<u64> {
    let mut parts = text.splitn(3, |byte| *byte == b':');
    let (hours, minutes) = (parse_number(parts.next()?)?, parse_number(parts.next()?)?);
    let seconds = parse_seconds(&to_ascii(parts.next()?))?;
    (hours < 24 && minutes < 60).then(|| (hours * 60 + minutes) * 60_000_000_000 + seconds)
}

#[cfg(test)]
mod tests {
    use super::{parse_amount, parse_iso_duration, parse_iso_time, parse_time};

    #[test]
    fn parses_amounts() {
        for (text, amount) in [
            ("30.1 ms", Some("30100000")),
            ("30,1 ms", Some("30100000")),
            ("1 m 3 s", Some("63000000000")),
            ("1.5 kB", Some("1536")),
            ("١٫٥ kB", Some("1536")),
            ("۲۰ ms", Some("20000000")),
            ("16 bytes", Some("16")),
            ("7", Some("7")),
            ("12 ns", Some("12")),
            ("1.25 us", Some("1250")),
            ("2 h 3 m", Some("7380000000000")),
            ("1 d", Some("86400000000000")),
            ("20ms", Some("20000000")),
            ("1m 3s", Some("63000000000")),
            ("N/A", Some("0")),
            ("-5 ms", Some("0")),
            ("1 parsec", None),
            ("", None),
        ] {
            assert_eq!(parse_amount(text.as_bytes()).map(|weight| weight.to_string()).as_deref(), amount, "{text}");
        }
    }

    #[test]
    fn parses_iso_durations() {
        for (text, amount) in [
            ("PT0.030080913S", Some("30080913")),
            ("PT1H2M3S", Some("3723000000000")),
            ("PT-1S", Some("0")),
            ("PT1X", None),
            ("1S", None),
        ] {
            assert_eq!(
                parse_iso_duration(text.as_bytes()).map(|weight| weight.to_string()).as_deref(),
                amount,
                "{text}"
            );
        }
    }

    #[test]
    fn parses_times() {
        assert_eq!(parse_time(b"00:01:02.5"), Some(62_500_000_000));
        assert_eq!(parse_time(b"00:00:01.000 (1970-01-02)"), Some(86_401_000_000_000));
        assert_eq!(parse_iso_time(b"1970-01-02T01:00:00.000000007+01:00"), Some(86_400_000_000_007));
        assert_eq!(parse_iso_time(b"1970-01-01T00:00:01Z"), Some(1_000_000_000));
        assert_eq!((parse_time(b"x"), parse_time(b"25:00:00"), parse_iso_time(b"1970-01-01")), (None, None, None));
    }

    #[test]
    fn numbers_of_times_may_be_large() {
        for text in ["9071111111111111111-01-01T00:00:00Z", "2026-11-23T23:49:17+999999999999999999:00"] {
            assert_eq!(parse_iso_time(text.as_bytes()), None, "{text}");
        }
    }
}
