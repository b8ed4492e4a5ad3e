//! Arguments of the options that select samples: events, time spans, lists of numbers.
//!
//! Spans are half-open: the start is included, the end is not. Adjacent spans share no sample and miss none.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The event whose samples count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventChoice {
    /// The first event in the input.
    #[default]
    First,
    /// All events, added up.
    All,
    /// The event of this name, with modifiers (`cycles:u`) or without (`cycles`).
    Named(Vec<u8>),
}

/// A span of time.
///
/// # Example
/// ```
/// use fgkit::collapse::TimeSpan;
/// let span: TimeSpan = "+1.5,+2".parse()?;
/// assert!(span.is_relative() && !span.contains(1_499_999_999, 0) && span.contains(1_500_000_000, 0));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    from: Bound,
    to: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Open,
    /// Nanoseconds on the clock of the recording.
    At(u64),
    /// Nanoseconds after the earliest sample.
    After(u64),
}

impl Bound {
    /// Parses a bound in seconds, relative after a plus sign; an empty text is open.
    fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix('+') {
            _ if text.is_empty() => Some(Self::Open),
            Some(delay) => parse_seconds(delay.as_bytes()).map(Self::After),
            None => parse_seconds(text.as_bytes()).map(Self::At),
        }
    }

    /// Returns the time of the bound, given that of the earliest sample. `None` if it is open.
    fn time(self, first: u64) -> Option<u64> {
        match self {
            Self::Open => None,
            Self::At(time) => Some(time),
            Self::After(delay) => Some(first.saturating_add(delay)),
        }
    }
}

impl TimeSpan {
    /// True if a bound is relative to the earliest sample.
    pub fn is_relative(&self) -> bool {
        [self.from, self.to].iter().any(|bound| matches!(bound, Bound::After(_)))
    }

    /// Returns start and end in nanoseconds, given the time of the earliest sample; `None` for an open one.
    pub fn bounds(&self, first: u64) -> (Option<u64>, Option<u64>) {
        (self.from.time(first), self.to.time(first))
    }

    /// True if the span contains `time`, given the time of the earliest sample. Both are nanoseconds.
    pub fn contains(&self, time: u64, first: u64) -> bool {
        self.from.time(first).is_none_or(|from| from <= time) && !self.ends_before(time, first)
    }

    /// True if the span ends at `time` or before, given the time of the earliest sample. Both are nanoseconds.
    pub fn ends_before(&self, time: u64, first: u64) -> bool {
        self.to.time(first).is_some_and(|to| to <= time)
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bounds = text.split_once(',').and_then(|(from, to)| Some((Bound::parse(from)?, Bound::parse(to)?)));
        match bounds {
            Some((Bound::At(from), Bound::At(to)) | (Bound::After(from), Bound::After(to))) if from >= to => {
                Err("the span ends before it begins".to_owned())
            }
            Some((from, to)) => Ok(Self { from, to }),
            None => Err("expected FROM,TO in seconds, as in 12.5,13 or, from the earliest sample, +1,+2.5".to_owned()),
        }
    }
}

/// A part of each second, on the clock of the recording.
///
/// # Example
/// ```
/// use fgkit::collapse::OffsetSpan;
/// let span: OffsetSpan = "0.2,0.25".parse()?;
/// assert!(span.contains(7_200_000_000) && !span.contains(7_250_000_000));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetSpan {
    from: u64,
    to: u64,
}

impl OffsetSpan {
    /// Returns start and end in nanoseconds.
    pub fn bounds(&self) -> (u64, u64) {
        (self.from, self.to)
    }

    /// True if the span contains a time, in nanoseconds.
    pub fn contains(&self, time: u64) -> bool {
        (self.from..self.to).contains(&(time % SECOND))
    }
}

impl FromStr for OffsetSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bounds =
            text.split_once(',').and_then(|(from, to)| Some((parse_offset(from, 0)?, parse_offset(to, SECOND)?)));
        let bounds = bounds.filter(|(from, to)| from < to && *to <= SECOND);
        let span = bounds.map(|(from, to)| Self { from, to });
        span.ok_or_else(|| "expected FROM,TO within a second, as in 0.2,0.25".to_owned())
    }
}

