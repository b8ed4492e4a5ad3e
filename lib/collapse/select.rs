//! Which samples count: by event, time, thread and CPU.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Which event's samples count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventChoice {
    /// Those of the first that the input shows.
    #[default]
    First,
    /// All, added up.
    All,
    /// Those of one, named with its modifiers (`cycles:u`) or without them (`cycles`).
    Named(Vec<u8>),
}

/// What a sample weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SampleWeight {
    /// Its period, where one is printed; else one.
    #[default]
    Period,
    /// One.
    Samples,
}

/// A span of time, both ends included.
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
    /// In nanoseconds on the recording's clock.
    At(u64),
    /// In nanoseconds from the first sample.
    After(u64),
}

impl TimeSpan {
    /// Whether it begins or ends at so much time from the first sample.
    pub fn is_relative(&self) -> bool {
        [self.from, self.to].iter().any(|bound| matches!(bound, Bound::After(_)))
    }

    /// Whether a time lies within it, given the first sample's. In nanoseconds.
    pub fn contains(&self, time: u64, first: u64) -> bool {
        let place = |bound: Bound| match bound {
            Bound::Open => None,
            Bound::At(time) => Some(time),
            Bound::After(delay) => Some(first.saturating_add(delay)),
        };
        place(self.from).is_none_or(|from| from <= time) && place(self.to).is_none_or(|to| time <= to)
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bound = |text: &str| match text.strip_prefix('+') {
            _ if text.is_empty() => Ok(Bound::Open),
            Some(delay) => nanoseconds(delay.as_bytes()).map(Bound::After).ok_or(()),
            None => nanoseconds(text.as_bytes()).map(Bound::At).ok_or(()),
        };
        let ends = text.split_once(',').ok_or(()).and_then(|(from, to)| Ok((bound(from)?, bound(to)?)));
        match ends {
            Ok((from, to)) => Ok(Self { from, to }),
            Err(()) => Err("expected FROM,TO in seconds, as in 12.5,13 or, from the first sample, +1,+2.5".to_owned()),
        }
    }
}

/// Reads seconds with a fraction.
pub(super) fn nanoseconds(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) {
        return None;
    }
    let fraction: u64 = format!("{:0<9}", &fraction[..fraction.len().min(9)]).parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// A list of CPUs, such as `0-3,7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(Vec<RangeInclusive<u32>>);

impl CpuList {
    /// Whether it lists a CPU.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.iter().any(|range| range.contains(&cpu))
    }
}

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        ranges.map(Self).ok_or_else(|| "expected numbers and ranges, as in 0-3,7".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{CpuList, TimeSpan, nanoseconds};

    #[test]
    fn times_are_read_to_the_nanosecond() {
        assert_eq!(nanoseconds(b"12.5"), Some(12_500_000_000));
        assert_eq!(nanoseconds(b"0.0000000019"), Some(1));
        assert_eq!(nanoseconds(b"7"), Some(7_000_000_000));
        for bad in ["", "x", "1.x", "-1", "99999999999999999999", "1.5.2"] {
            assert_eq!(nanoseconds(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_span_may_be_open() {
        let span = |text: &str| text.parse::<TimeSpan>().unwrap();
        assert!(span("1,").contains(u64::MAX, 0) && !span("1,").contains(999_999_999, 0));
        assert!(span(",1").contains(0, 0) && span(",1").contains(1_000_000_000, 0));
        assert!(
            span("+1,+2").contains(11_000_000_000, 10_000_000_000)
                && !span("+1,+2").contains(10_000_000_000, 10_000_000_000)
        );
        assert!("1".parse::<TimeSpan>().is_err() && "a,b".parse::<TimeSpan>().is_err());
    }

    #[test]
    fn cpus_are_listed() {
        let cpus: CpuList = "0-1,7".parse().unwrap();
        assert!(cpus.contains(1) && cpus.contains(7) && !cpus.contains(2));
        assert!("x".parse::<CpuList>().is_err() && "".parse::<CpuList>().is_err());
    }
}