/// Parses an offset in seconds; returns nanoseconds. An empty text has the value `open`.
fn parse_offset(text: &str, open: u64) -> Option<u64> {
    if text.is_empty() { Some(open) } else { parse_seconds(text.as_bytes()) }
}

/// One second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Parses seconds with an optional fraction; returns nanoseconds.
pub(in crate::collapse) fn parse_seconds(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !seconds.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = format!("{:0<9}", &fraction[..fraction.len().min(9)]).parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(SECOND)?.checked_add(fraction)
}

/// A list of numbers, of CPUs or threads, such as `0-3,7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberList(Vec<RangeInclusive<u32>>);

impl NumberList {
    /// True if the list contains a number.
    pub fn contains(&self, number: u32) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }
}

impl fmt::Display for NumberList {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, range) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "," };
            match range.start() == range.end() {
                true => write!(out, "{separator}{}", range.start())?,
                false => write!(out, "{separator}{}-{}", range.start(), range.end())?,
            }
        }
        Ok(())
    }
}

impl FromStr for NumberList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ranges: Option<Vec<_>> = text.split(',').map(parse_range).collect();
        ranges.map(Self).ok_or_else(|| "expected numbers and ranges, as in 0-3,7".to_owned())
    }
}

/// Parses a number or a range of numbers, such as `0-3`.
fn parse_range(text: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?).filter(|range| !range.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{NumberList, OffsetSpan, TimeSpan, parse_seconds};

    #[test]
    fn parses_times_to_the_nanosecond() {
        assert_eq!(parse_seconds(b"12.5"), Some(12_500_000_000));
        assert_eq!(parse_seconds(b"0.0000000019"), Some(1));
        assert_eq!(parse_seconds(b"7"), Some(7_000_000_000));
        for bad in ["", "x", "1.x", "-1", "99999999999999999999", "1.5.2"] {
            assert_eq!(parse_seconds(bad.as_bytes()), None, "{bad}");
        }
    }

    fn time_span(text: &str) -> TimeSpan {
        text.parse().unwrap()
    }

    #[test]
    fn bounds_of_a_span_are_optional() {
        assert!(time_span("1,").contains(u64::MAX, 0) && !time_span("1,").contains(999_999_999, 0));
        assert!(time_span(",1").contains(999_999_999, 0) && !time_span(",1").contains(1_000_000_000, 0));
        assert!(
            time_span("+1,+2").contains(11_000_000_000, 10_000_000_000)
                && !time_span("+1,+2").contains(10_000_000_000, 10_000_000_000)
        );
        for bad in ["1", "a,b", "2,1", "1,1", "+2,+1"] {
            assert!(bad.parse::<TimeSpan>().is_err(), "{bad}");
        }
    }

    fn offset_span(text: &str) -> OffsetSpan {
        text.parse().unwrap()
    }

    #[test]
    fn offset_spans_lie_within_a_second() {
        assert!(offset_span(",0.1").contains(3_000_000_000) && !offset_span(",0.1").contains(3_100_000_000));
        assert!(offset_span("0.9,").contains(3_999_999_999) && offset_span(",") == offset_span("0,1"));
        for bad in ["0.5", "0.5,0.5", "0.6,0.5", "0,1.1", "+0,1", "x,"] {
            assert!(bad.parse::<OffsetSpan>().is_err(), "{bad}");
        }
    }

    #[test]
    fn parses_lists_of_numbers() {
        let cpus: NumberList = "0-1,7".parse().unwrap();
        assert_eq!(cpus.to_string(), "0-1,7");
        assert!(cpus.contains(1) && cpus.contains(7) && !cpus.contains(2));
        for bad in ["x", "", "3-1", "1,3-2"] {
            assert!(bad.parse::<NumberList>().is_err(), "{bad}");
        }
    }
}
